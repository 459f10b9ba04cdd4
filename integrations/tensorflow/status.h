// Errors of the op library: a code, and a sentence made of parts.
#ifndef TENSORHASH_TENSORFLOW_STATUS_H_
#define TENSORHASH_TENSORFLOW_STATUS_H_

#include <new>
#include <stdexcept>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tensorhash_tf {

/// An argument that cannot be honoured.
template <class... Parts>
absl::Status invalid(Parts const&... parts) {
    return absl::InvalidArgumentError(absl::StrCat(parts...));
}

/// A call that the table's state forbids.
template <class... Parts>
absl::Status refused(Parts const&... parts) {
    return absl::FailedPreconditionError(absl::StrCat(parts...));
}

/// What `body` returns. TensorFlow knows no exceptions: memory that is not there becomes its code for that.
template <class Body>
absl::Status guarded(Body&& body) {
    try {
        return body();
    } catch (std::bad_alloc const&) {
        return absl::ResourceExhaustedError("tensorhash: out of memory");
    } catch (std::length_error const&) {  // a vector that could never be
        return absl::ResourceExhaustedError("tensorhash: out of memory");
    }
}

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_STATUS_H_
