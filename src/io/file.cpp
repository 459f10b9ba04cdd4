// Whole files, by the operating system's own calls: only they can sync and rename.
#include "io/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tensorhash/error.hpp"

namespace tensorhash::io {
namespace {

[[noreturn]] void fail(std::string const& name, char const* doing) {
    int const code = errno;
    throw SystemError(
        "file_name: cannot " + std::string(doing) + " \"" + name + "\": " + std::strerror(code),
        code);
}

/// A zero byte would end the name early, and another file would be written or read.
void require_whole_name(std::string const& name) {
    if (name.empty() || name.find('\0') != std::string::npos) {
        throw ValueError("file_name: expected a name without zero bytes, got \"" +
                         std::string(name.c_str()) + (name.empty() ? "\"" : "\\0...\""));
    }
}

std::string folder_of(std::string const& name) {
    std::size_t const slash = name.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : name.substr(0, slash);
}

class Descriptor {
public:
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(Descriptor const&) = delete;
    Descriptor& operator=(Descriptor const&) = delete;
    ~Descriptor() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    int get() const noexcept { return fd_; }
    bool open() const noexcept { return fd_ >= 0; }
    int close() noexcept { return ::close(std::exchange(fd_, -1)); }

private:
    int fd_;
};

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

std::string temporary_name(std::string const& name) {
    static std::atomic<unsigned> counter{0};
    return name + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter.fetch_add(1));
}

/// Unlinks a name unless told that it is gone.
struct Unlinker {
    std::string name;
    bool armed = false;
    ~Unlinker() {
        if (armed) {
            ::unlink(name.c_str());
        }
    }
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
    require_whole_name(name);
    std::string const folder = folder_of(name);
    Unlinker temporary{temporary_name(name)};
    // A file without a name vanishes with its process; where the file system has none, a named one must do.
    Descriptor file(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
    bool const nameless = file.open();
    Descriptor named(
        nameless ? -1
                 : ::open(temporary.name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666));
    if (!nameless && !named.open()) {
        fail(name, "create");
    }
    temporary.armed = !nameless;
    Descriptor& out = nameless ? file : named;
    FileSink sink(out.get(), name);
    writer(sink);
    if (::fsync(out.get()) != 0) {
        fail(name, "sync");
    }
    if (nameless) {
        std::string const self = "/proc/self/fd/" + std::to_string(out.get());
        if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, temporary.name.c_str(), AT_SYMLINK_FOLLOW) !=
            0) {
            fail(name, "name");
        }
        temporary.armed = true;
    }
    if (out.close() != 0) {
        fail(name, "close");
    }
    if (::rename(temporary.name.c_str(), name.c_str()) != 0) {
        fail(name, "rename the temporary file to");
    }
    temporary.armed = false;
    if (Descriptor const parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        parent.open()) {
        ::fsync(parent.get());  // the new name itself
    }
}

Tensor read_file(std::string const& name) {
    require_whole_name(name);
    Descriptor const file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info{};
    if (!file.open() || ::fstat(file.get(), &info) != 0) {
        fail(name, "open");
    }
    if (S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        fail(name, "read");
    }
    Tensor bytes = Tensor::empty({static_cast<std::int64_t>(info.st_size)}, Dtype::UInt8);
    auto* at = static_cast<unsigned char*>(bytes.data());
    auto left = static_cast<std::size_t>(info.st_size);
    while (left > 0) {
        ssize_t const got = ::read(file.get(), at, left);
        if (got == 0) {
            throw FormatError("file_name: \"" + name + "\" became shorter while it was read");
        }
        if (got < 0 && errno != EINTR) {
            fail(name, "read");
        }
        if (got > 0) {
            at += got;
            left -= static_cast<std::size_t>(got);
        }
    }
    return bytes;
}

}  // namespace tensorhash::io
