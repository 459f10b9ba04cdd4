// The emulated back end: streams by DLPack's numbers, and errors of work that ran later.
#include "emulate/emulated_backend.hpp"

#include <thread>

#include "support/fixtures.hpp"

namespace th_test {
namespace {

using tensorhash::Device;
using tensorhash::DeviceError;
using tensorhash::Stream;
using tensorhash::emulate::EmulatedBackend;
using tensorhash::emulate::kFirstHandle;
using tensorhash::emulate::LazyDevices;

Device const kDevice{Device::Type::Emulated, 0};

TEST(EmulatedBackend, an_error_of_earlier_work_refuses_the_device_from_then_on) {
    LazyDevices devices(2);
    EmulatedBackend backend(devices);
    devices.put(0, [] { throw std::runtime_error("a planted failure"); });
    backend.check(kDevice);  // nothing has run yet
    Stream const legacy{kDevice, tensorhash::kLegacyStream};
    char const* const sentence = "an earlier call on emu:0 failed: a planted failure";
    EXPECT_EQ(message_of<DeviceError>([&] { backend.synchronize(legacy); }), sentence);
    EXPECT_EQ(message_of<DeviceError>([&] { backend.check(kDevice); }), sentence);
    EXPECT_EQ(message_of<DeviceError>([&] { backend.synchronize(legacy); }), sentence);
    backend.check({Device::Type::Emulated, 1});
}

TEST(EmulatedBackend, threads_have_default_streams_of_their_own) {
    LazyDevices devices(1);
    EmulatedBackend backend(devices);
    Stream const own{kDevice};
    (void)backend.record(own);
    std::thread([&] { (void)backend.record(own); }).join();
    EXPECT_EQ(devices.pending(0), 2u);
    auto const made = devices.make_stream(0);
    EXPECT_EQ(made, 3u);  // after the device's own and those of two threads
    (void)backend.record({kDevice, kFirstHandle + made});
    for (tensorhash::emulate::StreamId stream = 0; stream < 4; ++stream) {
        devices.synchronize(stream);
    }
    EXPECT_EQ(devices.pending(0), 0u);
}

TEST(EmulatedBackend, the_legacy_stream_comes_after_the_work_of_all_threads) {
    LazyDevices devices(2);
    EmulatedBackend backend(devices);
    Device const other{Device::Type::Emulated, 1};
    int done = 0;
    auto const work = [&] {
        devices.put(backend.current(kDevice), [&] { ++done; });
        devices.put(backend.current(other), [&] { done += 100; });
    };
    work();
    std::thread(work).join();
    auto const made = devices.make_stream(0);
    backend.wait({kDevice, kFirstHandle + made},
                 backend.record({kDevice, tensorhash::kLegacyStream}));
    devices.synchronize(made);
    EXPECT_EQ(done % 100, 2);
}

TEST(EmulatedBackend, copies_wait_only_if_the_host_reads) {
    LazyDevices devices(2);
    EmulatedBackend backend(devices);
    auto const here = backend.allocate(4, kDevice);
    Device const other{Device::Type::Emulated, 1};
    auto const there = backend.allocate(4, other);
    int number = 7;
    backend.copy_between(here.data, kDevice, &number, Device{}, 4);
    number = 8;
    EXPECT_EQ(devices.pending(0), 1u);
    backend.wait({other}, backend.record({kDevice}));
    backend.copy_between(there.data, other, here.data, kDevice, 4);
    EXPECT_GT(devices.pending(1), 0u);
    backend.copy_between(&number, Device{}, there.data, other, 4);
    EXPECT_EQ(number, 7);
}

}  // namespace
}  // namespace th_test
