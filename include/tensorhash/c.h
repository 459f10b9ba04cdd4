/* The C interface: for front ends built by another compiler, and for other languages.
 *
 * Every call returns TH_OK or an error code; th_last_error() then has the sentence, per thread. Arrays are contiguous, C
 * order, host memory: keys [rows, key bytes], indices int32 [rows], mask one byte a row, 0 or 1. Calls on one map may come
 * from any threads: readers run together, writers alone. A call that fails changes nothing. */
#ifndef TENSORHASH_C_H
#define TENSORHASH_C_H

#include <stddef.h>
#include <stdint.h>

#include "tensorhash/export.hpp"

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever a signature or a meaning below changes. Check th_abi_version() == TH_ABI_VERSION after loading.
 * 2: th_map_get has `mask` and writes in place; th_map_gather, th_map_replace,
 * th_map_export, th_map_memory.
 * 3: th_memory_take, th_memory_give, th_memory_release.
 * 4: th_new_seed. */
#define TH_ABI_VERSION 4

typedef enum th_status {
    TH_OK = 0,
    TH_TYPE_ERROR = 1,
    TH_VALUE_ERROR = 2,
    TH_INDEX_ERROR = 3,
    TH_DEVICE_ERROR = 4,
    TH_FORMAT_ERROR = 5,
    TH_SYSTEM_ERROR = 6,
    TH_OUT_OF_MEMORY = 7,
    TH_CORRUPT_TABLE = 8,
    TH_UNKNOWN_ERROR = 9
} th_status;

/* Numbers as in tensorhash/dtype.hpp: 1 bool, 2..5 int8..int64, 6..9 uint8..uint64, 10 float16, 11 bfloat16, 12 float32,
 * 13 float64. */
typedef struct th_element {
    int32_t dtype;
    int32_t rank;
    int64_t const* shape; /* [rank] */
} th_element;

/* As in tensorhash/hash_map.hpp. */
typedef enum th_reduce { TH_FIRST = 0, TH_LAST = 1, TH_SUM = 2, TH_MIN = 3, TH_MAX = 4 } th_reduce;

typedef struct th_map th_map;

TH_API int th_abi_version(void);
TH_API char const* th_version(void);
/* What the last failing call on this thread said; "" if none failed. */
TH_API char const* th_last_error(void);

/* Memory from the library's own store of warm blocks, for large outputs: the first touch of fresh pages may take longer
 * than filling them. What is in it is undefined; the address is a multiple of 64. */
typedef struct th_memory {
    void* data;
    int64_t bytes; /* at least what was asked for */
} th_memory;
TH_API th_status th_memory_take(int64_t bytes, th_memory* memory);
/* Gives back what th_memory_take gave, once; from any thread, at any time until the process ends. */
TH_API void th_memory_give(th_memory memory);
/* Returns what is kept for later to the system; returns the number of bytes. */
TH_API int64_t th_memory_release(void);

/* A seed for a hash of the caller's own, as every table draws one: TENSORHASH_SEED if that is set,
 * else random bits. */
TH_API th_status th_new_seed(uint64_t* seed);

TH_API th_status th_map_create(int64_t init_capacity, th_element key, th_element const* values,
                               int32_t value_count, th_map** map);
TH_API void th_map_destroy(th_map* map);

TH_API th_status th_map_size(th_map const* map, int64_t* size);
TH_API th_status th_map_capacity(th_map const* map, int64_t* capacity);
TH_API th_status th_map_reserve(th_map* map, int64_t capacity);
TH_API th_status th_map_clear(th_map* map);
TH_API th_status th_map_validate(th_map const* map);

/* Indices and masks are written in the caller's memory; each may be null where it is not wanted.
 *
 * Adds new keys; rows of keys that were there are joined by `reduce`, one per column. values: one array per column. */
TH_API th_status th_map_upsert(th_map* map, void const* keys, int64_t rows,
                               void const* const* values, th_reduce const* reduce, int32_t* indices,
                               uint8_t* mask);
/* The same with TH_FIRST for every column. */
TH_API th_status th_map_insert(th_map* map, void const* keys, int64_t rows,
                               void const* const* values, int32_t* indices, uint8_t* mask);
/* Adds new keys with values of zero. */
TH_API th_status th_map_activate(th_map* map, void const* keys, int64_t rows, int32_t* indices,
                                 uint8_t* mask);
/* -1 and 0 for keys that are not there. */
TH_API th_status th_map_find(th_map const* map, void const* keys, int64_t rows, int32_t* indices,
                             uint8_t* mask);
TH_API th_status th_map_erase(th_map* map, void const* keys, int64_t rows, uint8_t* mask);
/* The values of each key in one column, gathered straight into `values`; missing keys get `missing` [row bytes, or
 * rows * row bytes if per_row is not 0], or zeros if it is null. `mask`, if not null: which rows are there. */
TH_API th_status th_map_get(th_map const* map, void const* keys, int64_t rows, int32_t column,
                            void const* missing, int32_t per_row, void* values, uint8_t* mask);
/* One column's rows at buffer indices as found before; -1 gives `missing`, as in th_map_get. */
TH_API th_status th_map_gather(th_map const* map, int32_t const* indices, int64_t rows,
                               int32_t column, void const* missing, int32_t per_row, void* values);
/* Everything out, these rows in; of equal keys the last wins. Others see the old table or the new one. */
TH_API th_status th_map_replace(th_map* map, void const* keys, int64_t rows,
                                void const* const* values);
/* Live keys and values in ascending buffer index. Room for `limit` rows; fails with TH_VALUE_ERROR if there are more. */
TH_API th_status th_map_items(th_map const* map, int64_t limit, void* keys, void* const* values,
                              int64_t* rows);

/* Room for exported rows; null where not wanted. */
typedef struct th_room {
    void* keys;
    void* const* values; /* one address per column, or null for none */
    int32_t* indices;
} th_room;
/* Makes room for `rows` rows; anything but 0 ends the export with TH_VALUE_ERROR. Called once, under the map's lock: it
 * must not call the map. */
typedef int (*th_make_room)(void* context, int64_t rows, th_room* room);
/* Up to `limit` live entries from buffer index `begin` on, ascending, straight into the room that the caller makes when
 * their number is known. *next: where to go on, -1 when there are no more. */
TH_API th_status th_map_export(th_map const* map, int64_t begin, int64_t limit,
                               th_make_room make_room, void* context, int64_t* next);
/* Bytes held by keys, values, index and bookkeeping. */
TH_API th_status th_map_memory(th_map const* map, int64_t* bytes);

TH_API th_status th_map_save(th_map const* map, char const* file_name);
TH_API th_status th_map_load(char const* file_name, th_map** map);

#ifdef __cplusplus
}
#endif

#endif
