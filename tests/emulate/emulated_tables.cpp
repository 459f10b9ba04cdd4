// The steps take their device form here, so the device layer comes first.
#include "device/table.hpp"
#include "device/unique.hpp"

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

class EmulatedTables final : public EmulatedBackend {
public:
    explicit EmulatedTables(LazyDevices& devices) : EmulatedBackend(devices) {
        for (int id = 0; id < devices.count(); ++id) {
            queues_.emplace_back(*this, Device{type(), id}, in_order());
        }
    }

    std::unique_ptr<backend::TableBackend> make_table(backend::TableSpec const& spec,
                                                      Device device) override {
        return std::make_unique<device::Table<LazyQueue>>(queue(device), spec, device);
    }
    std::uint64_t memory_for(backend::TableSpec const& spec) const override {
        return device::memory_for(spec);
    }
    Unique unique(backend::KeyRows rows, Element const& element, UniqueParts parts,
                  Device device) override {
        return device::unique_rows(queue(device), rows, element, parts, device);
    }

private:
    LazyQueue& queue(Device device) { return queues_.at(static_cast<std::size_t>(device.id)); }

    std::deque<LazyQueue> queues_;  // by device
};

}  // namespace

// Never freed: views of a table may outlive every other global variable.
EmulatedBackend& make_emulated_backend(LazyDevices& devices) {
    return *new EmulatedTables(devices);
}

}  // namespace tensorhash::emulate
