// MultiDeviceHashTable: a typed ShardedHashMap that takes plain pointers.
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

/// A thread's handle to a device. Devices need no resources, so it holds only the id.
struct Stream_event_resource {
    int device_id = -1;  ///< -1: not created, or destroyed
};

/// The number of rows of a batch, by value or by address. It is only read.
class RowCount {
public:
    RowCount(std::size_t rows) noexcept : rows_(rows) {}
    /// Throws ValueError for a null pointer. A template, so that a literal 0 is not a pointer.
    template <std::same_as<std::size_t> Length>
    RowCount(Length const* rows) : rows_(rows == nullptr ? refuse_null() : *rows) {}
    operator std::size_t() const noexcept { return rows_; }

private:
    [[noreturn]] static std::size_t refuse_null() {
        throw ValueError("len: expected the address of the number of rows, got a null pointer");
    }
    std::size_t rows_;
};

/// Key is a number, or a struct without padding that is compared by its bytes. Value is any
/// trivially copyable type. Policy is called as policy(shards, key); shards on GPUs take ModPolicy
/// and HashPolicy. On the CPU, pointers are host memory. With shards on GPUs, pointers are memory
/// of the resource's device, and work goes to its current stream; insert_from_cpu() and
/// dump_to_cpu() take host memory. An output `status` is one bool per row, or nullptr. Batches
/// apply in row order, and a call that throws changes nothing. Any thread may call: readers run
/// together, a writer alone. No key is reserved, and the table grows.
template <class Key, class Value, class Policy = HashPolicy<Key>>
class MultiDeviceHashTable {
    static_assert(dtype_of<Key> != Dtype::Undefined ||
                      std::has_unique_object_representations_v<Key>,
                  "Key must be a number or a struct without padding");
    static_assert(std::is_trivially_copyable_v<Value>, "Value must be trivially copyable");

public:
    /// One shard on each device "cuda:<id>", or on each "cpu:<id>" if there is no GPU.
    MultiDeviceHashTable(std::size_t capacity, int const* device_ids, int n,
                         Policy policy = Policy())
        : MultiDeviceHashTable(capacity, devices_of(device_ids, n), std::move(policy)) {}
    /// One shard on each named device.
    MultiDeviceHashTable(std::size_t capacity, std::vector<std::string> const& device_names,
                         Policy policy = Policy())
        : MultiDeviceHashTable(capacity, devices_of(device_names), std::move(policy)) {}

    MultiDeviceHashTable(MultiDeviceHashTable const&) = delete;
    MultiDeviceHashTable& operator=(MultiDeviceHashTable const&) = delete;

    Stream_event_resource stream_event_resource_create(int device_id) const {
        shard_of_device(device_id);
        return {device_id};
    }
    /// The same. Code for the original GPU class spells the name this way.
    Stream_event_resource stream_event_recource_create(int device_id) const {
        return stream_event_resource_create(device_id);
    }
    /// May be called twice.
    void stream_event_resource_destroy(Stream_event_resource& resource) const noexcept {
        resource.device_id = -1;
    }

    // On GPUs, keys, values and status are memory of the resource's device.

    /// Adds new keys; of equal keys the first row wins. Never overwrites. status: added.
    void insert(Key const* keys, Value const* vals, RowCount len, Stream_event_resource& resource,
                bool* status = nullptr) {
        Device const at = memory_of(resource);
        copy_out(map_.insert(key_rows(keys, len, at), {value_rows(vals, len, at)}).mask, status);
    }
    /// Overwrites the values of keys in the table; of equal keys the last row wins. status: found.
    void set(Key const* keys, Value const* vals, RowCount len, Stream_event_resource& resource,
             bool* status = nullptr) {
        Device const at = memory_of(resource);
        copy_out(map_.assign(key_rows(keys, len, at), {value_rows(vals, len, at)}), status);
    }
    /// The values, with zeros for missing keys. status: found.
    void get(Key const* keys, Value* vals, bool* status, RowCount len,
             Stream_event_resource& resource) const {
        Device const at = memory_of(resource);
        require(vals != nullptr, len, "vals");
        Tensor const rows = key_rows(keys, len, at);
        if (status != nullptr) {
            auto [found, mask] = map_.get_with_mask(rows);
            copy_out(found.at(0), vals);
            copy_out(mask, status);
        } else {
            copy_out(map_.get(rows).at(0), vals);
        }
    }
    /// The same with the argument order of the other verbs.
    void get(Key const* keys, Value* vals, RowCount len, Stream_event_resource& resource,
             bool* status = nullptr) const {
        get(keys, vals, status, len, resource);
    }
    /// Calls op.update(value, gradient) for each row with a key in the table: rows of one key in
    /// order, different keys on several threads at once. It must not use this table. If it throws,
    /// all values are restored. Tables on the CPU only. status: found.
    template <class Gradient, class Step>
        requires requires(Step& op, Value& value, Gradient const& gradient) {
            op.update(value, gradient);
        }
    void update(Key const* keys, Gradient const* gradients, RowCount len, Step& op,
                Stream_event_resource& resource, bool* status = nullptr) {
        check_resource(resource);
        require(gradients != nullptr, len, "gradients");
        auto const change = [&](std::size_t row, void* const* values) {
            op.update(*static_cast<Value*>(values[0]), gradients[row]);
        };
        copy_out(map_.update(key_rows(keys, len, {}), change), status);
    }
    /// ShardedHashMap::update with an optimizer; Value must be a float or a std::array of floats.
    /// The table has no columns for state: throws ValueError for all but Sgd without momentum.
    /// status: found.
    void update(Key const* keys, Value const* gradients, RowCount len, Optimizer const& optimizer,
                Stream_event_resource& resource, bool* status = nullptr) {
        Device const at = memory_of(resource);
        Tensor const gradient_rows = rows(gradients, len, "gradients", at);
        copy_out(map_.update(key_rows(keys, len, at), gradient_rows, optimizer).mask, status);
    }
    /// Removes keys and ignores missing ones. status: removed.
    void remove(Key const* keys, RowCount len, Stream_event_resource& resource,
                bool* status = nullptr) {
        copy_out(map_.erase(key_rows(keys, len, memory_of(resource))), status);
    }
    void clear(Stream_event_resource& resource) {
        check_resource(resource);
        map_.clear();
    }

    /// insert() from host memory into the shard of one device. If a key belongs to another device,
    /// throws a ValueError that names its row. The buffers are not needed.
    void insert_from_cpu(int device_id, Key const* keys, Value const* vals, RowCount len,
                         std::size_t buffer_len, int buffer_count = 2, bool* status = nullptr) {
        check_buffers(buffer_len, buffer_count);
        std::size_t const shard = shard_of_device(device_id);
        Tensor const added =
            map_.insert_into(shard, key_rows(keys, len, {}), {value_rows(vals, len, {})}).mask;
        copy_out(added, status);
    }
    /// Copies all keys and values of one device's shard to the host, in the order of their indices.
    /// dump_to_device() and dump_to_gpu() copy to memory of that device. Throws ValueError and
    /// writes nothing unless `len` is the size of the shard.
    void dump_to_cpu(int device_id, Key* keys, Value* vals, std::size_t len, std::size_t buffer_len,
                     int buffer_count = 2) const {
        check_buffers(buffer_len, buffer_count);
        dump(device_id, keys, vals, len, Device{});
    }
    void dump_to_device(int device_id, Key* keys, Value* vals, std::size_t len) const {
        dump(device_id, keys, vals, len, memory_of(device_id));
    }
    void dump_to_gpu(int device_id, Key* keys, Value* vals, std::size_t len) const {
        dump_to_device(device_id, keys, vals, len);
    }

    /// The same with a length by address. On entry `*len` is the room in `keys` and `vals`, on
    /// return the rows written. Throws ValueError and writes nothing if the room is too small.
    template <std::same_as<std::size_t> Length>
    void dump_to_cpu(int device_id, Key* keys, Value* vals, Length* len, std::size_t buffer_len,
                     int buffer_count = 2) const {
        check_buffers(buffer_len, buffer_count);
        dump(device_id, keys, vals, len, Device{});
    }
    template <std::same_as<std::size_t> Length>
    void dump_to_device(int device_id, Key* keys, Value* vals, Length* len) const {
        dump(device_id, keys, vals, len, memory_of(device_id));
    }
    template <std::same_as<std::size_t> Length>
    void dump_to_gpu(int device_id, Key* keys, Value* vals, Length* len) const {
        dump_to_device(device_id, keys, vals, len);
    }

    std::size_t get_size(int device_id) const {
        return static_cast<std::size_t>(map_.size(shard_of_device(device_id)));
    }
    /// The size of all devices together.
    std::size_t get_size() const { return static_cast<std::size_t>(map_.size()); }
    /// The table inside: HashMap's verbs, files and checks.
    ShardedHashMap& map() noexcept { return map_; }
    ShardedHashMap const& map() const noexcept { return map_; }

private:
    /// The most rows in a batch.
    static constexpr std::size_t kMaxLen = std::numeric_limits<std::int32_t>::max();

    MultiDeviceHashTable(std::size_t capacity, std::vector<Device> devices, Policy policy)
        : map_(Capacity{static_cast<std::int64_t>(capacity)}, element<Key>(), {element<Value>()},
               std::move(devices), named(std::move(policy))) {}

    /// The library's own form of its policies, which runs on every device.
    static ShardPolicy named(Policy policy) {
        constexpr bool is_integer = std::is_integral_v<Key> && dtype_of<Key> != Dtype::Bool &&
                                    dtype_of<Key> != Dtype::Undefined;
        if constexpr (std::is_same_v<Policy, HashPolicy<Key>>) {
            return hash_policy();
        } else if constexpr (is_integer && std::is_same_v<Policy, ModPolicy<Key>>) {
            return mod_policy();
        } else {
            return policy_of<Key>("typed", std::move(policy));
        }
    }
    static std::vector<Device> devices_of(int const* ids, int n) {
        require(ids != nullptr, n > 0 ? static_cast<std::size_t>(n) : 0, "device_ids");
        auto const type =
            device_count(Device::Type::Cuda) > 0 ? Device::Type::Cuda : Device::Type::Cpu;
        std::vector<Device> devices;
        for (int i = 0; i < n; ++i) devices.push_back({type, ids[i]});
        return devices;
    }
    static std::vector<Device> devices_of(std::vector<std::string> const& names) {
        std::vector<Device> devices;
        for (std::string const& name : names) devices.push_back(Device::parse(name));
        return devices;
    }
    /// The element type of a std::array; any other T is its own.
    template <class T>
    struct ItemOf {
        using type = T;
    };
    template <class T, std::size_t N>
    struct ItemOf<std::array<T, N>> {
        using type = T;
    };
    /// A number is a scalar of its dtype, a std::array of numbers a vector; all else is bytes.
    template <class T>
    static Element element() {
        using Item = typename ItemOf<T>::type;
        if constexpr (dtype_of<T> != Dtype::Undefined) {
            return {dtype_of<T>, {}};
        } else if constexpr (dtype_of<Item> != Dtype::Undefined) {
            return {dtype_of<Item>, {static_cast<std::int64_t>(sizeof(T) / sizeof(Item))}};
        } else {
            return {Dtype::UInt8, {static_cast<std::int64_t>(sizeof(T))}};
        }
    }
    template <class T>
    static Tensor rows(T const* data, std::size_t len, char const* argument, Device at) {
        require(data != nullptr, len, argument);
        Element const one = element<T>();
        Shape shape{static_cast<std::int64_t>(len)};
        shape.insert(shape.end(), one.shape.begin(), one.shape.end());
        return Tensor::borrow(static_cast<void const*>(data), shape, one.dtype, {}, at);
    }
    static Tensor key_rows(Key const* keys, std::size_t len, Device at) {
        return rows(keys, len, "keys", at);
    }
    static Tensor value_rows(Value const* vals, std::size_t len, Device at) {
        return rows(vals, len, "vals", at);
    }

    // Takes a bool, not the pointer: compilers assume that a function reads the memory behind a
    // pointer to const.
    static void require(bool given, std::size_t len, char const* argument) {
        if (len > kMaxLen) {
            throw ValueError("len: expected at most " + std::to_string(kMaxLen) + " rows, got " +
                             std::to_string(len) + "; split the batch");
        }
        if (!given && len > 0) {
            throw ValueError(std::string(argument) + ": expected memory for " +
                             std::to_string(len) + " elements, got a null pointer");
        }
    }
    void check_resource(Stream_event_resource const& resource) const {
        if (resource.device_id < 0) {
            throw ValueError(
                "resource: expected one from stream_event_resource_create(), got one that was "
                "never created or was destroyed");
        }
    }
    static void check_buffers(std::size_t buffer_len, int buffer_count) {
        if (buffer_len == 0 || buffer_count < 1) {
            throw ValueError("buffer_count, buffer_len: expected at least 1 each, got " +
                             std::to_string(buffer_count) + " and " + std::to_string(buffer_len));
        }
    }
    Device device_of(int device_id) const { return {map_.devices()[0].type, device_id}; }
    std::size_t shard_of_device(int device_id) const { return map_.shard_on(device_of(device_id)); }
    /// All devices of the CPU share the host's memory.
    Device memory_of(int device_id) const {
        Device const device = device_of(device_id);
        return device.is_cpu() ? Device{} : device;
    }
    Device memory_of(Stream_event_resource const& resource) const {
        check_resource(resource);
        return memory_of(resource.device_id);
    }
    static std::size_t rows_of(Items const& items) {
        return static_cast<std::size_t>(items.keys.shape()[0]);
    }
    [[noreturn]] void refuse_length(int device_id, char const* at_least, std::size_t size,
                                    std::size_t len) const {
        throw ValueError("len: expected " + std::string(at_least) + std::to_string(size) +
                         ", the size of " + to_string(device_of(device_id)) + ", got " +
                         std::to_string(len));
    }
    void dump(int device_id, Key* keys, Value* vals, std::size_t len, Device to) const {
        Items const items = map_.items(shard_of_device(device_id));
        if (auto const size = rows_of(items); size != len) refuse_length(device_id, "", size, len);
        write_items(items, keys, vals, to);
    }
    template <std::same_as<std::size_t> Length>
    void dump(int device_id, Key* keys, Value* vals, Length* len, Device to) const {
        std::size_t const room = RowCount(len);
        Items const items = map_.items(shard_of_device(device_id));
        std::size_t const size = rows_of(items);
        if (size > room) refuse_length(device_id, "at least ", size, room);
        write_items(items, keys, vals, to);
        *len = size;
    }
    static void write_items(Items const& items, Key* keys, Value* vals, Device to) {
        require(keys != nullptr, rows_of(items), "keys");
        require(vals != nullptr, rows_of(items), "vals");
        if (keys != nullptr) items.keys.copy_to(keys, to);
        if (vals != nullptr) items.values.at(0).copy_to(vals, to);
    }
    /// To the caller's memory, on the device of the caller's keys. Null: not wanted, or no rows.
    template <class T>
    static void copy_out(Tensor const& tensor, T* to) {
        if (to != nullptr) tensor.copy_to(to, tensor.device());
    }

    ShardedHashMap map_;
};

/// The name that code for several GPUs uses.
template <class Key, class Value, class Policy = HashPolicy<Key>>
using MultiGpuHashTable = MultiDeviceHashTable<Key, Value, Policy>;

}  // namespace tensorhash
