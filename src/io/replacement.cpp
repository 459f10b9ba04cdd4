// Replaces a file: writes an unnamed or hidden temporary file, then renames it. A lock on it shows
// that it is in use.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <climits>
#include <string_view>

#include "io/system.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/file.hpp"

namespace tensorhash {

using io::Descriptor;
using io::fail;

namespace {

constexpr int kMaxLinks = 40;  // as many as Linux follows
constexpr int kAttempts = 100;
constexpr std::size_t kDigits = 16;  // of the random part of a temporary name
constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::string_view kSuffix = ".tmp";
constexpr std::size_t kLongestBase = 200;  // leaves room for the rest of a temporary name

std::string base_of(std::string const& name) { return name.substr(name.rfind('/') + 1); }

std::string checked_name(std::string const& name) {
    io::require_whole_name(name);
    if (std::string const base = base_of(name); base.empty() || base == "." || base == "..") {
        throw ValueError("file_name: expected the name of a file, got the folder \"" + name + "\"");
    }
    return name;
}

/// The file that a name leads to. It need not exist.
std::string follow_links(std::string const& name) {
    std::string at = name;
    std::array<char, PATH_MAX> target;
    for (int link = 0; link < kMaxLinks; ++link) {
        ssize_t const length = ::readlink(at.c_str(), target.data(), target.size());
        if (length < 0) {
            return at;
        }
        std::string const to(target.data(), static_cast<std::size_t>(length));
        at = to.starts_with('/') ? to : io::folder_of(at) + "/" + to;
    }
    errno = ELOOP;
    fail(name, "follow the links of");
}

/// The permissions of an existing file, or nullopt. Throws if it is not a regular file.
std::optional<mode_t> mode_of(std::string const& target, std::string const& name) {
    struct stat info{};
    if (::stat(target.c_str(), &info) != 0) {
        return std::nullopt;
    }
    if (S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        fail(name, "replace");
    }
    if (!S_ISREG(info.st_mode)) {
        throw ValueError("file_name: expected a regular file or a new name, got \"" + name +
                         "\", a pipe, socket or device");
    }
    return info.st_mode & 0777;
}

std::string random_digits(std::string const& name) {
    std::uint64_t bits = 0;
    if (::getrandom(&bits, sizeof(bits), 0) != static_cast<ssize_t>(sizeof(bits))) {
        fail(name, "find a temporary name for");
    }
    std::string digits;
    for (std::size_t i = 0; i < kDigits; ++i, bits >>= 4) {
        digits += kHex[bits % 16];
    }
    return digits;
}

/// Waits for the lock on a file. Ignores failure: without locks, remove_leftovers() removes
/// nothing, so the file is safe.
void lock(int fd) noexcept {
    while (::flock(fd, LOCK_EX) != 0 && errno == EINTR) {
    }
}

/// Whether this is a temporary name: the prefix, random digits, the suffix.
bool is_temporary(std::string_view name, std::string_view prefix) {
    return name.size() == prefix.size() + kDigits + kSuffix.size() && name.starts_with(prefix) &&
           name.ends_with(kSuffix) &&
           name.substr(prefix.size(), kDigits).find_first_not_of(kHex) == std::string_view::npos;
}

/// Removes temporary files that are not locked, because their process is gone. Ignores errors.
void remove_leftovers(std::string const& folder, std::string const& prefix) noexcept {
    DIR* const listing = ::opendir(folder.c_str());
    if (listing == nullptr) {
        return;
    }
    while (dirent const* const entry = ::readdir(listing)) {
        if (!is_temporary(entry->d_name, prefix)) {
            continue;
        }
        // Open for writing, because NFS grants an exclusive lock only to writers.
        Descriptor const file(::openat(::dirfd(listing), entry->d_name,
                                       O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
        if (file.open() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
            ::unlinkat(::dirfd(listing), entry->d_name, 0);
        }
    }
    ::closedir(listing);
}

/// The prefix of the temporary names for this file.
std::string prefix_of(std::string const& target) {
    std::string prefix = ".";
    prefix.append(base_of(target), 0, kLongestBase);
    prefix += '.';
    return prefix;
}

}  // namespace

struct FileReplacement::Impl {
    explicit Impl(std::string const& file_name);
    ~Impl() { discard(); }
    void discard() noexcept;
    void create_named();
    void give_name();
    void commit();
    std::string new_name() const {
        return folder + "/" + prefix + random_digits(name) + std::string(kSuffix);
    }

    std::string const name;    // as the caller wrote it
    std::string const target;  // links followed
    std::string const folder;
    std::string const prefix;  // of temporary names
    std::optional<mode_t> const mode;
    Descriptor parent;
    Descriptor file;
    std::string temporary;  // empty while the file has no name
};

FileReplacement::Impl::Impl(std::string const& file_name)
    : name(checked_name(file_name)), target(follow_links(name)), folder(io::folder_of(target)),
      prefix(prefix_of(target)), mode(mode_of(target, name)),
      parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    remove_leftovers(folder, prefix);
    // An unnamed file disappears with its process. give_name() needs /proc to name it.
    if (::access("/proc/self/fd", X_OK) == 0) {
        file = Descriptor(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
    }
    if (file.open()) {
        lock(file.get());
    } else {
        create_named();
    }
}

void FileReplacement::Impl::discard() noexcept {
    if (!temporary.empty()) {
        ::unlink(temporary.c_str());
        temporary.clear();
    }
    file = Descriptor();
}

void FileReplacement::Impl::create_named() {
    // Only the owner may access the new file until it gets the mode of the old one.
    mode_t const at_first = mode ? 0600 : 0666;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        std::string const candidate = new_name();
        file = Descriptor(
            ::open(candidate.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, at_first));
        if (!file.open() && errno != EEXIST) {
            break;
        }
        if (file.open()) {
            lock(file.get());
            // Between open and lock, another process may have removed it as a leftover.
            if (struct stat info{}; ::fstat(file.get(), &info) == 0 && info.st_nlink > 0) {
                temporary = candidate;
                return;
            }
        }
    }
    fail(name, "create");
}

void FileReplacement::Impl::give_name() {
    std::string const self = "/proc/self/fd/" + std::to_string(file.get());
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        std::string candidate = new_name();
        if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, candidate.c_str(), AT_SYMLINK_FOLLOW) == 0) {
            temporary = std::move(candidate);
            return;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    fail(name, "name");
}

void FileReplacement::Impl::commit() {
    if (mode && ::fchmod(file.get(), *mode) != 0) {
        fail(name, "keep the mode of");
    }
    if (::fsync(file.get()) != 0) {
        fail(name, "sync");
    }
    if (temporary.empty()) {
        give_name();
    }
    if (::rename(temporary.c_str(), target.c_str()) != 0) {
        fail(name, "rename the temporary file to");
    }
    temporary.clear();
    // A folder without read permission could not be opened: sync its whole file system instead.
    // EINVAL and ENOTSUP: this file system cannot sync a folder.
    int const synced = parent.open() ? ::fsync(parent.get()) : ::syncfs(file.get());
    if (synced != 0 && errno != EINVAL && errno != ENOTSUP) {
        fail(name, "sync the folder of",
             "; the new file is in its place, but a power failure may bring back the old one");
    }
}

FileReplacement::FileReplacement(std::string const& file_name)
    : impl_(std::make_unique<Impl>(file_name)) {}
FileReplacement::~FileReplacement() = default;
int FileReplacement::descriptor() const noexcept { return impl_->file.get(); }
void FileReplacement::commit() { impl_->commit(); }
void FileReplacement::discard() noexcept { impl_->discard(); }

}  // namespace tensorhash
