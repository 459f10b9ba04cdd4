/* The C interface, for other languages and for front ends built by another compiler.
 * Over 400 lines: one header declares all of it.
 *
 * - Every call returns TH_OK or an error code. th_last_error() then has the message, per thread. A
 *   null argument, a negative count or a rank above 63 is an error.
 * - Arrays are contiguous, in C order and in host memory (or see th_device_begin): keys of the
 *   table's key bytes per row, indices int32 [rows], mask one byte per row, 0 or 1. An array may be
 *   null if `rows` is 0. Output arrays may also be null where the call says so.
 * - Any thread may call any map: readers run together, a writer alone. A call that fails changes
 *   nothing.
 *
 * Rules for callbacks:
 * - A room callback (th_make_room, th_make_sharded_room) runs only during the call that it was
 *   passed to, on the same thread.
 * - A th_route stays with the map that was created or loaded with it. Later calls on the map run
 *   it on their own threads, so two threads may be in it at once. `context` must live as long as
 *   the map.
 * - A callback returns 0 for success. Any other result ends the call with TH_VALUE_ERROR and no
 *   change.
 * - A callback must not call its map. In a room callback that is a deadlock, because the map is
 *   locked. In a th_route it is an endless recursion.
 * - A callback must not throw and must not longjmp out.
 * - The room must be large enough, must not overlap the map's memory or another array of the call,
 *   and must stay valid until the call returns. */
#ifndef TENSORHASH_C_H
#define TENSORHASH_C_H

#include <stddef.h>
#include <stdint.h>

#include "tensorhash/export.hpp"

/* A caller may pass any number for a choice; the call then returns TH_VALUE_ERROR. In C++ that
 * needs an enum with a fixed type. */
#ifdef __cplusplus
#define TH_INT : int
#else
#define TH_INT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Increases whenever a signature or its meaning changes. After loading, check that
 * th_abi_version() == TH_ABI_VERSION.
 * 2: th_map_get has `mask` and writes in place. New: th_map_gather, th_map_replace, th_map_export,
 *    th_map_memory.
 * 3: New: th_memory_take, th_memory_give, th_memory_release.
 * 4: th_memory_give returns a status. New: th_sharded_*, th_map_update, th_new_seed,
 *    TH_KEY_ERROR.
 * 5: New: th_bounded_*, th_evicted_*, th_device_*, th_map_create_on. */
#define TH_ABI_VERSION 5

/* The result of a call. th_last_error() has the message. */
typedef enum th_status TH_INT {
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

/* dtype as in tensorhash/dtype.hpp: 1 bool, 2..5 int8..int64, 6..9 uint8..uint64, 10 float16, 11
 * bfloat16, 12 float32, 13 float64. */
typedef struct th_element {
    int32_t dtype;
    int32_t rank;         /* 0 to 63 */
    int64_t const* shape; /* [rank] */
} th_element;

/* As in tensorhash/reduce.hpp. */
typedef enum th_reduce TH_INT {
    TH_FIRST = 0,
    TH_LAST = 1,
    TH_SUM = 2,
    TH_MIN = 3,
    TH_MAX = 4,
    TH_PROD = 5,
    TH_ANY = 6,  /* bool columns */
    TH_ALL = 7,  /* bool columns */
    TH_COUNT = 8 /* integer columns: adds 1 per row, ignores the values */
} th_reduce;

/* A HashMap. */
typedef struct th_map th_map;

/* TH_ABI_VERSION of the loaded library. */
TH_API int th_abi_version(void);
/* The version of the loaded library, such as "0.1.0". */
TH_API char const* th_version(void);
/* The message of the last call that failed on this thread, or "". */
TH_API char const* th_last_error(void);

/* Memory for large outputs, uninitialised, aligned to 64 bytes. It comes from the library's cache
 * of freed blocks, because the first touch of a fresh page may take longer than filling it. */
typedef struct th_memory {
    void* data;
    int64_t bytes; /* at least the bytes requested */
} th_memory;
/* Takes memory; give it back with th_memory_give. */
TH_API th_status th_memory_take(int64_t bytes, th_memory* memory);
/* Returns memory of th_memory_take, once. Any thread may call this until the process ends. */
TH_API th_status th_memory_give(th_memory memory);
/* Returns all cached blocks to the system and reports their size in bytes. */
TH_API int64_t th_memory_release(void);

/* A seed for the caller's own hash, drawn as for a table: TENSORHASH_SEED if it is set, else random
 * bits. */
TH_API th_status th_new_seed(uint64_t* seed);

/* Calls on a device. From th_device_begin to th_device_end all arrays that this thread passes, also
 * output arrays, are memory of `device`, such as "cuda:0", and work is queued on `stream`: DLPack's
 * number of a stream, which is CUDA's handle, or 1 for the legacy default stream. Output arrays are
 * written when that stream comes to it. Numbers that a call returns, such as a size, are right at
 * once. The map must be on that device. Pairs may be nested; end the inner one first.
 * Not on a device: gather, export, save, bounded maps and routes. */
typedef struct th_device_scope th_device_scope;
/* TH_DEVICE_ERROR if this process cannot use the device; the message says why. */
TH_API th_status th_device_begin(char const* device, uintptr_t stream, th_device_scope** scope);
/* `scope` may be null. */
TH_API void th_device_end(th_device_scope* scope);
/* th_map_create on a device. */
TH_API th_status th_map_create_on(char const* device, int64_t init_capacity, th_element key,
                                  th_element const* values, int32_t value_count, th_map** map);

/* Makes an empty map that grows on demand. values: one element per column. */
TH_API th_status th_map_create(int64_t init_capacity, th_element key, th_element const* values,
                               int32_t value_count, th_map** map);
/* `map` may be null. */
TH_API void th_map_destroy(th_map* map);

/* The number of keys. */
TH_API th_status th_map_size(th_map const* map, int64_t* size);
/* The number of keys that fit without growth. */
TH_API th_status th_map_capacity(th_map const* map, int64_t* capacity);
/* Makes room for `capacity` keys. Never shrinks, never moves an entry. */
TH_API th_status th_map_reserve(th_map* map, int64_t capacity);
/* Gives back the memory that growth and erased keys left. Never moves an entry. */
TH_API th_status th_map_shrink_to_fit(th_map* map);
/* Removes all keys. */
TH_API th_status th_map_clear(th_map* map);
/* TH_CORRUPT_TABLE unless every key is found at its index and every index is live or free. */
TH_API th_status th_map_validate(th_map const* map);

/* In the calls below, the output arrays `indices` and `mask` may be null. */

/* Adds new keys. Combines every other row with the stored values by `reduce`, one entry per column.
 * values: one array per column. */
TH_API th_status th_map_accumulate(th_map* map, void const* keys, int64_t rows,
                                   void const* const* values, th_reduce const* reduce,
                                   int32_t* indices, uint8_t* mask);
/* The same with TH_FIRST for every column. */
TH_API th_status th_map_insert(th_map* map, void const* keys, int64_t rows,
                               void const* const* values, int32_t* indices, uint8_t* mask);
/* Adds new keys with zero values. */
TH_API th_status th_map_activate(th_map* map, void const* keys, int64_t rows, int32_t* indices,
                                 uint8_t* mask);
/* Missing keys get index -1 and mask 0. */
TH_API th_status th_map_find(th_map const* map, void const* keys, int64_t rows, int32_t* indices,
                             uint8_t* mask);
/* Removes keys. mask: which rows removed one. */
TH_API th_status th_map_erase(th_map* map, void const* keys, int64_t rows, uint8_t* mask);

/* As in tensorhash/optimizer.hpp. */
typedef enum th_optimizer_kind TH_INT {
    TH_SGD = 0,
    TH_ADAGRAD = 1,
    TH_ADAM = 2,
    TH_ROW_WISE_ADAGRAD = 3
} th_optimizer_kind;
/* The settings of an optimizer. Members of other optimizers are ignored. */
typedef struct th_optimizer {
    th_optimizer_kind kind;
    double lr;
    double weight_decay;
    double momentum;                  /* SGD */
    int32_t nesterov;                 /* SGD, 0 or 1 */
    double initial_accumulator_value; /* both Adagrads */
    double eps;                       /* both Adagrads, Adam */
    double beta1;                     /* Adam */
    double beta2;                     /* Adam */
    int32_t decoupled_weight_decay;   /* Adam, 0 or 1 */
} th_optimizer;
/* What an update does with a missing key. */
typedef enum th_missing TH_INT { TH_SKIP = 0, TH_INSERT = 1, TH_ERROR = 2 } th_missing;
/* What an update does with rows of equal keys. */
typedef enum th_duplicates TH_INT { TH_IN_ORDER = 0, TH_ADD_UP = 1 } th_duplicates;
/* Applies one optimizer step per row to the values of its key. Gradients have the dtype and element
 * shape of column 0. With TH_INSERT new keys start with zeros; with TH_ERROR a missing key is
 * TH_KEY_ERROR. mask: whether the key was in the table when its row was applied. */
TH_API th_status th_map_update(th_map* map, void const* keys, int64_t rows, void const* gradients,
                               th_optimizer const* optimizer, th_missing missing,
                               th_duplicates duplicates, uint8_t* mask);
/* Writes the values of each key in one column to `values`. Missing keys get `missing`: one row for
 * all keys, or one per key if per_row is not 0; zeros if it is null. mask: which keys were
 * found. */
TH_API th_status th_map_get(th_map const* map, void const* keys, int64_t rows, int32_t column,
                            void const* missing, int32_t per_row, void* values, uint8_t* mask);
/* Copies the rows of one column at buffer indices. -1 gives `missing`, as in th_map_get. */
TH_API th_status th_map_gather(th_map const* map, int32_t const* indices, int64_t rows,
                               int32_t column, void const* missing, int32_t per_row, void* values);
/* Replaces all entries by these rows; of equal keys the last row wins. Readers see the old table or
 * the new one. */
TH_API th_status th_map_replace(th_map* map, void const* keys, int64_t rows,
                                void const* const* values);
/* The live keys and values, ascending by buffer index. TH_VALUE_ERROR if there are more than
 * `limit` rows. */
TH_API th_status th_map_items(th_map const* map, int64_t limit, void* keys, void* const* values,
                              int64_t* rows);

/* The caller's memory for exported rows. Null parts are not exported. */
typedef struct th_room {
    void* keys;
    void* const* values; /* one address per column, or null for none */
    int32_t* indices;
} th_room;
/* Provides memory for `rows` rows. Called once, while the map is locked. */
typedef int (*th_make_room)(void* context, int64_t rows, th_room* room);
/* Copies up to `limit` live entries with indices from `begin` on, ascending, into the room that
 * `make_room` provides. *next: where to continue, or -1 at the end. */
TH_API th_status th_map_export(th_map const* map, int64_t begin, int64_t limit,
                               th_make_room make_room, void* context, int64_t* next);
/* The memory of keys, values, index and bookkeeping. */
TH_API th_status th_map_memory(th_map const* map, int64_t* bytes);

/* Writes the native file and replaces an old one atomically. */
TH_API th_status th_map_save(th_map const* map, char const* file_name);
/* Memory is limited in proportion to the file: see SECURITY.md. C has no max_bytes. */
TH_API th_status th_map_load(char const* file_name, th_map** map);

/* One table over several devices, as in tensorhash/sharded/sharded_map.hpp. The calls are those of
 * th_map, with int64 indices: shard << 32 | index within the shard. Shard i is on devices[i]. */
typedef struct th_sharded th_sharded;

/* Writes the shard of each key, 0 to shards - 1. Equal keys must always get the same shard. Float
 * keys arrive in canonical form: +0 for -0, and one bit pattern for every NaN. */
typedef int (*th_route)(void* context, void const* keys, int64_t rows, int32_t shards,
                        int32_t* shard);
/* Which shard a key belongs to. */
typedef struct th_policy {
    char const* name; /* "hash" or "mod"; with a `route` another name, which files store */
    th_route route;   /* null for "hash" and "mod" */
    void* context;
} th_policy;

/* devices: "cpu:0" to "cpu:63", each once, or devices of a plugin. */
TH_API th_status th_sharded_create(int64_t init_capacity, th_element key, th_element const* values,
                                   int32_t value_count, char const* const* devices,
                                   int32_t device_count, th_policy policy, th_sharded** map);
/* `map` may be null. */
TH_API void th_sharded_destroy(th_sharded* map);

/* Of one shard, or of all if `shard` is -1. */
TH_API th_status th_sharded_size(th_sharded const* map, int32_t shard, int64_t* size);
/* Of one shard, or of all if `shard` is -1. */
TH_API th_status th_sharded_capacity(th_sharded const* map, int32_t shard, int64_t* capacity);
/* Makes room for `capacity` evenly spread keys. */
TH_API th_status th_sharded_reserve(th_sharded* map, int64_t capacity);
/* Gives back the memory that growth and erased keys left, on every shard. */
TH_API th_status th_sharded_shrink_to_fit(th_sharded* map);
/* Removes all keys of all shards. */
TH_API th_status th_sharded_clear(th_sharded* map);
/* th_map_validate on each shard, and each key is on its own shard. */
TH_API th_status th_sharded_validate(th_sharded const* map);
/* The memory of all shards. */
TH_API th_status th_sharded_memory(th_sharded const* map, int64_t* bytes);
/* int32 [rows]: the shard of each key, whether the key is in the table or not. */
TH_API th_status th_sharded_shard_of(th_sharded const* map, void const* keys, int64_t rows,
                                     int32_t* shard);

/* As th_map_accumulate. */
TH_API th_status th_sharded_accumulate(th_sharded* map, void const* keys, int64_t rows,
                                       void const* const* values, th_reduce const* reduce,
                                       int64_t* indices, uint8_t* mask);
/* Adds new keys to one shard. If a key belongs to another, TH_VALUE_ERROR names its row. */
TH_API th_status th_sharded_insert_into(th_sharded* map, int32_t shard, void const* keys,
                                        int64_t rows, void const* const* values, int64_t* indices,
                                        uint8_t* mask);
/* As th_map_activate. */
TH_API th_status th_sharded_activate(th_sharded* map, void const* keys, int64_t rows,
                                     int64_t* indices, uint8_t* mask);
/* As th_map_find. */
TH_API th_status th_sharded_find(th_sharded const* map, void const* keys, int64_t rows,
                                 int64_t* indices, uint8_t* mask);
/* As th_map_erase. */
TH_API th_status th_sharded_erase(th_sharded* map, void const* keys, int64_t rows, uint8_t* mask);
/* Overwrites the values of keys in the table; of equal keys the last row wins. mask: which keys
 * were found. */
TH_API th_status th_sharded_assign(th_sharded* map, void const* keys, int64_t rows,
                                   void const* const* values, uint8_t* mask);
/* As th_map_update. */
TH_API th_status th_sharded_update(th_sharded* map, void const* keys, int64_t rows,
                                   void const* gradients, th_optimizer const* optimizer,
                                   th_missing missing, th_duplicates duplicates, uint8_t* mask);
/* As th_map_get. */
TH_API th_status th_sharded_get(th_sharded const* map, void const* keys, int64_t rows,
                                int32_t column, void const* missing, int32_t per_row, void* values,
                                uint8_t* mask);
/* As th_map_replace. */
TH_API th_status th_sharded_replace(th_sharded* map, void const* keys, int64_t rows,
                                    void const* const* values);

/* th_room with int64 indices. */
typedef struct th_sharded_room {
    void* keys;
    void* const* values; /* one address per column, or null for none */
    int64_t* indices;
} th_sharded_room;
/* Provides memory for `rows` rows, as th_make_room does. */
typedef int (*th_make_sharded_room)(void* context, int64_t rows, th_sharded_room* room);
/* Copies up to `limit` live entries with begin <= index < end, ascending, as th_map_export does.
 * Shard s has the indices s << 32 <= index < (s + 1) << 32. */
TH_API th_status th_sharded_export(th_sharded const* map, int64_t begin, int64_t end, int64_t limit,
                                   th_make_sharded_room make_room, void* context, int64_t* next);

/* Writes one file with all shards. */
TH_API th_status th_sharded_save(th_sharded const* map, char const* file_name);
/* The memory limit is that of th_map_load. Without devices (null, 0), saved shard i is on "cpu:i".
 * If the name and the route of `policy` are null, the saved policy applies. */
TH_API th_status th_sharded_load(char const* file_name, char const* const* devices,
                                 int32_t device_count, th_policy policy, th_sharded** map);

/* A BoundedHashMap: a map that holds at most max_capacity keys. A full one evicts entries and
 * returns them. The calls are those of th_map, with int32 indices; the index is -1 if
 * the map does not have the row's key when the call returns. */
typedef struct th_bounded th_bounded;

/* Which entry leaves a full map: the least recently used, or the one with the lowest score. */
typedef enum th_eviction TH_INT { TH_LRU = 0, TH_SCORE = 1 } th_eviction;

/* Evicted entries, in the order in which they left. */
typedef struct th_evicted th_evicted;
/* The number of entries; 0 for null. */
TH_API int64_t th_evicted_rows(th_evicted const* evicted);
/* Copies the entries. Null parts are not copied. scores: int64. */
TH_API th_status th_evicted_copy(th_evicted const* evicted, void* keys, void* const* values,
                                 int64_t* scores);
/* `evicted` may be null. */
TH_API void th_evicted_destroy(th_evicted* evicted);

/* max_capacity: at least 1. */
TH_API th_status th_bounded_create(int64_t max_capacity, th_element key, th_element const* values,
                                   int32_t value_count, th_eviction eviction, th_bounded** map);
/* `map` may be null. */
TH_API void th_bounded_destroy(th_bounded* map);
/* The number of keys. */
TH_API th_status th_bounded_size(th_bounded const* map, int64_t* size);
/* Removes all keys. */
TH_API th_status th_bounded_clear(th_bounded* map);
/* As th_map_validate. */
TH_API th_status th_bounded_validate(th_bounded const* map);
/* The memory of keys, values, index and bookkeeping. */
TH_API th_status th_bounded_memory(th_bounded const* map, int64_t* bytes);

/* As th_map_accumulate, and uses each key. scores: int64 [rows] for TH_SCORE, null for TH_LRU.
 * *evicted: to be destroyed by the caller. `evicted` may be null, which drops the entries. */
TH_API th_status th_bounded_accumulate(th_bounded* map, void const* keys, int64_t rows,
                                       void const* const* values, th_reduce const* reduce,
                                       int64_t const* scores, int32_t* indices, uint8_t* mask,
                                       th_evicted** evicted);
/* As th_map_activate. */
TH_API th_status th_bounded_activate(th_bounded* map, void const* keys, int64_t rows,
                                     int64_t const* scores, int32_t* indices, uint8_t* mask,
                                     th_evicted** evicted);
/* As th_map_find. It is no use of the keys. */
TH_API th_status th_bounded_find(th_bounded const* map, void const* keys, int64_t rows,
                                 int32_t* indices, uint8_t* mask);
/* As th_map_erase. */
TH_API th_status th_bounded_erase(th_bounded* map, void const* keys, int64_t rows, uint8_t* mask);
/* As th_sharded_assign. It is no use of the keys. */
TH_API th_status th_bounded_assign(th_bounded* map, void const* keys, int64_t rows,
                                   void const* const* values, uint8_t* mask);
/* As th_map_update, and uses each key that is found. Refuses TH_INSERT. */
TH_API th_status th_bounded_update(th_bounded* map, void const* keys, int64_t rows,
                                   void const* gradients, th_optimizer const* optimizer,
                                   th_missing missing, th_duplicates duplicates, uint8_t* mask);
/* As th_map_get. It is no use of the keys. */
TH_API th_status th_bounded_get(th_bounded const* map, void const* keys, int64_t rows,
                                int32_t column, void const* missing, int32_t per_row, void* values,
                                uint8_t* mask);
/* Uses the keys that are found. scores, or null: their new scores, for TH_SCORE. */
TH_API th_status th_bounded_touch(th_bounded* map, void const* keys, int64_t rows,
                                  int64_t const* scores);
/* The live keys, values and scores, ascending by buffer index. Null parts are not copied.
 * TH_VALUE_ERROR if there are more than `limit` rows. */
TH_API th_status th_bounded_items(th_bounded const* map, int64_t limit, void* keys,
                                  void* const* values, int64_t* scores, int64_t* rows);
/* The whole state, as bytes of th_memory_take; give them back with th_memory_give. A map that is
 * made of them evicts the same entries next. */
TH_API th_status th_bounded_to_bytes(th_bounded const* map, th_memory* bytes);
/* The map of th_bounded_to_bytes. like: null, or a map of the key, values, max_capacity and
 * eviction that the state must have. The memory limit is that of th_map_load. */
TH_API th_status th_bounded_from_bytes(void const* data, int64_t bytes, th_bounded const* like,
                                       th_bounded** map);

#ifdef __cplusplus
}
#endif

#endif
