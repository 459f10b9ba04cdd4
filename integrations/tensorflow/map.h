// Wraps the engine's C interface in C++ and turns its status codes into TensorFlow's. Only C
// crosses the boundary, so that TensorFlow's compiler and ours may differ.
#ifndef TENSORHASH_TENSORFLOW_MAP_H_
#define TENSORHASH_TENSORFLOW_MAP_H_

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "status.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorhash/c.h"

namespace tensorhash_tf {

namespace tf = ::tensorflow;

inline absl::Status to_status(th_status code) {
    switch (code) {
        case TH_OK:
            return absl::OkStatus();
        case TH_TYPE_ERROR:
        case TH_VALUE_ERROR:
        case TH_INDEX_ERROR:
        case TH_DEVICE_ERROR:
            return invalid(th_last_error());
        case TH_OUT_OF_MEMORY:
            return absl::ResourceExhaustedError(absl::StrCat("tensorhash: ", th_last_error()));
        default:
            return absl::InternalError(absl::StrCat("tensorhash: ", th_last_error()));
    }
}

/// The engine's code for a dtype, or 0 if it has none.
inline std::int32_t engine_dtype(tf::DataType dtype) {
    switch (dtype) {
        case tf::DT_BOOL:
            return 1;
        case tf::DT_INT8:
            return 2;
        case tf::DT_INT16:
            return 3;
        case tf::DT_INT32:
            return 4;
        case tf::DT_INT64:
            return 5;
        case tf::DT_UINT8:
            return 6;
        case tf::DT_UINT16:
            return 7;
        case tf::DT_UINT32:
            return 8;
        case tf::DT_UINT64:
            return 9;
        case tf::DT_HALF:
            return 10;
        case tf::DT_BFLOAT16:
            return 11;
        case tf::DT_FLOAT:
            return 12;
        case tf::DT_DOUBLE:
            return 13;
        default:
            return 0;
    }
}

/// The dtype and shape of one key or one value.
struct ElementSpec {
    tf::DataType dtype = tf::DT_INVALID;
    tf::TensorShape shape;
};

/// The same for the engine. A result of get() must not outlive this object.
class EngineElement {
public:
    explicit EngineElement(ElementSpec const& element)
        : dtype_(engine_dtype(element.dtype)), rank_(element.shape.dims()) {
        auto const sizes = element.shape.dim_sizes();
        shape_.assign(sizes.begin(), sizes.end());
    }
    th_element get() const { return {dtype_, rank_, shape_.data()}; }

private:
    std::int32_t dtype_;
    std::int32_t rank_;
    std::vector<std::int64_t> shape_;
};

/// Refuses a libtensorhash that has a different version of the C interface.
inline absl::Status check_version() {
    if (th_abi_version() == TH_ABI_VERSION) {
        return absl::OkStatus();
    }
    return refused("tensorhash: the op library was built for version ", TH_ABI_VERSION,
                   " of the C interface, libtensorhash has ", th_abi_version());
}

/// The default for missing keys: one value for all, or one per row.
struct Missing {
    void const* data;
    bool per_row;
};

/// Adapts a C++ make_room to the engine's callback. Keeps its error; no exception escapes.
template <class MakeRoom>
struct RoomCallback {
    std::remove_reference_t<MakeRoom>& make_room;
    absl::Status status;

    template <class Room>
    static int call(void* opaque, std::int64_t rows, Room* room) {
        auto& here = *static_cast<RoomCallback*>(opaque);
        here.status = guarded([&] { return here.make_room(rows, room); });
        return here.status.ok() ? 0 : 1;
    }
};

/// Owns a map with at most one value column; the tables with strings use it. Empty until create()
/// succeeds.
class Map {
public:
    Map() = default;
    Map(Map&& other) noexcept : map_(std::exchange(other.map_, nullptr)) {}
    Map& operator=(Map&& other) noexcept {
        std::swap(map_, other.map_);
        return *this;
    }
    ~Map() { th_map_destroy(map_); }

    absl::Status create(ElementSpec const& key, ElementSpec const& value, std::int64_t capacity) {
        TF_RETURN_IF_ERROR(check_version());
        EngineElement const key_element(key);
        EngineElement const value_element(value);
        th_element const column = value_element.get();
        return to_status(th_map_create(capacity, key_element.get(), &column, 1, &map_));
    }

    /// A set: keys without a value.
    absl::Status create(ElementSpec const& key, std::int64_t capacity) {
        TF_RETURN_IF_ERROR(check_version());
        EngineElement const key_element(key);
        return to_status(th_map_create(capacity, key_element.get(), nullptr, 0, &map_));
    }

    std::int64_t size() const {
        std::int64_t size = 0;
        th_map_size(map_, &size);
        return size;
    }
    std::int64_t capacity() const {
        std::int64_t capacity = 0;
        th_map_capacity(map_, &capacity);
        return capacity;
    }
    std::int64_t memory() const {
        std::int64_t bytes = 0;
        th_map_memory(map_, &bytes);
        return bytes;
    }

    absl::Status accumulate(void const* keys, std::int64_t rows, void const* values,
                            th_reduce reduce, std::int32_t* indices = nullptr,
                            std::uint8_t* added = nullptr) {
        return to_status(th_map_accumulate(map_, keys, rows, &values, &reduce, indices, added));
    }
    absl::Status activate(void const* keys, std::int64_t rows, std::int32_t* indices,
                          std::uint8_t* added) {
        return to_status(th_map_activate(map_, keys, rows, indices, added));
    }
    absl::Status update(void const* keys, std::int64_t rows, void const* gradients,
                        th_optimizer const& optimizer, th_duplicates duplicates) {
        return to_status(
            th_map_update(map_, keys, rows, gradients, &optimizer, TH_SKIP, duplicates, nullptr));
    }
    absl::Status find(void const* keys, std::int64_t rows, std::int32_t* indices) const {
        return to_status(th_map_find(map_, keys, rows, indices, nullptr));
    }
    absl::Status gather(std::int32_t const* indices, std::int64_t rows, Missing missing,
                        void* values) const {
        return to_status(
            th_map_gather(map_, indices, rows, 0, missing.data, missing.per_row, values));
    }
    absl::Status erase(void const* keys, std::int64_t rows) {
        return to_status(th_map_erase(map_, keys, rows, nullptr));
    }
    absl::Status clear() { return to_status(th_map_clear(map_)); }
    absl::Status reserve(std::int64_t capacity) {
        return to_status(th_map_reserve(map_, capacity));
    }

    /// Calls make_room(rows, room) once, under the map's lock, and returns its error if it fails.
    template <class MakeRoom>
    absl::Status export_from(std::int64_t begin, std::int64_t limit, std::int64_t* next,
                             MakeRoom&& make_room) const {
        RoomCallback<MakeRoom> callback{make_room, absl::OkStatus()};
        th_status const code = th_map_export(
            map_, begin, limit, &RoomCallback<MakeRoom>::template call<th_room>, &callback, next);
        return callback.status.ok() ? to_status(code) : callback.status;
    }

private:
    th_map* map_ = nullptr;
};

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_MAP_H_
