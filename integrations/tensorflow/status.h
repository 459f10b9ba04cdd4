// The errors of the op library: a code, and a message made of parts.
#ifndef TENSORHASH_TENSORFLOW_STATUS_H_
#define TENSORHASH_TENSORFLOW_STATUS_H_

#include <new>
#include <stdexcept>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tensorhash_tf {

/// An invalid argument.
template <class... Parts>
absl::Status invalid(Parts const&... parts) {
    return absl::InvalidArgumentError(absl::StrCat(parts...));
}

/// A call that the table's state forbids.
template <class... Parts>
absl::Status refused(Parts const&... parts) {
    return absl::FailedPreconditionError(absl::StrCat(parts...));
}

/// Returns what `body` returns. TensorFlow does not use exceptions, so out of memory becomes an
/// error code.
template <class Body>
absl::Status guarded(Body&& body) {
    try {
        return body();
    } catch (std::bad_alloc const&) {
        return absl::ResourceExhaustedError("tensorhash: out of memory");
    } catch (std::length_error const&) {  // a vector above its maximum size
        return absl::ResourceExhaustedError("tensorhash: out of memory");
    }
}

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_STATUS_H_
