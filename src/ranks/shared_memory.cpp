// SharedMemory: a file in memory without a path. Other processes open it by way of /proc.
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "tensor/shapes.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/ranks.hpp"

#ifdef __linux__
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <ctime>
#include <system_error>
#include <thread>
#endif

namespace tensorhash {
namespace {

[[noreturn]] void refuse_memory(std::string const& name, std::string const& why, int code) {
    throw SystemError("memory: expected shared memory named " + name + ", got " + why, code);
}

}  // namespace

#ifdef __linux__

struct SharedMemory::Mapping {
    int file = -1;
    std::size_t bytes = 0;
    void* data = nullptr;

    Mapping() = default;
    Mapping(Mapping const&) = delete;
    Mapping& operator=(Mapping const&) = delete;
    ~Mapping() {
        if (data != nullptr) munmap(data, bytes);
        if (file >= 0) close(file);
    }

    void map(int protection) {
        void* const at = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_POPULATE, file, 0);
        if (at == MAP_FAILED) throw std::bad_alloc();
        data = at;
    }

    void close_file() {
        close(file);
        file = -1;
    }
};

namespace {

std::string reason(int error) { return std::generic_category().message(error); }

/// What the link says that /proc has for an open file.
std::string link_text(std::string const& link) {
    std::array<char, 256> text;
    ssize_t const length = readlink(link.c_str(), text.data(), text.size());
    return length < 0 ? reason(errno) : std::string(text.data(), static_cast<std::size_t>(length));
}

void require_name(std::string const& link, std::string const& name) {
    std::string const found = link_text(link);
    if (found != "/memfd:" + name + " (deleted)") refuse_memory(name, found, ENOENT);
}

/// Takes all pages now: a page that is missing later would end the process.
bool take_pages(int file, std::int64_t bytes) {
    int error = 0;
    do {
        error = posix_fallocate(file, 0, bytes);
    } while (error == EINTR);
    return error == 0;
}

}  // namespace

SharedMemory::SharedMemory(std::int64_t bytes, std::string const& name)
    : mapping_(std::make_shared<Mapping>()) {
    mapping_->file = memfd_create(name.c_str(), MFD_CLOEXEC);
    if (mapping_->file < 0) refuse_memory(name, reason(errno), errno);
    if (bytes < 1 || !take_pages(mapping_->file, bytes)) throw std::bad_alloc();
    mapping_->bytes = static_cast<std::size_t>(bytes);
    mapping_->map(PROT_READ | PROT_WRITE);
}

SharedMemory::SharedMemory(std::int64_t process, std::int64_t file, std::string const& name)
    : mapping_(std::make_shared<Mapping>()) {
    std::string const link = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(file);
    // Read the name first: opening another file could wait, or do something.
    require_name(link, name);
    mapping_->file = open(link.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status{};
    if (mapping_->file < 0 || fstat(mapping_->file, &status) != 0) {
        refuse_memory(name, reason(errno), errno);
    }
    // The process may have put another file there in between.
    require_name("/proc/self/fd/" + std::to_string(mapping_->file), name);
    mapping_->bytes = static_cast<std::size_t>(status.st_size);
    mapping_->map(PROT_READ);
    mapping_->close_file();
}

namespace {

// A box: the numbers of posted messages and of messages taken from its taker, then in the next
// cache line the last posted messages.
constexpr std::size_t kTakenAt = 4;
constexpr std::size_t kMessagesAt = 64;
static_assert(kMessagesAt + SharedMemory::kKept * sizeof(SharedMemory::Message) ==
              SharedMemory::kBoxBytes);

using Clock = std::chrono::steady_clock;
// A neighbour that runs answers sooner than this process could sleep and wake up.
constexpr std::chrono::microseconds kSpin{50};

std::atomic_ref<std::uint32_t> count_at(unsigned char* at) {
    return std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(at));
}

unsigned char* slot(unsigned char* box, std::uint32_t number) {
    return box + kMessagesAt + number % SharedMemory::kKept * sizeof(SharedMemory::Message);
}

/// Sleeps until the count of a box is no longer `seen`; returns early now and then.
void sleep_on(unsigned char* box, std::uint32_t seen, Clock::duration left) {
    auto const whole = std::chrono::duration_cast<std::chrono::seconds>(left);
    timespec const limit{static_cast<time_t>(whole.count()),
                         static_cast<long>(std::chrono::nanoseconds(left - whole).count())};
    if (syscall(SYS_futex, box, FUTEX_WAIT, seen, &limit, nullptr, 0) == 0) return;
    // Do not spin where a sandbox forbids futexes.
    if (errno != EAGAIN && errno != EINTR && errno != ETIMEDOUT) std::this_thread::sleep_for(kSpin);
}

}  // namespace

void SharedMemory::post(std::int64_t box, Message const& message) {
    unsigned char* const at = box_at(box);
    std::uint32_t const number = count_at(at).load(std::memory_order_relaxed);
    std::memcpy(slot(at, number), message.data(), sizeof message);
    // Pairs with the acquire in take(). Also publishes rows that were written before.
    count_at(at).store(number + 1, std::memory_order_release);
    syscall(SYS_futex, at, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void SharedMemory::set_taken(std::int64_t box, std::uint32_t messages) {
    // Pairs with the acquire in taken(). What the messages were about was used before.
    count_at(box_at(box) + kTakenAt).store(messages, std::memory_order_release);
}

std::uint32_t SharedMemory::taken(std::int64_t box) const {
    return count_at(box_at(box) + kTakenAt).load(std::memory_order_acquire);  // see set_taken()
}

std::optional<SharedMemory::Message> SharedMemory::take(std::int64_t box, std::uint32_t number,
                                                        double seconds) const {
    unsigned char* const at = box_at(box);
    auto const start = Clock::now();
    auto const end =
        start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    while (true) {
        std::uint32_t const seen = count_at(at).load(std::memory_order_acquire);  // see post()
        if (static_cast<std::int32_t>(seen - number) > 0) {
            Message message;
            std::memcpy(message.data(), slot(at, number), sizeof message);
            return message;
        }
        auto const now = Clock::now();
        if (now >= end) return std::nullopt;
        if (now - start > kSpin) sleep_on(at, seen, end - now);
    }
}

#else

void SharedMemory::post(std::int64_t, Message const&) {}

void SharedMemory::set_taken(std::int64_t, std::uint32_t) {}

std::uint32_t SharedMemory::taken(std::int64_t) const { return 0; }

std::optional<SharedMemory::Message> SharedMemory::take(std::int64_t, std::uint32_t, double) const {
    return std::nullopt;
}

struct SharedMemory::Mapping {
    int file = -1;
    std::size_t bytes = 0;
    void* data = nullptr;
};

SharedMemory::SharedMemory(std::int64_t, std::string const& name) {
    refuse_memory(name, "a system without memfd_create", ENOSYS);
}

SharedMemory::SharedMemory(std::int64_t, std::int64_t, std::string const& name) {
    refuse_memory(name, "a system without memfd_create", ENOSYS);
}

#endif

std::int64_t SharedMemory::file() const noexcept { return mapping_->file; }

std::int64_t SharedMemory::bytes() const noexcept {
    return static_cast<std::int64_t>(mapping_->bytes);
}

Tensor SharedMemory::rows(std::int64_t at, std::int64_t rows, Element const& element) const {
    auto const width = static_cast<std::int64_t>(element.bytes());
    if (at < 0 || rows < 0 || at > bytes() || (width != 0 && rows > (bytes() - at) / width)) {
        throw ValueError("rows: expected rows within " + std::to_string(bytes()) + " bytes, got " +
                         std::to_string(rows) + " rows of " + std::to_string(width) +
                         " bytes from byte " + std::to_string(at) + " on");
    }
    return Tensor::borrow(static_cast<void*>(static_cast<unsigned char*>(mapping_->data) + at),
                          with_rows(static_cast<std::size_t>(rows), element.shape), element.dtype,
                          mapping_);
}

unsigned char* SharedMemory::box_at(std::int64_t box) const {
    if (box < 0 || box >= bytes() / kBoxBytes) {
        throw IndexError("box: expected less than " + std::to_string(bytes() / kBoxBytes) +
                         ", got " + std::to_string(box));
    }
    return static_cast<unsigned char*>(mapping_->data) + box * kBoxBytes;
}

}  // namespace tensorhash
