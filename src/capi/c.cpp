// The C interface to HashMap, and the calls that need no map: versions, memory and seeds.
#include "capi/support.hpp"
#include "runtime/memory.hpp"
#include "runtime/seed.hpp"
#include "tensorhash/memory.hpp"
#include "tensorhash/version.hpp"

struct th_map {
    tensorhash::HashMap map;
};

using namespace tensorhash;
using namespace tensorhash::capi;

extern "C" {

int th_abi_version(void) { return TH_ABI_VERSION; }
char const* th_version(void) { return TENSORHASH_VERSION; }

th_status th_memory_take(int64_t bytes, th_memory* memory) {
    return guarded([&] {
        require(memory, "memory");
        require_count(bytes, "bytes");
        auto const raw = runtime::Block(static_cast<std::size_t>(bytes)).release();
        *memory = {raw.data, static_cast<int64_t>(raw.bytes)};
    });
}
th_status th_memory_give(th_memory memory) {
    return guarded([&] {
        require_count(memory.bytes, "memory.bytes");
        if (memory.bytes > 0) {
            require(memory.data, "memory.data");
        }
        runtime::Block::adopt(
            {static_cast<unsigned char*>(memory.data), static_cast<std::size_t>(memory.bytes)});
    });
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
        *map = new th_map{
            HashMap(Capacity{init_capacity}, to_element(key), to_elements(values, value_count))};
    });
}

th_status th_map_create_on(char const* device, int64_t init_capacity, th_element key,
                           th_element const* values, int32_t value_count, th_map** map) {
    return guarded([&] {
        require(device, "device");
        require(map, "map");
        Device const place = Device::parse(device);
        require_usable(place, "device");
        *map = new th_map{HashMap(Capacity{init_capacity}, to_element(key),
                                  to_elements(values, value_count), place)};
    });
}

void th_map_destroy(th_map* map) { delete map; }

th_status th_map_size(th_map const* map, int64_t* size) {
    return guarded([&] {
        HashMap const& table = open(map);
        require(size, "size");
        *size = table.size();
    });
}
th_status th_map_capacity(th_map const* map, int64_t* capacity) {
    return guarded([&] {
        HashMap const& table = open(map);
        require(capacity, "capacity");
        *capacity = table.capacity();
    });
}
th_status th_map_reserve(th_map* map, int64_t capacity) {
    return guarded([&] { open(map).reserve(Capacity{capacity}); });
}
th_status th_map_shrink_to_fit(th_map* map) {
    return guarded([&] { open(map).shrink_to_fit(); });
}
th_status th_map_clear(th_map* map) {
    return guarded([&] { open(map).clear(); });
}
th_status th_map_validate(th_map const* map) {
    return guarded([&] { open(map).validate(); });
}

th_status th_map_accumulate(th_map* map, void const* keys, int64_t rows, void const* const* values,
                            th_reduce const* reduce, int32_t* indices, uint8_t* mask) {
    return guarded([&] {
        HashMap& table = open(map);
        auto const& elements = table.value_elements();
        auto const reduces = to_reduces(reduce, elements.size());
        Tensor const batch = rows_of(keys, rows, table.key_element(), "keys");
        copy_out(table.accumulate(batch, columns_of(elements, values, rows), reduces), indices,
                 mask);
    });
}

th_status th_map_insert(th_map* map, void const* keys, int64_t rows, void const* const* values,
                        int32_t* indices, uint8_t* mask) {
    return guarded([&] {
        HashMap& table = open(map);
        Tensor const batch = rows_of(keys, rows, table.key_element(), "keys");
        copy_out(table.insert(batch, columns_of(table.value_elements(), values, rows)), indices,
                 mask);
    });
}

th_status th_map_activate(th_map* map, void const* keys, int64_t rows, int32_t* indices,
                          uint8_t* mask) {
    return guarded([&] {
        HashMap& table = open(map);
        copy_out(table.activate(rows_of(keys, rows, table.key_element(), "keys")), indices, mask);
    });
}

th_status th_map_find(th_map const* map, void const* keys, int64_t rows, int32_t* indices,
                      uint8_t* mask) {
    return guarded([&] {
        HashMap const& table = open(map);
        copy_out(table.find(rows_of(keys, rows, table.key_element(), "keys")), indices, mask);
    });
}

th_status th_map_erase(th_map* map, void const* keys, int64_t rows, uint8_t* mask) {
    return guarded([&] {
        HashMap& table = open(map);
        Tensor const erased = table.erase(rows_of(keys, rows, table.key_element(), "keys"));
        if (mask != nullptr) {
            copy_out(erased, mask);
        }
    });
}

th_status th_map_update(th_map* map, void const* keys, int64_t rows, void const* gradients,
                        th_optimizer const* optimizer, th_missing missing, th_duplicates duplicates,
                        uint8_t* mask) {
    return guarded([&] {
        update_rows(open(map), keys, rows, gradients, optimizer, missing, duplicates, mask);
    });
}

th_status th_map_get(th_map const* map, void const* keys, int64_t rows, int32_t column,
                     void const* missing, int32_t per_row, void* values, uint8_t* mask) {
    return guarded(
        [&] { get_column(open(map), keys, rows, column, missing, per_row, values, mask); });
}

th_status th_map_gather(th_map const* map, int32_t const* indices, int64_t rows, int32_t column,
                        void const* missing, int32_t per_row, void* values) {
    return guarded([&] {
        HashMap const& table = open(map);
        Element const& element = column_of(table.value_elements(), column);
        Tensor const batch = rows_of(indices, rows, Element{Dtype::Int32, {}}, "indices");
        if (rows > 0) {
            require(values, "values");
        }
        table.gather_into(batch, static_cast<std::size_t>(column),
                          missing_of(missing, per_row, rows, element), values);
    });
}

th_status th_map_replace(th_map* map, void const* keys, int64_t rows, void const* const* values) {
    return guarded([&] {
        HashMap& table = open(map);
        Tensor const batch = rows_of(keys, rows, table.key_element(), "keys");
        table.replace(batch, columns_of(table.value_elements(), values, rows));
    });
}

th_status th_map_export(th_map const* map, int64_t begin, int64_t limit, th_make_room make_room,
                        void* context, int64_t* next) {
    return guarded([&] {
        HashMap const& table = open(map);
        require(reinterpret_cast<void const*>(make_room), "make_room");
        require(next, "next");
        *next = table.export_from(begin, limit, [&](std::int64_t rows) {
            return call_make_room<ExportRoom, th_room>(make_room, context, rows,
                                                       table.value_elements().size());
        });
    });
}

th_status th_map_memory(th_map const* map, int64_t* bytes) {
    return guarded([&] {
        HashMap const& table = open(map);
        require(bytes, "bytes");
        *bytes = static_cast<std::int64_t>(table.memory_usage().total());
    });
}

th_status th_map_items(th_map const* map, int64_t limit, void* keys, void* const* values,
                       int64_t* rows) {
    return guarded([&] {
        HashMap const& table = open(map);
        require(rows, "rows");
        require_count(limit, "limit");
        Items const items = table.items();
        std::int64_t const count = items.keys.shape()[0];
        require_limit(count, limit);
        if (count > 0) {
            require(keys, "keys");
        }
        for (std::size_t i = 0; count > 0 && i < items.values.size(); ++i) {
            require(values, "values");
            require(values[i], "values");
        }
        copy_out(items.keys, keys);
        for (std::size_t i = 0; count > 0 && i < items.values.size(); ++i) {
            copy_out(items.values[i], values[i]);
        }
        *rows = count;
    });
}

th_status th_map_save(th_map const* map, char const* file_name) {
    return guarded([&] {
        HashMap const& table = open(map);
        require(file_name, "file_name");
        table.save(file_name);
    });
}

th_status th_map_load(char const* file_name, th_map** map) {
    return guarded([&] {
        require(file_name, "file_name");
        require(map, "map");
        *map = new th_map{HashMap::load(file_name)};
    });
}

}  // extern "C"
