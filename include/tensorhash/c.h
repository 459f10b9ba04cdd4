/* The C interface: for front ends built by another compiler, and for other languages.
 *
 * Every call returns TH_OK or an error code; th_last_error() then has the sentence, per thread. A
 * null argument, a negative count or a rank above 63 is such an error. Arrays are contiguous, C
 * order, host memory: keys [rows, key bytes], indices int32 [rows], mask one byte per row, 0 or 1.
 * An array may be null if `rows` is 0; arrays that are written may be null where the call says so.
 * Calls on one map may come from any threads: readers run together, writers alone. A call that
 * fails changes nothing.
 *
 * Rules for callbacks (th_make_room, th_route):
 * - The library calls them only during the call that they were given to, on the thread of that
 *   call. A th_route is given to th_sharded_create and called during later calls on that map, on
 *   their threads: two threads may be in it at once. `context` is passed on and must live as long.
 * - They return 0, or anything else to end the call with TH_VALUE_ERROR and no change.
 * - th_make_room runs under the map's lock: calling the same map from it waits for ever. th_route
 *   runs outside the lock, but must not call its own map either: that would ask it again.
 * - No exception and no longjmp may leave them.
 * - Room must hold what was asked for, must not overlap the map's own memory or another array of
 *   the call, and must stay valid until the call returns. */
#ifndef TENSORHASH_C_H
#define TENSORHASH_C_H

#include <stddef.h>
#include <stdint.h>

#include "tensorhash/export.hpp"

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever a signature or a meaning below changes. Check th_abi_version() == TH_ABI_VERSION
 * after loading.
 * 2: th_map_get has `mask` and writes in place; th_map_gather, th_map_replace, th_map_export,
 * th_map_memory.
 * 3: th_memory_take, th_memory_give, th_memory_release.
 * 4: th_sharded_*, th_map_update, th_new_seed, TH_KEY_ERROR; th_memory_give returns a status. */
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
    TH_UNKNOWN_ERROR = 9,
    TH_KEY_ERROR = 10
} th_status;

/* Numbers as in tensorhash/dtype.hpp: 1 bool, 2..5 int8..int64, 6..9 uint8..uint64, 10 float16, 11
 * bfloat16, 12 float32, 13 float64. */
typedef struct th_element {
    int32_t dtype;
    int32_t rank;         /* 0 to 63 */
    int64_t const* shape; /* [rank] */
} th_element;

/* As in tensorhash/hash_map.hpp. */
typedef enum th_reduce { TH_FIRST = 0, TH_LAST = 1, TH_SUM = 2, TH_MIN = 3, TH_MAX = 4 } th_reduce;

typedef struct th_map th_map;

TH_API int th_abi_version(void);
TH_API char const* th_version(void);
/* What the last failing call on this thread said; "" if none failed. */
TH_API char const* th_last_error(void);

/* Memory from the library's own store of warm blocks, for large outputs: the first touch of fresh
 * pages may take longer than filling them. What is in it is undefined; the address is a multiple of
 * 64. */
typedef struct th_memory {
    void* data;
    int64_t bytes; /* at least what was asked for */
} th_memory;
TH_API th_status th_memory_take(int64_t bytes, th_memory* memory);
/* Gives back what th_memory_take gave, once; from any thread, at any time until the process
 * ends. */
TH_API th_status th_memory_give(th_memory memory);
/* Returns what is kept for later to the system; returns the number of bytes. */
TH_API int64_t th_memory_release(void);

/* A seed for a hash of the caller's own, as every table draws one: TENSORHASH_SEED if that is set,
 * else random bits. */
TH_API th_status th_new_seed(uint64_t* seed);

TH_API th_status th_map_create(int64_t init_capacity, th_element key, th_element const* values,
                               int32_t value_count, th_map** map);
/* Null is no error. */
TH_API void th_map_destroy(th_map* map);

TH_API th_status th_map_size(th_map const* map, int64_t* size);
TH_API th_status th_map_capacity(th_map const* map, int64_t* capacity);
TH_API th_status th_map_reserve(th_map* map, int64_t capacity);
TH_API th_status th_map_clear(th_map* map);
TH_API th_status th_map_validate(th_map const* map);

/* Indices and masks are written in the caller's memory; each may be null where it is not wanted.
 *
 * Adds new keys; rows of keys that were there are joined by `reduce`, one per column. values: one
 * array per column. */
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

/* As in tensorhash/optimizer.hpp: the numbers that an optimizer does not have are not read. */
typedef enum th_optimizer_kind { TH_SGD = 0, TH_ADAGRAD = 1, TH_ADAM = 2 } th_optimizer_kind;
typedef struct th_optimizer {
    th_optimizer_kind kind;
    double lr;
    double weight_decay;
    double momentum;                  /* SGD */
    int32_t nesterov;                 /* SGD, 0 or 1 */
    double initial_accumulator_value; /* Adagrad */
    double eps;                       /* Adagrad, Adam */
    double beta1;                     /* Adam */
    double beta2;                     /* Adam */
    int32_t decoupled_weight_decay;   /* Adam, 0 or 1 */
} th_optimizer;
typedef enum th_missing { TH_SKIP = 0, TH_INSERT = 1, TH_ERROR = 2 } th_missing;
typedef enum th_duplicates { TH_IN_ORDER = 0, TH_ADD_UP = 1 } th_duplicates;
/* A step for each row on the values of its key; gradients are rows of column 0's element. With
 * TH_INSERT new keys begin with zeros; with TH_ERROR an absent key is TH_KEY_ERROR. `mask`, if not
 * null: the key was there when its row came. */
TH_API th_status th_map_update(th_map* map, void const* keys, int64_t rows, void const* gradients,
                               th_optimizer const* optimizer, th_missing missing,
                               th_duplicates duplicates, uint8_t* mask);
/* The values of each key in one column, gathered straight into `values`; missing keys get `missing`
 * [row bytes, or rows * row bytes if per_row is not 0], or zeros if it is null. `mask`, if not
 * null: which rows are there. */
TH_API th_status th_map_get(th_map const* map, void const* keys, int64_t rows, int32_t column,
                            void const* missing, int32_t per_row, void* values, uint8_t* mask);
/* One column's rows at buffer indices as found before; -1 gives `missing`, as in th_map_get. */
TH_API th_status th_map_gather(th_map const* map, int32_t const* indices, int64_t rows,
                               int32_t column, void const* missing, int32_t per_row, void* values);
/* Everything out, these rows in; of equal keys the last wins. Others see the old table or the new
 * one. */
TH_API th_status th_map_replace(th_map* map, void const* keys, int64_t rows,
                                void const* const* values);
/* Live keys and values in ascending buffer index. Room for `limit` rows; fails with TH_VALUE_ERROR
 * if there are more. */
TH_API th_status th_map_items(th_map const* map, int64_t limit, void* keys, void* const* values,
                              int64_t* rows);

/* Room for exported rows; null where not wanted. */
typedef struct th_room {
    void* keys;
    void* const* values; /* one address per column, or null for none */
    int32_t* indices;
} th_room;
/* Makes room for `rows` rows. Called once, under the map's lock. */
typedef int (*th_make_room)(void* context, int64_t rows, th_room* room);
/* Up to `limit` live entries from buffer index `begin` on, ascending, straight into the room that
 * the caller makes when their number is known. *next: where to go on, -1 when there are no more. */
TH_API th_status th_map_export(th_map const* map, int64_t begin, int64_t limit,
                               th_make_room make_room, void* context, int64_t* next);
/* Bytes held by keys, values, index and bookkeeping. */
TH_API th_status th_map_memory(th_map const* map, int64_t* bytes);

TH_API th_status th_map_save(th_map const* map, char const* file_name);
/* Takes memory in proportion to the file, as SECURITY.md says; C has no way to set max_bytes. */
TH_API th_status th_map_load(char const* file_name, th_map** map);

/* One table over several devices, as tensorhash/sharded/sharded_map.hpp. The calls are th_map's,
 * with int64 indices: shard << 32 | index within the shard. Shards have the numbers of their
 * devices in the list that the map was created with. */
typedef struct th_sharded th_sharded;

/* Says which shard, 0 to shards - 1, each of `rows` keys belongs to; equal keys to the same,
 * always. Float keys come without -0 and with one NaN. */
typedef int (*th_route)(void* context, void const* keys, int64_t rows, int32_t shards,
                        int32_t* shard);
typedef struct th_policy {
    char const* name; /* "hash" or "mod"; with a `route` any other name, which files hold */
    th_route route;   /* null for the policies that the library has */
    void* context;
} th_policy;

/* devices: "cpu:0" to "cpu:63", each once. */
TH_API th_status th_sharded_create(int64_t init_capacity, th_element key, th_element const* values,
                                   int32_t value_count, char const* const* devices,
                                   int32_t device_count, th_policy policy, th_sharded** map);
/* Null is no error. */
TH_API void th_sharded_destroy(th_sharded* map);

/* Of one shard; of all if `shard` is -1. */
TH_API th_status th_sharded_size(th_sharded const* map, int32_t shard, int64_t* size);
TH_API th_status th_sharded_capacity(th_sharded const* map, int32_t shard, int64_t* capacity);
TH_API th_status th_sharded_reserve(th_sharded* map, int64_t capacity);
TH_API th_status th_sharded_clear(th_sharded* map);
TH_API th_status th_sharded_validate(th_sharded const* map);
TH_API th_status th_sharded_memory(th_sharded const* map, int64_t* bytes);
/* The shard that each key belongs to, there or not: int32 [rows]. */
TH_API th_status th_sharded_shard_of(th_sharded const* map, void const* keys, int64_t rows,
                                     int32_t* shard);

TH_API th_status th_sharded_upsert(th_sharded* map, void const* keys, int64_t rows,
                                   void const* const* values, th_reduce const* reduce,
                                   int64_t* indices, uint8_t* mask);
/* Adds new keys to one shard; a key of another shard is TH_VALUE_ERROR that names the row. */
TH_API th_status th_sharded_insert_into(th_sharded* map, int32_t shard, void const* keys,
                                        int64_t rows, void const* const* values, int64_t* indices,
                                        uint8_t* mask);
TH_API th_status th_sharded_activate(th_sharded* map, void const* keys, int64_t rows,
                                     int64_t* indices, uint8_t* mask);
TH_API th_status th_sharded_find(th_sharded const* map, void const* keys, int64_t rows,
                                 int64_t* indices, uint8_t* mask);
TH_API th_status th_sharded_erase(th_sharded* map, void const* keys, int64_t rows, uint8_t* mask);
/* Overwrites the values of keys that are there; of equal keys the last row wins. mask: was
 * there. */
TH_API th_status th_sharded_assign(th_sharded* map, void const* keys, int64_t rows,
                                   void const* const* values, uint8_t* mask);
TH_API th_status th_sharded_update(th_sharded* map, void const* keys, int64_t rows,
                                   void const* gradients, th_optimizer const* optimizer,
                                   th_missing missing, th_duplicates duplicates, uint8_t* mask);
TH_API th_status th_sharded_get(th_sharded const* map, void const* keys, int64_t rows,
                                int32_t column, void const* missing, int32_t per_row, void* values,
                                uint8_t* mask);
TH_API th_status th_sharded_replace(th_sharded* map, void const* keys, int64_t rows,
                                    void const* const* values);

typedef struct th_sharded_room {
    void* keys;
    void* const* values; /* one address per column, or null for none */
    int64_t* indices;
} th_sharded_room;
typedef int (*th_make_sharded_room)(void* context, int64_t rows, th_sharded_room* room);
/* Up to `limit` live entries at indices begin <= index < end, ascending. One shard's: from shard <<
 * 32 to (shard + 1) << 32. */
TH_API th_status th_sharded_export(th_sharded const* map, int64_t begin, int64_t end, int64_t limit,
                                   th_make_sharded_room make_room, void* context, int64_t* next);

TH_API th_status th_sharded_save(th_sharded const* map, char const* file_name);
/* Memory as with th_map_load. Without devices (null, 0): as many as were saved. A policy without a
 * name and a route: the saved one. */
TH_API th_status th_sharded_load(char const* file_name, char const* const* devices,
                                 int32_t device_count, th_policy policy, th_sharded** map);

#ifdef __cplusplus
}
#endif

#endif
