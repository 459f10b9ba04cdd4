// The C interface over HashMap: borrowed arrays in, copies out, exceptions turned into codes.
#include "tensorhash/c.h"

#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "runtime/memory.hpp"
#include "runtime/seed.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/hash_map.hpp"
#include "tensorhash/memory.hpp"
#include "tensorhash/version.hpp"

struct th_map {
    tensorhash::HashMap map;
};

namespace {

using namespace tensorhash;

thread_local std::string last_error;

th_status failed(th_status status, char const* what) noexcept {
    try {
        last_error = what;
    } catch (std::bad_alloc const&) {
        last_error.clear();
    }
    return status;
}

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
    } catch (std::exception const& e) {
        return failed(TH_UNKNOWN_ERROR, e.what());
    }
}

void require(void const* pointer, char const* argument) {
    if (pointer == nullptr) {
        throw ValueError(std::string(argument) + ": expected an address, got null");
    }
}

Element to_element(th_element const& element) {
    if (element.dtype < 1 || element.dtype > static_cast<int>(Dtype::Float64) || element.rank < 0) {
        throw TypeError("element: expected a dtype of 1 to 13 and a rank of at least 0, got " +
                        std::to_string(element.dtype) + " and " + std::to_string(element.rank));
    }
    if (element.rank > 0) {
        require(element.shape, "element.shape");
    }
    return {static_cast<Dtype>(element.dtype), Shape(element.shape, element.shape + element.rank)};
}

/// The caller's rows as a tensor; nothing is copied.
Tensor rows_of(void const* data, std::int64_t rows, Element const& element, char const* argument) {
    if (rows < 0) {
        throw ValueError("rows: expected at least 0, got " + std::to_string(rows));
    }
    if (rows > 0) {
        require(data, argument);
    }
    Shape shape{rows};
    shape.insert(shape.end(), element.shape.begin(), element.shape.end());
    return Tensor::borrow(data, std::move(shape), element.dtype);
}

std::vector<Tensor> columns_of(HashMap const& map, void const* const* values, std::int64_t rows) {
    std::vector<Tensor> columns;
    for (Element const& element : map.value_elements()) {
        if (rows > 0) {
            require(values, "values");
        }
        void const* const data = rows > 0 ? values[columns.size()] : nullptr;
        columns.push_back(rows_of(data, rows, element, "values"));
    }
    return columns;
}

Element const& column_of(HashMap const& map, std::int32_t column) {
    auto const& elements = map.value_elements();
    if (column < 0 || static_cast<std::size_t>(column) >= elements.size()) {
        throw IndexError("column: expected 0 to " + std::to_string(elements.size()) +
                         " less one, got " + std::to_string(column));
    }
    return elements[static_cast<std::size_t>(column)];
}

/// What missing keys get: one row for all, or one each; null is no tensor, which means zeros.
Tensor missing_of(void const* missing, std::int32_t per_row, std::int64_t rows,
                  Element const& element) {
    if (missing == nullptr) {
        return {};
    }
    return per_row != 0 ? rows_of(missing, rows, element, "missing")
                        : Tensor::borrow(missing, element.shape, element.dtype);
}

void copy_out(Tensor const& from, void* to) {
    if (from.bytes() > 0) {
        std::memcpy(to, from.data(), from.bytes());
    }
}

void copy_out(Located const& located, std::int32_t* indices, std::uint8_t* mask) {
    if (indices != nullptr) {
        copy_out(located.indices, indices);
    }
    if (mask != nullptr) {
        copy_out(located.mask, mask);
    }
}

}  // namespace

extern "C" {

int th_abi_version(void) { return TH_ABI_VERSION; }
char const* th_version(void) { return TENSORHASH_VERSION; }
char const* th_last_error(void) { return last_error.c_str(); }

th_status th_memory_take(int64_t bytes, th_memory* memory) {
    return guarded([&] {
        require(memory, "memory");
        if (bytes < 0) {
            throw ValueError("bytes: expected at least 0, got " + std::to_string(bytes));
        }
        auto const raw = runtime::Block(static_cast<std::size_t>(bytes)).release();
        *memory = {raw.data, static_cast<int64_t>(raw.bytes)};
    });
}
void th_memory_give(th_memory memory) {
    runtime::Block::adopt(
        {static_cast<unsigned char*>(memory.data), static_cast<std::size_t>(memory.bytes)});
}
int64_t th_memory_release(void) { return static_cast<int64_t>(release_memory()); }

th_status th_new_seed(uint64_t* seed) {
    return guarded([&] {
        require(seed, "seed");
        *seed = runtime::new_seed();
    });
}

th_status th_map_create(int64_t init_capacity, th_element key, th_element const* values,
                        int32_t value_count, th_map** map) {
    return guarded([&] {
        require(map, "map");
        std::vector<Element> elements;
        for (int32_t i = 0; i < value_count; ++i) {
            require(values, "values");
            elements.push_back(to_element(values[i]));
        }
        *map = new th_map{HashMap(Capacity{init_capacity}, to_element(key), std::move(elements))};
    });
}

void th_map_destroy(th_map* map) { delete map; }

th_status th_map_size(th_map const* map, int64_t* size) {
    return guarded([&] { *size = map->map.size(); });
}
th_status th_map_capacity(th_map const* map, int64_t* capacity) {
    return guarded([&] { *capacity = map->map.capacity(); });
}
th_status th_map_reserve(th_map* map, int64_t capacity) {
    return guarded([&] { map->map.reserve(Capacity{capacity}); });
}
th_status th_map_clear(th_map* map) {
    return guarded([&] { map->map.clear(); });
}
th_status th_map_validate(th_map const* map) {
    return guarded([&] { map->map.validate(); });
}

th_status th_map_upsert(th_map* map, void const* keys, int64_t rows, void const* const* values,
                        th_reduce const* reduce, int32_t* indices, uint8_t* mask) {
    return guarded([&] {
        std::vector<Reduce> reduces;
        for (std::size_t i = 0; i < map->map.value_elements().size(); ++i) {
            require(reduce, "reduce");
            if (reduce[i] < TH_FIRST || reduce[i] > TH_MAX) {
                throw ValueError("reduce: expected 0 to 4, got " + std::to_string(reduce[i]));
            }
            reduces.push_back(static_cast<Reduce>(reduce[i]));
        }
        Tensor const batch = rows_of(keys, rows, map->map.key_element(), "keys");
        copy_out(map->map.accumulate(batch, columns_of(map->map, values, rows), reduces), indices,
                 mask);
    });
}

th_status th_map_insert(th_map* map, void const* keys, int64_t rows, void const* const* values,
                        int32_t* indices, uint8_t* mask) {
    return guarded([&] {
        Tensor const batch = rows_of(keys, rows, map->map.key_element(), "keys");
        copy_out(map->map.insert(batch, columns_of(map->map, values, rows)), indices, mask);
    });
}

th_status th_map_activate(th_map* map, void const* keys, int64_t rows, int32_t* indices,
                          uint8_t* mask) {
    return guarded([&] {
        copy_out(map->map.activate(rows_of(keys, rows, map->map.key_element(), "keys")), indices,
                 mask);
    });
}

th_status th_map_find(th_map const* map, void const* keys, int64_t rows, int32_t* indices,
                      uint8_t* mask) {
    return guarded([&] {
        copy_out(map->map.find(rows_of(keys, rows, map->map.key_element(), "keys")), indices, mask);
    });
}

th_status th_map_erase(th_map* map, void const* keys, int64_t rows, uint8_t* mask) {
    return guarded([&] {
        Tensor const erased = map->map.erase(rows_of(keys, rows, map->map.key_element(), "keys"));
        if (mask != nullptr) {
            copy_out(erased, mask);
        }
    });
}

th_status th_map_get(th_map const* map, void const* keys, int64_t rows, int32_t column,
                     void const* missing, int32_t per_row, void* values, uint8_t* mask) {
    return guarded([&] {
        Element const& element = column_of(map->map, column);
        Tensor const batch = rows_of(keys, rows, map->map.key_element(), "keys");
        if (rows > 0) {
            require(values, "values");
        }
        auto const at = static_cast<std::size_t>(column);
        std::vector<Tensor> defaults;
        if (missing != nullptr) {
            for (Element const& other : map->map.value_elements()) {
                defaults.push_back(Tensor::zeros(other.shape, other.dtype));
            }
            defaults[at] = missing_of(missing, per_row, rows, element);
        }
        std::vector<void*> out(map->map.value_elements().size(), nullptr);
        out[at] = values;
        static_assert(sizeof(bool) == 1);
        map->map.get_into(batch, defaults, out, reinterpret_cast<bool*>(mask));
    });
}

th_status th_map_gather(th_map const* map, int32_t const* indices, int64_t rows, int32_t column,
                        void const* missing, int32_t per_row, void* values) {
    return guarded([&] {
        Element const& element = column_of(map->map, column);
        Tensor const batch = rows_of(indices, rows, Element{Dtype::Int32, {}}, "indices");
        if (rows > 0) {
            require(values, "values");
        }
        map->map.gather_into(batch, static_cast<std::size_t>(column),
                             missing_of(missing, per_row, rows, element), values);
    });
}

th_status th_map_replace(th_map* map, void const* keys, int64_t rows, void const* const* values) {
    return guarded([&] {
        Tensor const batch = rows_of(keys, rows, map->map.key_element(), "keys");
        map->map.replace(batch, columns_of(map->map, values, rows));
    });
}

th_status th_map_export(th_map const* map, int64_t begin, int64_t limit, th_make_room make_room,
                        void* context, int64_t* next) {
    return guarded([&] {
        require(reinterpret_cast<void const*>(make_room), "make_room");
        require(next, "next");
        *next = map->map.export_from(begin, limit, [&](std::int64_t rows) {
            th_room room{nullptr, nullptr, nullptr};
            if (make_room(context, rows, &room) != 0) {
                throw ValueError("make_room: no room for " + std::to_string(rows) + " rows");
            }
            ExportRoom made{room.keys, {}, room.indices};
            if (room.values != nullptr) {
                made.values.assign(room.values, room.values + map->map.value_elements().size());
            }
            return made;
        });
    });
}

th_status th_map_memory(th_map const* map, int64_t* bytes) {
    return guarded([&] { *bytes = static_cast<std::int64_t>(map->map.memory_usage().total()); });
}

th_status th_map_items(th_map const* map, int64_t limit, void* keys, void* const* values,
                       int64_t* rows) {
    return guarded([&] {
        Items const items = map->map.items();
        std::int64_t const count = items.keys.shape()[0];
        if (count > limit) {
            throw ValueError("limit: expected at least the " + std::to_string(count) +
                             " live entries, got " + std::to_string(limit));
        }
        copy_out(items.keys, keys);
        for (std::size_t i = 0; i < items.values.size(); ++i) {
            copy_out(items.values[i], values[i]);
        }
        *rows = count;
    });
}

th_status th_map_save(th_map const* map, char const* file_name) {
    return guarded([&] { map->map.save(file_name); });
}

th_status th_map_load(char const* file_name, th_map** map) {
    return guarded([&] {
        require(map, "map");
        *map = new th_map{HashMap::load(file_name)};
    });
}

}  // extern "C"
