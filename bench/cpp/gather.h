/* The gather limit: what memory alone allows a lookup table on this machine.
 * libtensorhash-gather.so, plain C for ctypes.
 *
 * It reads a key array, and for each key one line (64 bytes, prefetched) of a block as large as a
 * table's index, and writes 4 + 1 bytes a key: everything a lookup must read and write, and nothing
 * it must decide. Memory is mapped, asked to be in huge pages and touched before, as the library's
 * own. Threads are started by `make` and sleep between calls.
 *
 *     lib = ctypes.CDLL("build/bench/libtensorhash-gather.so")
 *     lib.th_gather_make.restype = ctypes.c_void_p
 *     gather = ctypes.c_void_p(lib.th_gather_make(c_int64(index_bytes), c_int64(key_buffer_bytes),
 * c_int32(threads))) lib.th_gather_run(gather, keys, c_int64(rows), c_int32(8), c_int32(1), out,
 * mask)     # this is what is timed lib.th_gather_destroy(gather)
 */
#ifndef TENSORHASH_BENCH_GATHER_H
#define TENSORHASH_BENCH_GATHER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct th_gather th_gather;

/* index_bytes: of the table's index (MemoryUsage::index). key_buffer_bytes: of its key buffer, rows
 * * key_bytes; only for two lines a key, else 0. threads: the caller's among them, 1 to 64. Null if
 * an argument is out of range or memory is short. */
__attribute__((visibility("default"))) th_gather* th_gather_make(int64_t index_bytes,
                                                                 int64_t key_buffer_bytes,
                                                                 int32_t threads);

/* One pass over `rows` keys of `key_bytes` each (4 to 256), contiguous. lines_per_key: 1, or 2 for
 * keys that are not stored in the index: the second line is one of the key buffer. out and mask
 * have a place for every row and should have been written before (first touch costs more than the
 * gather). Returns 0, or -1 if an argument is out of range. Not for two threads at once. */
__attribute__((visibility("default"))) int32_t th_gather_run(th_gather* gather, void const* keys,
                                                             int64_t rows, int32_t key_bytes,
                                                             int32_t lines_per_key, int32_t* out,
                                                             uint8_t* mask);

/* What an insert must do beside: the line is fetched to be written, a key's word and a ticket are
 * left in it, and keys and values are copied to a buffer; key_buffer_bytes has room for both. */
__attribute__((visibility("default"))) int32_t
th_gather_scatter(th_gather* gather, void const* keys, int64_t rows, int32_t key_bytes,
                  void const* values, int32_t value_bytes, int32_t* out, uint8_t* mask);

__attribute__((visibility("default"))) void th_gather_destroy(th_gather* gather);

#ifdef __cplusplus
}
#endif

#endif
