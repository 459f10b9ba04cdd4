// The C interface to BoundedHashMap, and the entries that it evicts.
#include "tensorhash/bounded_map.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "capi/support.hpp"
#include "runtime/memory.hpp"

struct th_bounded {
    tensorhash::BoundedHashMap map;
};

struct th_evicted {
    tensorhash::Evicted entries;
};

namespace {

using namespace tensorhash;
using namespace tensorhash::capi;

/// No tensor for null.
Tensor scores_of(std::int64_t const* scores, std::int64_t rows) {
    return scores == nullptr ? Tensor() : rows_of(scores, rows, {Dtype::Int64, {}}, "scores");
}

/// Copies the parts that have an address.
void copy_parts(Evicted const& entries, void* keys, void* const* values, std::int64_t* scores) {
    if (keys != nullptr) {
        copy_out(entries.keys, keys);
    }
    for (std::size_t i = 0; values != nullptr && i < entries.values.size(); ++i) {
        if (values[i] != nullptr) {
            copy_out(entries.values[i], values[i]);
        }
    }
    if (scores != nullptr) {
        copy_out(entries.scores, scores);
    }
}

/// Throws ValueError unless both maps have the same elements, capacity and eviction.
void require_same_kind(BoundedHashMap const& made, BoundedHashMap const& wanted) {
    if (made.key_element() != wanted.key_element() ||
        made.value_elements() != wanted.value_elements() || made.capacity() != wanted.capacity() ||
        made.eviction() != wanted.eviction()) {
        throw ValueError(
            "data: expected the state of a map with the same key, values, max_capacity and "
            "eviction, with max_capacity " +
            std::to_string(wanted.capacity()) + ", got one with max_capacity " +
            std::to_string(made.capacity()));
    }
}

/// Runs a call that returns Admitted. The handle is made first: the call cannot be undone.
template <class Call>
void admit(Call&& call, std::int32_t* indices, std::uint8_t* mask, th_evicted** evicted) {
    auto made = std::make_unique<th_evicted>();
    Admitted admitted = call();
    copy_out(admitted, indices, mask);
    if (evicted != nullptr) {
        made->entries = std::move(admitted.evicted);
        *evicted = made.release();
    }
}

}  // namespace

extern "C" {

int64_t th_evicted_rows(th_evicted const* evicted) {
    return evicted == nullptr ? 0 : evicted->entries.keys.shape()[0];
}

th_status th_evicted_copy(th_evicted const* evicted, void* keys, void* const* values,
                          int64_t* scores) {
    return guarded([&] {
        require(evicted, "evicted");
        copy_parts(evicted->entries, keys, values, scores);
    });
}

void th_evicted_destroy(th_evicted* evicted) { delete evicted; }

th_status th_bounded_create(int64_t max_capacity, th_element key, th_element const* values,
                            int32_t value_count, th_eviction eviction, th_bounded** map) {
    return guarded([&] {
        require(map, "map");
        require_choice(eviction, TH_SCORE, "eviction");
        *map = new th_bounded{BoundedHashMap(Capacity{max_capacity}, to_element(key),
                                             to_elements(values, value_count),
                                             static_cast<Eviction>(eviction))};
    });
}

void th_bounded_destroy(th_bounded* map) { delete map; }

th_status th_bounded_size(th_bounded const* map, int64_t* size) {
    return guarded([&] {
        BoundedHashMap const& table = open(map);
        require(size, "size");
        *size = table.size();
    });
}
th_status th_bounded_clear(th_bounded* map) {
    return guarded([&] { open(map).clear(); });
}
th_status th_bounded_validate(th_bounded const* map) {
    return guarded([&] { open(map).validate(); });
}
th_status th_bounded_memory(th_bounded const* map, int64_t* bytes) {
    return guarded([&] {
        BoundedHashMap const& table = open(map);
        require(bytes, "bytes");
        *bytes = static_cast<std::int64_t>(table.memory_usage().total());
    });
}

th_status th_bounded_accumulate(th_bounded* map, void const* keys, int64_t rows,
                                void const* const* values, th_reduce const* reduce,
                                int64_t const* scores, int32_t* indices, uint8_t* mask,
                                th_evicted** evicted) {
    return guarded([&] {
        BoundedHashMap& table = open(map);
        auto const& elements = table.value_elements();
        auto const reduces = to_reduces(reduce, elements.size());
        Tensor const batch = rows_of(keys, rows, table.key_element(), "keys");
        auto const columns = columns_of(elements, values, rows);
        admit([&] { return table.accumulate(batch, columns, reduces, scores_of(scores, rows)); },
              indices, mask, evicted);
    });
}

th_status th_bounded_activate(th_bounded* map, void const* keys, int64_t rows,
                              int64_t const* scores, int32_t* indices, uint8_t* mask,
                              th_evicted** evicted) {
    return guarded([&] {
        BoundedHashMap& table = open(map);
        Tensor const batch = rows_of(keys, rows, table.key_element(), "keys");
        admit([&] { return table.activate(batch, scores_of(scores, rows)); }, indices, mask,
              evicted);
    });
}

th_status th_bounded_find(th_bounded const* map, void const* keys, int64_t rows, int32_t* indices,
                          uint8_t* mask) {
    return guarded([&] {
        BoundedHashMap const& table = open(map);
        copy_out(table.find(rows_of(keys, rows, table.key_element(), "keys")), indices, mask);
    });
}

th_status th_bounded_erase(th_bounded* map, void const* keys, int64_t rows, uint8_t* mask) {
    return guarded([&] {
        BoundedHashMap& table = open(map);
        Tensor const erased = table.erase(rows_of(keys, rows, table.key_element(), "keys"));
        if (mask != nullptr) {
            copy_out(erased, mask);
        }
    });
}

th_status th_bounded_assign(th_bounded* map, void const* keys, int64_t rows,
                            void const* const* values, uint8_t* mask) {
    return guarded([&] {
        BoundedHashMap& table = open(map);
        Tensor const batch = rows_of(keys, rows, table.key_element(), "keys");
        Tensor const found = table.assign(batch, columns_of(table.value_elements(), values, rows));
        if (mask != nullptr) {
            copy_out(found, mask);
        }
    });
}

th_status th_bounded_update(th_bounded* map, void const* keys, int64_t rows, void const* gradients,
                            th_optimizer const* optimizer, th_missing missing,
                            th_duplicates duplicates, uint8_t* mask) {
    return guarded([&] {
        update_rows(open(map), keys, rows, gradients, optimizer, missing, duplicates, mask);
    });
}

th_status th_bounded_get(th_bounded const* map, void const* keys, int64_t rows, int32_t column,
                         void const* missing, int32_t per_row, void* values, uint8_t* mask) {
    return guarded(
        [&] { get_column(open(map), keys, rows, column, missing, per_row, values, mask); });
}

th_status th_bounded_touch(th_bounded* map, void const* keys, int64_t rows, int64_t const* scores) {
    return guarded([&] {
        BoundedHashMap& table = open(map);
        Tensor const batch = rows_of(keys, rows, table.key_element(), "keys");
        table.get_and_touch(batch, {}, scores_of(scores, rows));
    });
}

th_status th_bounded_items(th_bounded const* map, int64_t limit, void* keys, void* const* values,
                           int64_t* scores, int64_t* rows) {
    return guarded([&] {
        BoundedHashMap const& table = open(map);
        require(rows, "rows");
        require_count(limit, "limit");
        Evicted const all = table.entries();
        std::int64_t const count = all.keys.shape()[0];
        require_limit(count, limit);
        copy_parts(all, keys, values, scores);
        *rows = count;
    });
}

// A block of memory may be larger than what was asked for, so the state begins with its own length.
th_status th_bounded_to_bytes(th_bounded const* map, th_memory* bytes) {
    return guarded([&] {
        BoundedHashMap const& table = open(map);
        require(bytes, "bytes");
        Tensor const state = table.to_bytes();
        auto const length = static_cast<std::uint64_t>(state.bytes());
        runtime::Block block(sizeof(length) + state.bytes());
        std::memset(block.data(), 0, block.bytes());
        std::memcpy(block.data(), &length, sizeof(length));
        std::memcpy(block.data() + sizeof(length), state.data(), state.bytes());
        auto const raw = block.release();
        *bytes = {raw.data, static_cast<std::int64_t>(raw.bytes)};
    });
}

th_status th_bounded_from_bytes(void const* data, int64_t bytes, th_bounded const* like,
                                th_bounded** map) {
    return guarded([&] {
        require(map, "map");
        Tensor const given = rows_of(data, bytes, {Dtype::UInt8, {}}, "data");
        std::uint64_t length = 0;
        auto const room = static_cast<std::uint64_t>(bytes);
        if (room >= sizeof(length)) {
            std::memcpy(&length, given.data(), sizeof(length));
        }
        if (room < sizeof(length) || length > room - sizeof(length)) {
            throw FormatError("data: expected the bytes of th_bounded_to_bytes, got " +
                              std::to_string(bytes) + " bytes, which are truncated or damaged");
        }
        auto const* const state = static_cast<unsigned char const*>(given.data()) + sizeof(length);
        auto made = std::make_unique<th_bounded>(th_bounded{BoundedHashMap::from_bytes(
            Tensor::borrow(state, {static_cast<std::int64_t>(length)}, Dtype::UInt8))});
        if (like != nullptr) {
            require_same_kind(made->map, like->map);
        }
        *map = made.release();
    });
}

}  // extern "C"
