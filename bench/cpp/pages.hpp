// Memory with the library's page policy: mapped, aligned to huge pages, in huge pages if possible,
// touched before use.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

namespace bench {

class Pages {
public:
    Pages() = default;
    /// Throws std::bad_alloc. Filled with ones, so that no page is the system's shared zero page.
    explicit Pages(std::size_t bytes) : bytes_((bytes + kHuge - 1) / kHuge * kHuge) {
        if (bytes_ == 0) {
            return;
        }
        raw_ = mmap(nullptr, bytes_ + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                    -1, 0);
        if (raw_ == MAP_FAILED) {
            throw std::bad_alloc();
        }
        auto const address = reinterpret_cast<std::uintptr_t>(raw_);
        data_ = reinterpret_cast<unsigned char*>((address + kHuge - 1) / kHuge * kHuge);
        madvise(data_, bytes_, MADV_HUGEPAGE);
        std::memset(data_, 1, bytes_);
    }
    Pages(Pages&& other) noexcept
        : raw_(std::exchange(other.raw_, nullptr)), data_(std::exchange(other.data_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)) {}
    Pages& operator=(Pages&& other) noexcept {
        std::swap(raw_, other.raw_);
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    Pages(Pages const&) = delete;
    Pages& operator=(Pages const&) = delete;
    ~Pages() {
        if (raw_ != nullptr) {
            munmap(raw_, bytes_ + kHuge);
        }
    }

    unsigned char* data() noexcept { return data_; }
    unsigned char const* data() const noexcept { return data_; }
    template <class T>
    T* as() noexcept {
        return reinterpret_cast<T*>(data_);
    }
    template <class T>
    T const* as() const noexcept {
        return reinterpret_cast<T const*>(data_);
    }

private:
    static constexpr std::size_t kHuge = std::size_t{2} << 20;

    void* raw_ = nullptr;
    unsigned char* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace bench
