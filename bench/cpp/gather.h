/* The gather limit: the memory limit of a lookup table on this machine.
 * libtensorhash-gather.so, plain C for ctypes.
 *
 * For each key of an array it reads one cache line (64 bytes, prefetched) of a block as large as a
 * table's index, and writes 4 + 1 bytes. This is all that a lookup must read and write, without its
 * decisions. Memory is mapped, in huge pages if possible, and touched before use, like the
 * library's own. th_gather_make starts the threads, which sleep between calls.
 *
 *     lib = ctypes.CDLL("build/bench/libtensorhash-gather.so")
 *     lib.th_gather_make.restype = ctypes.c_void_p
 *     sizes = c_int64(index_bytes), c_int64(key_buffer_bytes)
 *     gather = ctypes.c_void_p(lib.th_gather_make(*sizes, c_int32(threads)))
 *     lib.th_gather_run(gather, keys, c_int64(rows), c_int32(8), c_int32(1), out, mask)  # timed
 *     lib.th_gather_destroy(gather)
 */
#ifndef TENSORHASH_BENCH_GATHER_H
#define TENSORHASH_BENCH_GATHER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct th_gather th_gather;

/* index_bytes: the size of the table's index (MemoryUsage::index). key_buffer_bytes: the size of
 * its key buffer, needed for two cache lines per key and for th_gather_scatter, else 0. threads: 1
 * to 64, including the caller's. Null if an argument is out of range or there is no memory. */
__attribute__((visibility("default"))) th_gather* th_gather_make(int64_t index_bytes,
                                                                 int64_t key_buffer_bytes,
                                                                 int32_t threads);

/* One pass over `rows` contiguous keys of `key_bytes` each (4 to 256). lines_per_key: 1, or 2 for
 * keys that are not stored in the index: the second cache line is in the key buffer. out and mask
 * have one element per row and should be written before, because the first touch costs more than
 * the gather. Returns 0, or -1 if an argument is out of range. Not for two threads at once. */
__attribute__((visibility("default"))) int32_t th_gather_run(th_gather* gather, void const* keys,
                                                             int64_t rows, int32_t key_bytes,
                                                             int32_t lines_per_key, int32_t* out,
                                                             uint8_t* mask);

/* The scatter limit, what an insert must also do: it writes a key's word and a ticket to the cache
 * line, and copies keys and values to the key buffer, which must have room for both. */
__attribute__((visibility("default"))) int32_t
th_gather_scatter(th_gather* gather, void const* keys, int64_t rows, int32_t key_bytes,
                  void const* values, int32_t value_bytes, int32_t* out, uint8_t* mask);

__attribute__((visibility("default"))) void th_gather_destroy(th_gather* gather);

#ifdef __cplusplus
}
#endif

#endif
