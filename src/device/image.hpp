// A device's table as an image in host memory, a table made from one, and its validation. Included
// by table.hpp.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tensor/bools.hpp"

namespace tensorhash::device {

/// The host's copy of a table.
struct HostImage {
    std::vector<std::uint32_t> free;
    std::vector<unsigned char> keys;
    std::vector<std::vector<unsigned char>> values;
};

template <class Queue>
backend::TableImage DeviceTable<Queue>::to_cpu() const {
    auto const turn = order_->read(*queue_);
    State const now = core_.read_state();
    auto host = std::make_shared<HostImage>();
    auto const read = [&](auto& to, auto const* from, std::size_t count) {
        to.resize(count);
        if (count != 0) {
            queue_->read_back(to.data(), from, count * sizeof(to[0]));
        }
    };
    read(host->free, core_.buffers().free.data(), now.free);
    read(host->keys, core_.buffers().keys.data(), now.top * key_.bytes());
    backend::TableImage image;
    host->values.resize(columns_.size());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        read(host->values[i], columns_[i].data(), now.top * columns_[i].row_bytes());
        image.values.push_back(host->values[i].data());
    }
    image.capacity = core_.capacity();
    image.top = now.top;
    image.free = host->free;
    image.rows = now.top;
    image.keys = host->keys.data();
    image.owner = host;
    return image;
}

/// The live bits of an image. Throws CorruptTable if free indices are repeated or not below the
/// top.
inline std::vector<std::uint32_t> live_bits(backend::TableImage const& image,
                                            std::uint64_t capacity) {
    if (image.top > capacity || image.free.size() > image.top) {
        backend::fail_sizes(image.top, image.free.size(), capacity);
    }
    std::vector<std::uint32_t> live((capacity + 31) / 32, 0);
    for (std::uint32_t i = 0; i < image.top; ++i) {
        live[i / 32] |= 1u << (i % 32);
    }
    for (std::uint32_t const index : image.free) {
        if (index >= image.top || (live[index / 32] >> (index % 32) & 1) == 0) {
            backend::fail_free_index(index);
        }
        live[index / 32] &= ~(1u << (index % 32));
    }
    return live;
}

template <class Queue>
void DeviceTable<Queue>::from_cpu(backend::TableImage const& image) {
    auto const live = live_bits(image, core_.capacity());
    load(image, live);
    validate();
}

template <class Queue>
void DeviceTable<Queue>::load(backend::TableImage const& image,
                              std::vector<std::uint32_t> const& live) {
    auto const turn = order_->write(*queue_);
    known_.forget();
    auto const fill = [&](Column<Queue> const& column, Dtype dtype, backend::Bytes rows) {
        std::size_t const width = column.row_bytes();
        if (image.indices == nullptr && dtype != Dtype::Bool) {
            queue_->copy(column.data(), rows, image.rows * width, Copy::In);
            return;
        }
        std::vector<unsigned char> placed(image.top * width, 0);
        for (std::size_t i = 0; i < image.rows; ++i) {
            std::size_t const at = image.indices != nullptr ? image.indices[i] : i;
            std::memcpy(placed.data() + at * width, rows + i * width, width);
        }
        if (dtype == Dtype::Bool) {
            canonicalize_bools(placed.data(), placed.size());
        }
        queue_->copy(column.data(), placed.data(), placed.size(), Copy::In);
    };
    fill(core_.buffers().keys, key_.dtype, image.keys);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        fill(columns_[i], elements_[i].dtype, image.values[i]);
    }
    queue_->copy(core_.buffers().live.data(), live.data(), live.size() * 4, Copy::In);
    queue_->copy(core_.buffers().free.data(), image.free.data(), image.free.size_bytes(), Copy::In);
    core_.restore(image.top, static_cast<std::uint32_t>(image.free.size()));
}

template <class Queue>
void DeviceTable<Queue>::validate() const {
    backend::TableImage const image = to_cpu();
    auto const turn = order_->read(*queue_);
    State const now = core_.read_state();
    auto const wanted = live_bits(image, core_.capacity());
    std::vector<std::uint32_t> live(wanted.size());
    if (!live.empty()) {
        queue_->read_back(live.data(), core_.buffers().live.data(), live.size() * 4);
    }
    if (live != wanted) {
        throw CorruptTable("table: live and free indices together are not all indices below " +
                           std::to_string(now.top));
    }
    Array<Queue, std::uint32_t> const indices(*queue_, now.top);
    Array<Queue, unsigned char> const mask(*queue_, now.top);
    core_.find(core_.buffers().keys.data(), now.top, {indices.data(), mask.data()});
    std::vector<std::uint32_t> found(now.top);
    if (now.top != 0) {
        queue_->read_back(found.data(), indices.data(), indices.bytes());
    }
    static_cast<void>(core_.read_state());
    for (std::uint32_t index = 0; index < now.top; ++index) {
        if ((live[index / 32] >> (index % 32) & 1) == 0) {
            continue;
        }
        if (key_.dtype == Dtype::Bool &&
            !are_canonical_bools(image.keys + index * key_.bytes(), key_.bytes())) {
            backend::fail_bool_key(index);
        }
        if (found[index] != index) {
            backend::fail_lookup(index, found[index]);
        }
    }
}

}  // namespace tensorhash::device
