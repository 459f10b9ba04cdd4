// The state of one GPU, made on first use. Failures are noted until a call can throw them.
#include "cuda/gpu.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "cuda/launch.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::cuda {
namespace {

std::atomic<bool> is_forked_child = false;

/// From here on, children of this process know that the device is not theirs.
void watch_forks() {
    static int const watched = pthread_atfork(
        nullptr, nullptr, [] { is_forked_child.store(true, std::memory_order_relaxed); });
    static_cast<void>(watched);
}

void require(cudaError_t status, char const* call, int device) {
    if (status != cudaSuccess) {
        cudaGetLastError();  // it is reported here
        throw DeviceError(to_string(Device{Device::Type::Cuda, device}) + ": " + call +
                          " failed: " + describe(status));
    }
}

int attribute(cudaDeviceAttr which, int device) {
    int value = 0;
    require(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute", device);
    return value;
}

/// A pool of our own, so that other libraries do not see its settings and its unused memory.
cudaMemPool_t make_pool(int device) {
    if (attribute(cudaDevAttrMemoryPoolsSupported, device) == 0) {
        throw DeviceError(to_string(Device{Device::Type::Cuda, device}) +
                          ": this device has no memory pools, which tables need; use \"cpu\"");
    }
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, device};
    cudaMemPool_t pool = nullptr;
    require(cudaMemPoolCreate(&pool, &properties), "cudaMemPoolCreate", device);
    std::uint64_t keep_all = UINT64_MAX;  // until release_cache()
    require(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep_all),
            "cudaMemPoolSetAttribute", device);
    return pool;
}

/// The type in "… [with Body = tensorhash::device::FindRows<…>]".
std::string body_of(std::string_view function) {
    std::string_view const mark = "Body = ";
    std::size_t const begin = function.find(mark);
    if (begin == std::string_view::npos) {
        return std::string(function);
    }
    std::string_view const rest = function.substr(begin + mark.size());
    return std::string(rest.substr(0, rest.find_first_of(";]")));
}

}  // namespace

std::string describe(cudaError_t error) {
    return std::string(cudaGetErrorString(error)) + " (error " +
           std::to_string(static_cast<int>(error)) + ")";
}

DeviceGuard::DeviceGuard(int device) noexcept {
    int current = -1;
    if (cudaGetDevice(&current) == cudaSuccess && current != device) {
        before_ = current;
        cudaSetDevice(device);
    }
}
DeviceGuard::~DeviceGuard() {
    if (before_ >= 0) {
        cudaSetDevice(before_);
    }
}

Gpu& Gpu::of(int id) {
    static std::mutex& mutex = *new std::mutex;
    static auto& gpus = *new std::map<int, Gpu*>;
    std::scoped_lock const guard(mutex);
    auto const found = gpus.find(id);
    return found != gpus.end() ? *found->second : *(gpus[id] = new Gpu(id));
}

Gpu::Gpu(int id) : id_(id) {
    DeviceGuard const guard(id);
    watch_forks();
    int const processors = attribute(cudaDevAttrMultiProcessorCount, id);
    int const threads = attribute(cudaDevAttrMaxThreadsPerMultiProcessor, id);
    most_blocks_ =
        static_cast<unsigned>(processors) * static_cast<unsigned>(threads) / kBlockThreads;
    pool_ = make_pool(id);
}

bool Gpu::is_usable() const noexcept {
    return !has_failed_.load(std::memory_order_acquire) &&  // pairs with note()
           !is_forked_child.load(std::memory_order_relaxed);
}

bool Gpu::note(cudaError_t status, char const* call) noexcept {
    if (status == cudaSuccess) {
        return true;
    }
    cudaGetLastError();  // check() reports it; other libraries need not find it
    std::scoped_lock const guard(mutex_);
    if (!has_failed_.load(std::memory_order_relaxed)) {
        failure_ = status;
        failed_call_ = call;
        unsigned const next = next_launch_.load(std::memory_order_relaxed);
        for (std::size_t i = 0; i < kNames; ++i) {
            failed_launches_[i] = launches_[(next + i) % kNames].load(std::memory_order_relaxed);
        }
        has_failed_.store(true, std::memory_order_release);  // pairs with is_usable(), check()
    }
    return false;
}

void Gpu::queued(char const* launch) noexcept {
    unsigned const at = next_launch_.fetch_add(1, std::memory_order_relaxed);
    launches_[at % kNames].store(launch, std::memory_order_relaxed);
}

void Gpu::fail() const {
    std::string message = "an earlier call on " + to_string(device()) + " failed: " + failed_call_ +
                          " returned \"" + describe(failure_) + "\"";
    char const* separator = "; the last launches were ";
    for (char const* const launch : failed_launches_) {
        if (launch != nullptr) {
            message += separator + body_of(launch);
            separator = ", ";
        }
    }
    throw DeviceError(message);
}

void Gpu::check() const {
    if (is_forked_child.load(std::memory_order_relaxed)) {
        throw DeviceError(to_string(device()) +
                          " belongs to the process that this one was forked from; start processes "
                          "with \"spawn\" instead of \"fork\", or use \"cpu\"");
    }
    if (has_failed_.load(std::memory_order_acquire)) {  // pairs with note()
        fail();
    }
}

void Gpu::check_queued() {
    if (is_usable()) {
        DeviceGuard const guard(id_);
        cudaError_t const status = cudaStreamQuery(stream());
        if (status == cudaErrorNotReady) {
            cudaGetLastError();  // not an error
        } else {
            note(status, "cudaStreamQuery");
        }
    }
    check();
}

cudaEvent_t Gpu::take_event() noexcept {
    {
        std::scoped_lock const guard(mutex_);
        if (!idle_events_.empty()) {
            cudaEvent_t const event = idle_events_.back();
            idle_events_.pop_back();
            return event;
        }
    }
    cudaEvent_t event = nullptr;
    note(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    return event;
}

// A stream that waits for the event already has its time, so the event can be used again.
void Gpu::give_event(cudaEvent_t event) noexcept {
    std::scoped_lock const guard(mutex_);
    idle_events_.push_back(event);
}

EventPtr Gpu::record(cudaStream_t stream) noexcept {
    if (!is_usable()) {
        return nullptr;
    }
    DeviceGuard const guard(id_);
    cudaEvent_t const event = take_event();
    if (event == nullptr) {
        return nullptr;
    }
    EventPtr recorded(event, [this](cudaEvent_t unused) { give_event(unused); });
    note(cudaEventRecord(event, stream), "cudaEventRecord");
    return recorded;
}

void Gpu::wait(cudaStream_t stream, EventPtr const& event) noexcept {
    if (event != nullptr && is_usable()) {
        DeviceGuard const guard(id_);
        note(cudaStreamWaitEvent(stream, event.get(), 0), "cudaStreamWaitEvent");
    }
}

void Gpu::synchronize(cudaStream_t stream) {
    check();
    DeviceGuard const guard(id_);
    note(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    check();
}

bool Gpu::allow_peer(int other) noexcept {
    std::scoped_lock const guard(mutex_);
    auto const [peer, is_new] = peers_.try_emplace(other, false);
    int can_access = 0;
    if (is_new && cudaDeviceCanAccessPeer(&can_access, other, id_) == cudaSuccess &&
        can_access != 0) {
        cudaMemAccessDesc access{};
        access.location = {cudaMemLocationTypeDevice, other};
        access.flags = cudaMemAccessFlagsProtReadWrite;
        peer->second = cudaMemPoolSetAccess(pool_, &access, 1) == cudaSuccess;
    }
    cudaGetLastError();  // without access, copies go through the host
    return peer->second;
}

void Gpu::release_cache() {
    check();
    DeviceGuard const guard(id_);
    note(cudaMemPoolTrimTo(pool_, 0), "cudaMemPoolTrimTo");
    check();
}

}  // namespace tensorhash::cuda
