// Reads and writes whole files with system calls, because C++ streams cannot sync.
#include "io/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "io/system.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/file.hpp"

namespace tensorhash {

std::uint64_t load_limit(std::uint64_t file_bytes, std::optional<std::uint64_t> max_bytes) {
    constexpr std::uint64_t kAlways = 64 << 20;
    constexpr std::uint64_t kPerByte = 32;
    return max_bytes.value_or(kAlways + kPerByte * file_bytes);
}

}  // namespace tensorhash

namespace tensorhash::io {

void fail(std::string const& name, char const* doing, char const* then) {
    int const code = errno;
    throw SystemError("file_name: cannot " + std::string(doing) + " \"" + name +
                          "\": " + std::strerror(code) + then,
                      code);
}

void require_whole_name(std::string const& name) {
    if (name.empty()) {
        throw ValueError("file_name: expected the name of a file, got \"\"");
    }
    if (name.find('\0') != std::string::npos) {
        throw ValueError("file_name: expected a name without zero bytes, got \"" +
                         std::string(name.c_str()) + "\\0...\"");
    }
}

std::string folder_of(std::string const& name) {
    std::size_t const slash = name.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : name.substr(0, slash);
}

namespace {

class FileSink final : public Sink {
public:
    FileSink(int fd, std::string const& name) : fd_(fd), name_(name) {}
    void write(void const* data, std::size_t bytes) override {
        auto const* at = static_cast<unsigned char const*>(data);
        while (bytes > 0) {
            ssize_t const written = ::write(fd_, at, bytes);
            if (written < 0 && errno != EINTR) {
                fail(name_, "write");
            }
            if (written > 0) {
                at += written;
                bytes -= static_cast<std::size_t>(written);
            }
        }
    }

private:
    int fd_;
    std::string const& name_;
};

}  // namespace

void MemorySink::write(void const* data, std::size_t bytes) {
    auto const* const at = static_cast<unsigned char const*>(data);
    bytes_.insert(bytes_.end(), at, at + bytes);
}

Tensor MemorySink::take() {
    return Tensor::from(bytes_, {static_cast<std::int64_t>(bytes_.size())});
}

void replace_file(std::string const& name, std::function<void(Sink&)> const& writer) {
    FileReplacement replacement(name);
    FileSink sink(replacement.descriptor(), name);
    writer(sink);
    replacement.commit();
}

Tensor read_file(std::string const& name, std::optional<std::uint64_t> max_bytes) {
    require_whole_name(name);
    // O_NONBLOCK: otherwise, opening a pipe would block until it has a writer.
    Descriptor const file(::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    struct stat info{};
    if (!file.open() || ::fstat(file.get(), &info) != 0) {
        fail(name, "open");
    }
    if (S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        fail(name, "read");
    }
    if (!S_ISREG(info.st_mode)) {
        throw FormatError("not a regular file but a pipe, socket or device");
    }
    auto left = static_cast<std::uint64_t>(info.st_size);
    if (left > load_limit(left, max_bytes)) {
        throw FormatError("a file of " + std::to_string(left) +
                          " bytes, more than max_bytes=" + std::to_string(*max_bytes));
    }
    Tensor bytes = Tensor::empty({static_cast<std::int64_t>(left)}, Dtype::UInt8);
    auto* at = static_cast<unsigned char*>(bytes.data());
    while (left > 0) {
        ssize_t const got = ::read(file.get(), at, left);
        if (got == 0) {
            throw FormatError("a file that became shorter while it was read");
        }
        if (got < 0 && errno != EINTR) {
            fail(name, "read");
        }
        if (got > 0) {
            at += got;
            left -= static_cast<std::uint64_t>(got);
        }
    }
    return bytes;
}

}  // namespace tensorhash::io
