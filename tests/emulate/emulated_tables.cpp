// The steps take their device form here, so the device layer comes first.
#include "device/table.hpp"

#include "emulate/emulated_tables.hpp"
#include "emulate/lazy_queue.hpp"

namespace tensorhash::emulate {
namespace {

/// Bodies run thread by thread: their races have tests of their own.
Options in_order() {
    Options options;
    options.switch_one_in = 0;
    options.nap_one_in = 0;
    return options;
}

}  // namespace

MakeTable table_factory(LazyDevices& devices) {
    return [&devices](EmulatedBackend& backend, backend::TableSpec const& spec,
                      Device device) -> std::unique_ptr<backend::TableBackend> {
        // Never freed: views of a table may outlive every other global variable.
        static auto& queues = *new std::map<int, LazyQueue>;
        static std::mutex mutex;
        std::scoped_lock const guard(mutex);
        auto const current = [&backend, device] { return backend.current(device); };
        auto const [place, is_new] =
            queues.try_emplace(device.id, devices, device.id, current, in_order());
        return std::make_unique<device::Table<LazyQueue>>(place->second, spec, device);
    };
}

}  // namespace tensorhash::emulate
