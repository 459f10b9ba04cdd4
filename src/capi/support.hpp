// Shared by the C calls: turns exceptions into codes, checks arguments, borrows input arrays,
// copies results out.
#pragma once

#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "capi/place.hpp"
#include "tensorhash/c.h"
#include "tensorhash/error.hpp"
#include "tensorhash/hash_map.hpp"
#include "tensorhash/optimizer.hpp"

namespace tensorhash::capi {

/// Stores the message for th_last_error() on this thread. Returns `status`.
th_status failed(th_status status, char const* what) noexcept;

template <class Body>
th_status guarded(Body&& body) noexcept {
    try {
        body();
        return TH_OK;
    } catch (TypeError const& e) {
        return failed(TH_TYPE_ERROR, e.what());
    } catch (ValueError const& e) {
        return failed(TH_VALUE_ERROR, e.what());
    } catch (IndexError const& e) {
        return failed(TH_INDEX_ERROR, e.what());
    } catch (KeyError const& e) {
        return failed(TH_KEY_ERROR, e.what());
    } catch (DeviceError const& e) {
        return failed(TH_DEVICE_ERROR, e.what());
    } catch (FormatError const& e) {
        return failed(TH_FORMAT_ERROR, e.what());
    } catch (SystemError const& e) {
        return failed(TH_SYSTEM_ERROR, e.what());
    } catch (CorruptTable const& e) {
        return failed(TH_CORRUPT_TABLE, e.what());
    } catch (std::bad_alloc const&) {
        return failed(TH_OUT_OF_MEMORY, "out of memory");
    } catch (std::length_error const&) {  // a vector above its maximum size
        return failed(TH_OUT_OF_MEMORY, "out of memory");
    } catch (std::exception const& e) {
        return failed(TH_UNKNOWN_ERROR, e.what());
    } catch (...) {
        return failed(TH_UNKNOWN_ERROR, "unknown error");
    }
}

void require(void const* pointer, char const* argument);
/// Throws ValueError unless `count` is at least 0.
void require_count(std::int64_t count, char const* argument);
/// Throws ValueError unless `given` is a value of an enum with the values 0 to `last`.
void require_choice(int given, int last, char const* argument);
/// Throws ValueError if there are more than `limit` live entries.
void require_limit(std::int64_t entries, std::int64_t limit);
/// The map behind a handle; throws ValueError if it is null.
template <class Handle>
auto& open(Handle* handle) {
    require(handle, "map");
    return handle->map;
}

Element to_element(th_element const& element);
std::vector<Element> to_elements(th_element const* values, std::int32_t count);
Optimizer to_optimizer(th_optimizer const* optimizer);
UpdateOptions to_options(th_missing missing, th_duplicates duplicates);
std::vector<Reduce> to_reduces(th_reduce const* reduce, std::size_t columns);

/// The caller's rows as a tensor, without a copy.
Tensor rows_of(void const* data, std::int64_t rows, Element const& element, char const* argument);
std::vector<Tensor> columns_of(std::vector<Element> const& elements, void const* const* values,
                               std::int64_t rows);
Element const& column_of(std::vector<Element> const& elements, std::int32_t column);
/// The default for missing keys: one row for all, or one per row. Null gives no tensor, which means
/// zeros.
Tensor missing_of(void const* missing, std::int32_t per_row, std::int64_t rows,
                  Element const& element);

/// Index: int32_t for HashMap, int64_t for ShardedHashMap. Null arrays are skipped.
template <class Result, class Index>
void copy_out(Result const& result, Index* indices, std::uint8_t* mask) {
    if (indices != nullptr) {
        copy_out(result.indices, static_cast<void*>(indices));
    }
    if (mask != nullptr) {
        copy_out(result.mask, static_cast<void*>(mask));
    }
}

/// Calls get_into() of either map for one column.
template <class Map>
void get_column(Map const& map, void const* keys, std::int64_t rows, std::int32_t column,
                void const* missing, std::int32_t per_row, void* values, std::uint8_t* mask) {
    std::vector<Element> const& elements = map.value_elements();
    Element const& element = column_of(elements, column);
    Tensor const batch = rows_of(keys, rows, map.key_element(), "keys");
    if (rows > 0) {
        require(values, "values");
    }
    auto const at = static_cast<std::size_t>(column);
    Device const place = place_of_arrays();
    std::vector<Tensor> defaults;
    if (missing != nullptr) {
        for (Element const& other : elements) {
            defaults.push_back(Tensor::zeros(other.shape, other.dtype, place));
        }
        defaults[at] = missing_of(missing, per_row, rows, element);
    }
    if (!place.is_cpu()) {
        copy_out(map.get(batch, defaults)[at], values);
        if (mask != nullptr) {
            copy_out(map.contains(batch), mask);
        }
        return;
    }
    std::vector<void*> out(elements.size(), nullptr);
    out[at] = values;
    static_assert(sizeof(bool) == 1);
    map.get_into(batch, defaults, out, reinterpret_cast<bool*>(mask));
}

/// Calls update() of either map.
template <class Map>
void update_rows(Map& map, void const* keys, std::int64_t rows, void const* gradients,
                 th_optimizer const* optimizer, th_missing missing, th_duplicates duplicates,
                 std::uint8_t* mask) {
    Optimizer const step = to_optimizer(optimizer);
    UpdateOptions const options = to_options(missing, duplicates);
    Tensor const batch = rows_of(keys, rows, map.key_element(), "keys");
    Tensor const gradient_rows =
        rows_of(gradients, rows, column_of(map.value_elements(), 0), "gradients");
    auto const updated = map.update(batch, gradient_rows, step, options);
    copy_out(updated, static_cast<std::int32_t*>(nullptr), mask);
}

/// Calls the caller's make_room and converts its th_room or th_sharded_room to the library's type.
template <class Made, class Room, class MakeRoom>
Made call_make_room(MakeRoom make_room, void* context, std::int64_t rows, std::size_t columns) {
    Room room{nullptr, nullptr, nullptr};
    if (make_room(context, rows, &room) != 0) {
        throw ValueError("make_room: the callback failed for " + std::to_string(rows) + " rows");
    }
    Made made{room.keys, {}, room.indices};
    if (room.values != nullptr) {
        made.values.assign(room.values, room.values + columns);
    }
    return made;
}

}  // namespace tensorhash::capi
