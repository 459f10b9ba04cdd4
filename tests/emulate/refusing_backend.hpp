// A back end without tables, coordinates and routing, for plugins that test the loader and memory.
#pragma once

#include <memory>
#include <string>

#include "backend/coords_backend.hpp"
#include "backend/device_backend.hpp"
#include "backend/table_backend.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::emulate {

class RefusingBackend : public backend::DeviceBackend {
public:
    std::unique_ptr<backend::TableBackend> make_table(backend::TableSpec const&,
                                                      Device device) override {
        refuse("tables on \"" + to_string(device) + "\"");
    }
    backend::CoordsBackend const& coords(Device) override { refuse("coordinates"); }
    std::uint64_t memory_for(backend::TableSpec const&) const override { refuse("tables"); }
    Unique unique(backend::KeyRows, Element const&, UniqueParts, Device) override {
        refuse("unique");
    }
    std::unique_ptr<backend::Routed> route(backend::KeyRows, Element const&, backend::Sharding,
                                           Device) override {
        refuse("routing");
    }
    void cast(backend::Cast const&, Device) override { refuse("casts"); }
    Tensor true_rows(backend::Bytes, std::uint64_t, Device) override { refuse("masks"); }
    void take(backend::PickedRows const&, backend::Bytes, unsigned char*, Device) override {
        refuse("indexing");
    }
    void put(backend::PickedRows const&, backend::Bytes, unsigned char*, Device) override {
        refuse("indexing");
    }
    void paste(backend::Paste const&, Device) override { refuse("indexing"); }
    void release_cache(Device) override {}

protected:
    ~RefusingBackend() = default;

private:
    [[noreturn]] static void refuse(std::string const& what) {
        throw DeviceError("device: this plugin has no " + what + "; use \"cpu\"");
    }
};

}  // namespace tensorhash::emulate
