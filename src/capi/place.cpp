// The C calls that choose a device and a stream for the calls of a thread.
#include "capi/place.hpp"

#include <cstring>

#include "capi/support.hpp"
#include "tensor/allocators.hpp"
#include "tensorhash/stream.hpp"

namespace tensorhash::capi {
namespace {

thread_local Device place;  // the CPU

}  // namespace

void set_place(Device device) noexcept { place = device; }

Device place_of_arrays() noexcept { return place; }

void copy_out(Tensor const& from, void* to) {
    if (from.bytes() == 0) {
        return;
    }
    if (from.device().is_cpu()) {
        std::memcpy(to, from.data(), from.bytes());
        return;
    }
    Stream const stream = current_stream(from.device());
    from.wait_on(stream);
    memory_of(from.device(), "result").copy(to, from.data(), from.bytes(), from.device());
    from.read_by(stream);
}

}  // namespace tensorhash::capi

using namespace tensorhash;
using namespace tensorhash::capi;

struct th_device_scope {
    explicit th_device_scope(Stream stream) : before(place_of_arrays()), queue(stream) {
        set_place(stream.device);
    }
    ~th_device_scope() { set_place(before); }
    th_device_scope(th_device_scope const&) = delete;
    th_device_scope& operator=(th_device_scope const&) = delete;

    Device before;
    StreamScope queue;
};

extern "C" {

th_status th_device_begin(char const* device, uintptr_t stream, th_device_scope** scope) {
    return guarded([&] {
        require(device, "device");
        require(scope, "scope");
        Device const wanted = Device::parse(device);
        require_usable(wanted, "device");
        *scope = new th_device_scope(Stream{wanted, stream});
    });
}

void th_device_end(th_device_scope* scope) { delete scope; }

}  // extern "C"
