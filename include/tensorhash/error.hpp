// The library's exceptions. Each message names the argument, what was expected and what came.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "tensorhash/export.hpp"

namespace tensorhash {

enum class Dtype : std::uint8_t;

/// Base of all errors below. Out of memory is std::bad_alloc.
class TH_API Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// A dtype that is not allowed here. Python: TypeError.
class TH_API TypeError : public Error {
public:
    using Error::Error;
};

/// An array has another dtype than the table or function expects. Python: TypeError that says how
/// to cast.
class TH_API DtypeError : public TypeError {
public:
    DtypeError(std::string const& what, std::string argument, Dtype expected)
        : TypeError(what), argument_(std::move(argument)), expected_(expected) {}
    /// The name of the argument and the dtype that it must have.
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

/// A column, shard or buffer index that does not exist. Python: IndexError.
class TH_API IndexError : public Error {
public:
    using Error::Error;
};

/// A required key is not in the table. Python: KeyError.
class TH_API KeyError : public Error {
public:
    using Error::Error;
};

/// A device that this build or machine does not have. Python: RuntimeError.
class TH_API DeviceError : public Error {
public:
    using Error::Error;
};

/// A file that is truncated, damaged, too large or of another format. Python: ValueError.
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
