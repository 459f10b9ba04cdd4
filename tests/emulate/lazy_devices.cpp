#include "emulate/lazy_devices.hpp"

#include <stdexcept>

namespace tensorhash::emulate {
namespace {

using Guard = std::scoped_lock<std::recursive_mutex>;

std::uint64_t first_state(std::uint64_t seed) { return seed * 2 + 1; }

}  // namespace

LazyDevices::LazyDevices(int devices, std::uint64_t seed, std::size_t reserved)
    : failures_(static_cast<std::size_t>(devices)), waits_(failures_.size()),
      random_(first_state(seed)) {
    for (int device = 0; device < devices; ++device) {
        memories_.push_back(std::make_unique<DeviceMemory>(reserved));
        lanes_.push_back({device, {}});
    }
}

StreamId LazyDevices::make_stream(int device) {
    Guard const guard(mutex_);
    lanes_.push_back({device, {}});
    return static_cast<StreamId>(lanes_.size() - 1);
}

int LazyDevices::device_of(StreamId stream) const {
    Guard const guard(mutex_);
    return lanes_.at(stream).device;
}

void LazyDevices::set_seed(std::uint64_t seed) {
    Guard const guard(mutex_);
    random_ = first_state(seed);
}

void* LazyDevices::allocate(int device, std::size_t bytes) {
    Guard const guard(mutex_);
    return memories_[static_cast<std::size_t>(device)]->allocate(bytes);
}

void LazyDevices::release(StreamId stream, void* data) {
    Guard const guard(mutex_);
    auto& memory = *memories_[static_cast<std::size_t>(lanes_.at(stream).device)];
    put_always(stream, [&memory, data] { memory.release(data); });
}

void LazyDevices::put(StreamId stream, std::function<void()> work) {
    Guard const guard(mutex_);
    lanes_.at(stream).steps.push_back({std::move(work)});
}

void LazyDevices::put_copy(StreamId stream, int peer, std::function<void()> work) {
    Guard const guard(mutex_);
    lanes_.at(stream).steps.push_back({std::move(work), nullptr, false, peer});
}

// Events happen and memory is freed also after a failure, so that nothing waits forever.
void LazyDevices::put_always(StreamId stream, std::function<void()> work, LazyEventPtr after) {
    lanes_.at(stream).steps.push_back({std::move(work), std::move(after), true});
}

LazyEventPtr LazyDevices::record(StreamId stream) {
    Guard const guard(mutex_);
    auto event = std::make_shared<LazyEvent>(LazyEvent{stream});
    put_always(stream, [event] { event->happened = true; });
    return event;
}

void LazyDevices::wait(StreamId stream, LazyEventPtr event) {
    if (event->stream == stream) {
        return;
    }
    Guard const guard(mutex_);
    put_always(stream, [] {}, std::move(event));
}

bool LazyDevices::can_go_on(Lane const& lane) const {
    if (lane.steps.empty()) {
        return false;
    }
    LazyEventPtr const& after = lane.steps.front().after;
    return after == nullptr || after->happened;
}

void LazyDevices::run_step(Lane& lane) {
    Step const step = std::move(lane.steps.front());
    lane.steps.pop_front();
    std::string& failure = failures_[static_cast<std::size_t>(lane.device)];
    if (!failure.empty() && !step.always) {
        return;
    }
    if (!step.always) {
        open_only(lane.device, step.peer);
    }
    try {
        step.work();
    } catch (std::exception const& error) {
        failure = error.what();
    }
}

/// One step of any stream that can go on; the wanted one is no more likely than the others.
void LazyDevices::run_one(StreamId wanted) {
    std::vector<StreamId> ready;
    for (StreamId stream = 0; stream < lanes_.size(); ++stream) {
        if (can_go_on(lanes_[stream])) {
            ready.push_back(stream);
        }
    }
    if (ready.empty()) {
        throw std::runtime_error("stream " + std::to_string(wanted) +
                                 " waits for an event that cannot happen");
    }
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    run_step(lanes_[ready[(random_ >> 33) % ready.size()]]);
}

void LazyDevices::open_only(int device, int peer) {
    for (int id = 0; id < count(); ++id) {
        DeviceMemory& memory = *memories_[static_cast<std::size_t>(id)];
        if (bool const wanted = id == device || id == peer; wanted != memory.is_open()) {
            wanted ? memory.open() : memory.close();
        }
    }
}

void LazyDevices::synchronize(StreamId stream) {
    Guard const guard(mutex_);
    ++waits_[static_cast<std::size_t>(lanes_.at(stream).device)];
    if (!lanes_.at(stream).steps.empty()) {
        try {
            while (!lanes_[stream].steps.empty()) {
                run_one(stream);
            }
        } catch (...) {
            open_only(-1, -1);
            throw;
        }
        open_only(-1, -1);
    }
    check(lanes_[stream].device);
}

void LazyDevices::check(int device) {
    Guard const guard(mutex_);
    std::string const& failure = failures_[static_cast<std::size_t>(device)];
    if (!failure.empty()) {
        throw std::runtime_error(failure);
    }
}

bool LazyDevices::is_device_memory(void const* data) const noexcept {
    for (auto const& memory : memories_) {
        if (memory->contains(data)) {
            return true;
        }
    }
    return false;
}

std::size_t LazyDevices::live(int device) {
    Guard const guard(mutex_);
    return memories_[static_cast<std::size_t>(device)]->live();
}

std::size_t LazyDevices::waits(int device) {
    Guard const guard(mutex_);
    return waits_[static_cast<std::size_t>(device)];
}

std::size_t LazyDevices::pending(int device) {
    Guard const guard(mutex_);
    std::size_t steps = 0;
    for (Lane const& lane : lanes_) {
        steps += lane.device == device ? lane.steps.size() : 0;
    }
    return steps;
}

}  // namespace tensorhash::emulate
