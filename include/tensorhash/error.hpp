// The exceptions the library throws. Each message names the argument, what was expected and what came.
#pragma once

#include <stdexcept>
#include <string>

namespace tensorhash {

/// Base of every error below. Running out of memory is std::bad_alloc, as everywhere.
class Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// A dtype that is not the table's. Python: TypeError.
class TypeError : public Error {
public:
    using Error::Error;
};

/// A shape, length, range or option that cannot be honoured. Python: ValueError.
class ValueError : public Error {
public:
    using Error::Error;
};

/// A column number that the table does not have. Python: IndexError.
class IndexError : public Error {
public:
    using Error::Error;
};

/// A device that this build or machine does not have. Python: RuntimeError.
class DeviceError : public Error {
public:
    using Error::Error;
};

/// A file that is truncated, damaged or not ours. Python: ValueError.
class FormatError : public Error {
public:
    using Error::Error;
};

/// The operating system refused a file operation. Python: OSError with its errno.
class SystemError : public Error {
public:
    SystemError(std::string const& what, int code) : Error(what), code_(code) {}
    int code() const noexcept { return code_; }

private:
    int code_;
};

/// `validate()` found the table inconsistent. Python: RuntimeError.
class CorruptTable : public Error {
public:
    using Error::Error;
};

}  // namespace tensorhash
