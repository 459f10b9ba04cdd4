// The exceptions the library throws. Each message names the argument, what was expected and what came.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "tensorhash/export.hpp"

namespace tensorhash {

enum class Dtype : std::uint8_t;

/// Base of every error below. Running out of memory is std::bad_alloc, as everywhere.
class TH_API Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// A dtype that is not the table's. Python: TypeError.
class TH_API TypeError : public Error {
public:
    using Error::Error;
};

/// An array of another dtype than the table's or the function's. Python: TypeError that says how to
/// cast.
class TH_API DtypeError : public TypeError {
public:
    DtypeError(std::string const& what, std::string argument, Dtype expected)
        : TypeError(what), argument_(std::move(argument)), expected_(expected) {}
    /// The argument's name, and the dtype it must have.
    std::string const& argument() const noexcept { return argument_; }
    Dtype expected() const noexcept { return expected_; }

private:
    std::string argument_;
    Dtype expected_;
};

/// A shape, length, range or option that cannot be honoured. Python: ValueError.
class TH_API ValueError : public Error {
public:
    using Error::Error;
};

/// A column number that the table does not have. Python: IndexError.
class TH_API IndexError : public Error {
public:
    using Error::Error;
};

/// A key that had to be there. Python: KeyError.
class TH_API KeyError : public Error {
public:
    using Error::Error;
};

/// A device that this build or machine does not have. Python: RuntimeError.
class TH_API DeviceError : public Error {
public:
    using Error::Error;
};

/// A file that is truncated, damaged or not ours. Python: ValueError.
class TH_API FormatError : public Error {
public:
    using Error::Error;
};

/// The operating system refused a file operation. Python: OSError with its errno.
class TH_API SystemError : public Error {
public:
    SystemError(std::string const& what, int code) : Error(what), code_(code) {}
    int code() const noexcept { return code_; }

private:
    int code_;
};

/// A table of fixed capacity has no room for a batch. Python: RuntimeError.
class TH_API TableFull : public Error {
public:
    using Error::Error;
};

/// `validate()` found the table inconsistent. Python: RuntimeError.
class TH_API CorruptTable : public Error {
public:
    using Error::Error;
};

}  // namespace tensorhash
