// MultiDeviceHashTable: a sharded table of one key and one value type, called with plain pointers.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "tensorhash/error.hpp"
#include "tensorhash/sharded/sharded_map.hpp"

namespace tensorhash {

/// What one calling thread uses to talk to the devices. CPU devices need nothing; it says whose it is.
struct Stream_event_resource {
    int device_id = -1;  ///< -1: not created, or destroyed
};

/// The rows of a batch: a number, or the address of one, which is read and not changed.
class RowCount {
public:
    RowCount(std::size_t rows) noexcept : rows_(rows) {}
    /// Throws ValueError for a null pointer. A template, so that a literal 0 stays a number.
    template <std::same_as<std::size_t> Length>
    RowCount(Length const* rows) : rows_(rows == nullptr ? refuse_null() : *rows) {}
    operator std::size_t() const noexcept { return rows_; }

private:
    [[noreturn]] static std::size_t refuse_null() {
        throw ValueError("len: expected the address of the number of rows, got a null pointer");
    }
    std::size_t rows_;
};

/// The pointers are memory of the host for CPU devices. A batch acts as if its rows were applied one by one, in order, and
/// a call that throws changed nothing. Every verb that changes something takes a `status`, one bool per row, or nullptr.
/// Any thread may call anything at any time: readers together, a writer alone.
///
/// Key: a number, or a struct without padding, compared by its bytes. Value: anything trivially copyable. `Policy` is
/// called as policy(shards, key) and says which shard a key belongs to. No key is reserved, and the table grows.
template <class Key, class Value, class Policy = HashPolicy<Key>>
class MultiDeviceHashTable {
    static_assert(dtype_of<Key> != Dtype::Undefined ||
                      std::has_unique_object_representations_v<Key>,
                  "Key must be a number or a struct without padding");
    static_assert(std::is_trivially_copyable_v<Value>, "Value must be trivially copyable");

public:
    /// One shard on each of the devices "cpu:<id>".
    MultiDeviceHashTable(std::size_t capacity, int const* device_ids, int n,
                         Policy policy = Policy())
        : MultiDeviceHashTable(capacity, devices_of(device_ids, n), std::move(policy)) {}
    /// One shard on each device, by name.
    MultiDeviceHashTable(std::size_t capacity, std::vector<std::string> const& device_names,
                         Policy policy = Policy())
        : MultiDeviceHashTable(capacity, devices_of(device_names), std::move(policy)) {}

    MultiDeviceHashTable(MultiDeviceHashTable const&) = delete;
    MultiDeviceHashTable& operator=(MultiDeviceHashTable const&) = delete;

    Stream_event_resource stream_event_resource_create(int device_id) const {
        shard_of_device(device_id);
        return {device_id};
    }
    /// The same: the name has this spelling in code that was written for the GPU class.
    Stream_event_resource stream_event_recource_create(int device_id) const {
        return stream_event_resource_create(device_id);
    }
    /// Twice is no error.
    void stream_event_resource_destroy(Stream_event_resource& resource) const noexcept {
        resource.device_id = -1;
    }

    /// Adds the keys that are new, of equal keys the first; those that are there stay as they are. status: added.
    void insert(Key const* keys, Value const* vals, RowCount len, Stream_event_resource& resource,
                bool* status = nullptr) {
        check(resource);
        give(map_.insert(key_rows(keys, len), {value_rows(vals, len)}).mask, status);
    }
    /// Overwrites the values of keys that are there, of equal keys the last row wins. status: was there.
    void set(Key const* keys, Value const* vals, RowCount len, Stream_event_resource& resource,
             bool* status = nullptr) {
        check(resource);
        give(map_.assign(key_rows(keys, len), {value_rows(vals, len)}), status);
    }
    /// The values, and zeros where a key is not there. status: was there.
    void get(Key const* keys, Value* vals, bool* status, RowCount len,
             Stream_event_resource& resource) const {
        check(resource);
        require(vals != nullptr, len, "vals");
        Tensor const rows = key_rows(keys, len);
        if (status != nullptr) {
            auto [found, mask] = map_.get_with_mask(rows);
            copy_out(found.at(0), vals);
            give(mask, status);
        } else {
            copy_out(map_.get(rows).at(0), vals);
        }
    }
    /// The same in the order of the other verbs.
    void get(Key const* keys, Value* vals, RowCount len, Stream_event_resource& resource,
             bool* status = nullptr) const {
        get(keys, vals, status, len, resource);
    }
    /// Calls op.update(value, gradient) for each row whose key is there: rows of one key in order, different keys from
    /// several threads at once, so op must allow that. It must not use this table. status: was there.
    template <class Gradient, class Step>
        requires requires(Step& op, Value& value, Gradient const& gradient) {
            op.update(value, gradient);
        }
    void update(Key const* keys, Gradient const* gradients, RowCount len, Step& op,
                Stream_event_resource& resource, bool* status = nullptr) {
        check(resource);
        require(gradients != nullptr, len, "gradients");
        auto const change = [&](std::size_t row, void* const* values) {
            op.update(*static_cast<Value*>(values[0]), gradients[row]);
        };
        give(map_.update(key_rows(keys, len), change), status);
    }
    /// An optimizer's step for each row whose key is there, as ShardedMap::update. Value: a float or a std::array of
    /// floats. It has no room for state: throws ValueError for all but Sgd without momentum. status: was there.
    void update(Key const* keys, Value const* gradients, RowCount len, Optimizer const& optimizer,
                Stream_event_resource& resource, bool* status = nullptr) {
        check(resource);
        Tensor const slopes = rows(gradients, len, "gradients");
        give(map_.update(key_rows(keys, len), slopes, optimizer).mask, status);
    }
    /// Removes keys; one that is not there is no error. status: removed.
    void remove(Key const* keys, RowCount len, Stream_event_resource& resource,
                bool* status = nullptr) {
        check(resource);
        give(map_.erase(key_rows(keys, len)), status);
    }
    void clear(Stream_event_resource& resource) {
        check(resource);
        map_.clear();
    }

    /// `insert` into one device's shard. Throws ValueError, naming the row, if a key belongs to another device. The buffers
    /// are for devices that have memory of their own.
    void insert_from_cpu(int device_id, Key const* keys, Value const* vals, RowCount len,
                         std::size_t buffer_len, int buffer_count = 2, bool* status = nullptr) {
        check_buffers(buffer_len, buffer_count);
        std::size_t const shard = shard_of_device(device_id);
        give(map_.insert_into(shard, key_rows(keys, len), {value_rows(vals, len)}).mask, status);
    }
    /// All keys and values of one device's shard as they are at one moment, by index. Throws ValueError, nothing written,
    /// unless `len` is get_size(device_id) at that moment.
    void dump_to_cpu(int device_id, Key* keys, Value* vals, std::size_t len, std::size_t buffer_len,
                     int buffer_count = 2) const {
        check_buffers(buffer_len, buffer_count);
        dump_to_device(device_id, keys, vals, len);
    }
    void dump_to_device(int device_id, Key* keys, Value* vals, std::size_t len) const {
        Items const items = map_.items(shard_of_device(device_id));
        if (auto const size = rows_of(items); size != len) refuse_length(device_id, "", size, len);
        give_items(items, keys, vals);
    }
    void dump_to_gpu(int device_id, Key* keys, Value* vals, std::size_t len) const {
        dump_to_device(device_id, keys, vals, len);
    }

    /// The dumps with the address of a length: `*len` is the room of `keys` and `vals`, and then
    /// the rows that were written. Throws ValueError, nothing written, if the room is too small.
    template <std::same_as<std::size_t> Length>
    void dump_to_cpu(int device_id, Key* keys, Value* vals, Length* len, std::size_t buffer_len,
                     int buffer_count = 2) const {
        check_buffers(buffer_len, buffer_count);
        dump_to_device(device_id, keys, vals, len);
    }
    template <std::same_as<std::size_t> Length>
    void dump_to_device(int device_id, Key* keys, Value* vals, Length* len) const {
        std::size_t const room = RowCount(len);
        Items const items = map_.items(shard_of_device(device_id));
        std::size_t const size = rows_of(items);
        if (size > room) refuse_length(device_id, "at least ", size, room);
        give_items(items, keys, vals);
        *len = size;
    }
    template <std::same_as<std::size_t> Length>
    void dump_to_gpu(int device_id, Key* keys, Value* vals, Length* len) const {
        dump_to_device(device_id, keys, vals, len);
    }

    std::size_t get_size(int device_id) const {
        return static_cast<std::size_t>(map_.size(shard_of_device(device_id)));
    }
    /// Of all devices.
    std::size_t get_size() const { return static_cast<std::size_t>(map_.size()); }
    /// The table beneath: HashMap's verbs, files, checks.
    ShardedMap& map() noexcept { return map_; }
    ShardedMap const& map() const noexcept { return map_; }

private:
    /// Rows of a batch.
    static constexpr std::size_t kMaxLen = std::numeric_limits<std::int32_t>::max();

    MultiDeviceHashTable(std::size_t capacity, std::vector<Device> devices, Policy policy)
        : map_(Capacity{static_cast<std::int64_t>(capacity)}, element<Key>(), {element<Value>()},
               std::move(devices), policy_of<Key>("typed", std::move(policy))) {}

    static std::vector<Device> devices_of(int const* ids, int n) {
        require(ids != nullptr, n > 0 ? static_cast<std::size_t>(n) : 0, "device_ids");
        std::vector<Device> devices;
        for (int i = 0; i < n; ++i) devices.push_back({Device::Type::Cpu, ids[i]});
        return devices;
    }
    static std::vector<Device> devices_of(std::vector<std::string> const& names) {
        std::vector<Device> devices;
        for (std::string const& name : names) devices.push_back(Device::parse(name));
        return devices;
    }
    /// What T is so many of: an array of its elements, anything else of itself.
    template <class T>
    struct Parts {
        using Of = T;
    };
    template <class T, std::size_t N>
    struct Parts<std::array<T, N>> {
        using Of = T;
    };
    /// A number is its dtype, an array of numbers so many of them, anything else so many bytes.
    template <class T>
    static Element element() {
        using Of = typename Parts<T>::Of;
        if constexpr (dtype_of<T> != Dtype::Undefined) {
            return {dtype_of<T>, {}};
        } else if constexpr (dtype_of<Of> != Dtype::Undefined) {
            return {dtype_of<Of>, {static_cast<std::int64_t>(sizeof(T) / sizeof(Of))}};
        } else {
            return {Dtype::UInt8, {static_cast<std::int64_t>(sizeof(T))}};
        }
    }
    template <class T>
    static Tensor rows(T const* data, std::size_t len, char const* argument) {
        require(data != nullptr, len, argument);
        Element const one = element<T>();
        Shape shape{static_cast<std::int64_t>(len)};
        shape.insert(shape.end(), one.shape.begin(), one.shape.end());
        return Tensor::borrow(static_cast<void const*>(data), shape, one.dtype);
    }
    static Tensor key_rows(Key const* keys, std::size_t len) { return rows(keys, len, "keys"); }
    static Tensor value_rows(Value const* vals, std::size_t len) { return rows(vals, len, "vals"); }

    // Not the pointer itself: compilers take memory behind a pointer to const for memory that is read.
    static void require(bool given, std::size_t len, char const* argument) {
        if (len > kMaxLen) {
            throw ValueError("len: expected at most " + std::to_string(kMaxLen) + " rows, got " +
                             std::to_string(len) + "; split the batch");
        }
        if (!given && len > 0) {
            throw ValueError(std::string(argument) + ": expected memory of " + std::to_string(len) +
                             " elements, got a null pointer");
        }
    }
    void check(Stream_event_resource const& resource) const {
        if (resource.device_id < 0) {
            throw ValueError(
                "s_e_resource: expected one of stream_event_resource_create(), got one that was "
                "not created or is destroyed");
        }
    }
    static void check_buffers(std::size_t buffer_len, int buffer_count) {
        if (buffer_len == 0 || buffer_count < 1) {
            throw ValueError("buffer_len: expected buffers of at least one row, got " +
                             std::to_string(buffer_count) + " of " + std::to_string(buffer_len));
        }
    }
    std::size_t shard_of_device(int device_id) const {
        return map_.shard_on({Device::Type::Cpu, device_id});
    }
    static std::size_t rows_of(Items const& items) {
        return static_cast<std::size_t>(items.keys.shape()[0]);
    }
    [[noreturn]] static void refuse_length(int device_id, char const* at_least, std::size_t size,
                                           std::size_t len) {
        throw ValueError("len: expected " + std::string(at_least) + std::to_string(size) +
                         ", the size of " + to_string(Device{Device::Type::Cpu, device_id}) +
                         ", got " + std::to_string(len));
    }
    static void give_items(Items const& items, Key* keys, Value* vals) {
        require(keys != nullptr, rows_of(items), "keys");
        require(vals != nullptr, rows_of(items), "vals");
        copy_out(items.keys, keys);
        copy_out(items.values.at(0), vals);
    }
    static void give(Tensor const& mask, bool* status) {
        if (status != nullptr) copy_out(mask, status);
    }
    template <class T>
    static void copy_out(Tensor const& tensor, T* to) {
        // Null only where there are no rows; said again for compilers that warn about a literal
        // nullptr.
        if (to == nullptr || tensor.bytes() == 0) return;
        std::memcpy(static_cast<void*>(to), tensor.data(), tensor.bytes());
    }

    ShardedMap map_;
};

/// The name it has where the devices are GPUs.
template <class Key, class Value, class Policy = HashPolicy<Key>>
using MultiGpuHashTable = MultiDeviceHashTable<Key, Value, Policy>;

}  // namespace tensorhash
