// The steps take their device form here, so the device layer comes first.
#include "device/coords.hpp"
#include "device/routed.hpp"
#include "device/selecting.hpp"
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
    options.budget = std::uint64_t{1} << 40;  // large batches take long; every probe has an end
    return options;
}

class EmulatedTables final : public EmulatedBackend {
public:
    EmulatedTables(LazyDevices& devices, bool has_peers) : EmulatedBackend(devices, has_peers) {
        for (int id = 0; id < devices.count(); ++id) {
            Device const device{type(), id};
            coords_.emplace_back(queues_.emplace_back(*this, device, in_order()), device);
        }
    }

    std::unique_ptr<backend::TableBackend> make_table(backend::TableSpec const& spec,
                                                      Device device) override {
        return std::make_unique<device::DeviceTable<LazyQueue>>(queue(device), spec, device);
    }
    backend::CoordsBackend const& coords(Device device) override {
        return coords_.at(static_cast<std::size_t>(device.id));
    }
    std::uint64_t memory_for(backend::TableSpec const& spec) const override {
        return device::memory_for(spec);
    }
    Unique unique(backend::KeyRows rows, Element const& element, UniqueParts parts,
                  Device device) override {
        return device::unique_rows(queue(device), rows, element, parts, device);
    }

    std::unique_ptr<backend::Routed> route(backend::KeyRows keys, Element const& element,
                                           backend::Sharding sharding, Device device) override {
        return std::make_unique<device::Routed<LazyQueue>>(queue(device), keys, element, sharding);
    }

    void cast(backend::Cast const& request, Device device) override {
        device::cast_elements(queue(device), request);
    }
    Tensor true_rows(backend::Bytes mask, std::uint64_t rows, Device device) override {
        return device::true_rows(queue(device), mask, rows, device);
    }
    void take(backend::PickedRows const& picked, backend::Bytes from, unsigned char* to,
              Device device) override {
        device::take_rows(queue(device), picked, from, to);
    }
    void put(backend::PickedRows const& picked, backend::Bytes from, unsigned char* to,
             Device device) override {
        device::put_rows(queue(device), picked, from, to);
    }
    void paste(backend::Paste const& request, Device device) override {
        device::paste(queue(device), request);
    }

private:
    LazyQueue& queue(Device device) { return queues_.at(static_cast<std::size_t>(device.id)); }

    std::deque<LazyQueue> queues_;  // by device
    std::deque<device::Coords<LazyQueue>> coords_;
};

}  // namespace

// Never freed: views of a table may outlive every other global variable.
EmulatedBackend& make_emulated_backend(LazyDevices& devices, bool has_peers) {
    return *new EmulatedTables(devices, has_peers);
}

}  // namespace tensorhash::emulate
