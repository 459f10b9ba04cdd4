// Shared by reading and writing files: descriptors, names, and errors with the system's message.
#pragma once

#include <unistd.h>

#include <string>
#include <utility>

namespace tensorhash::io {

/// Throws SystemError for errno: `cannot <doing> "<name>": <why>`, then `then`.
[[noreturn]] void fail(std::string const& name, char const* doing, char const* then = "");

/// Throws ValueError for a name that is empty or has a zero byte, which would end it early.
void require_whole_name(std::string const& name);

/// The folder of a name, or "." if the name has none.
std::string folder_of(std::string const& name);

class Descriptor {
public:
    explicit Descriptor(int fd = -1) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    int get() const noexcept { return fd_; }
    bool open() const noexcept { return fd_ >= 0; }

private:
    int fd_;
};

}  // namespace tensorhash::io
