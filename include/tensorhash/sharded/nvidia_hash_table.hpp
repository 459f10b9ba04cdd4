// MutableNvidiaHashTableOfScalarsT: a multi-device table with the verbs of a TensorFlow lookup
// table. Does not need TensorFlow.
#pragma once

#include <cstddef>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "tensorhash/dtype.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/sharded/multi_device_hash_table.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash {

/// Maps scalar keys to scalar values over several devices. Keys have any shape, and values have the
/// same shape. As in TensorFlow, insert() overwrites, and of equal keys the last wins. A call that
/// throws changes nothing. Any thread may call. table() has the other verbs.
template <class K, class V>
class MutableNvidiaHashTableOfScalarsT {
    static_assert(HasDtype<K> && HasDtype<V>, "K and V must be C++ types that have a dtype");

public:
    /// One shard on each device.
    explicit MutableNvidiaHashTableOfScalarsT(
        std::size_t capacity = 0, std::vector<std::string> const& device_names = {"cpu:0"})
        : table_(capacity, device_names) {}

    static constexpr Dtype key_dtype() noexcept { return dtype_of<K>; }
    static constexpr Dtype value_dtype() noexcept { return dtype_of<V>; }

    /// The value of each key, in the shape of `keys`. Missing keys get `default_value`: a scalar,
    /// or one value per key.
    Tensor find(Tensor const& keys, Tensor const& default_value) const {
        Tensor const fill =
            default_value.rank() == 0 ? default_value : rows(default_value, keys, "default_value");
        std::shared_lock const lock(import_);
        return table_.map().get(flat(keys), {fill}).at(0).reshape(keys.shape());
    }
    Tensor find(Tensor const& keys, V default_value = V{}) const {
        Tensor scalar = Tensor::empty({}, dtype_of<V>);
        scalar.template as_mutable<V>()[0] = default_value;
        return find(keys, scalar);
    }
    /// Adds new keys and overwrites the values of the others.
    void insert(Tensor const& keys, Tensor const& values) {
        Tensor const columns = rows(values, keys, "values");
        std::shared_lock const lock(import_);
        table_.map().insert_or_assign(flat(keys), {columns});
    }
    /// Removes keys and ignores missing ones.
    void remove(Tensor const& keys) {
        std::shared_lock const lock(import_);
        table_.map().erase(flat(keys));
    }
    std::size_t size() const {
        std::shared_lock const lock(import_);
        return table_.get_size();
    }
    std::size_t memory_used() const {
        std::shared_lock const lock(import_);
        return sizeof(*this) + table_.map().memory_usage().total();
    }
    /// All keys and values at one moment, device by device.
    Items export_values() const {
        std::shared_lock const lock(import_);
        return table_.map().items();
    }
    /// Replaces all keys and values. Other calls of this class see the old table or the new one.
    void import_values(Tensor const& keys, Tensor const& values) {
        ShardedHashMap fresh = empty_like_this();
        fresh.insert_or_assign(flat(keys), {rows(values, keys, "values")});
        std::unique_lock const lock(import_);
        table_.map() = std::move(fresh);
    }

    /// Do not use the table while another thread calls import_values().
    MultiDeviceHashTable<K, V>& table() noexcept { return table_; }
    MultiDeviceHashTable<K, V> const& table() const noexcept { return table_; }

private:
    ShardedHashMap empty_like_this() const {
        std::shared_lock const lock(import_);
        ShardedHashMap const& map = table_.map();
        return ShardedHashMap(Capacity{0}, map.key_element(), map.value_elements(), map.devices(),
                              map.policy());
    }
    static Tensor flat(Tensor const& tensor) {
        return tensor.contiguous().reshape({tensor.size()});
    }
    static Tensor rows(Tensor const& tensor, Tensor const& keys, char const* argument) {
        if (tensor.shape() != keys.shape()) {
            throw ValueError(std::string(argument) + ": expected shape " + to_string(keys.shape()) +
                             ", that of keys, got " + to_string(tensor.shape()));
        }
        return flat(tensor);
    }

    MultiDeviceHashTable<K, V> table_;
    mutable std::shared_mutex import_;  // exclusive in import_values(), shared elsewhere
};

}  // namespace tensorhash
