// Compiles the per-row steps of include/tensorhash/step as CUDA device code, so that they stay
// valid CUDA. Nothing here is run or shipped: the CUDA back end will have its own launches.
#include "tensorhash/step/erase.hpp"
#include "tensorhash/step/find.hpp"
#include "tensorhash/step/flat.hpp"
#include "tensorhash/step/insert.hpp"
#include "tensorhash/step/vector_key.hpp"

namespace {

using namespace tensorhash::step;

static_assert(kBoundedProbes);

template <class Body>
__device__ void for_rows(std::size_t rows, Body const& body) {
    std::size_t const step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t row = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
         row < rows; row += step) {
        body(row);
    }
}

template <class Reader>
__global__ void find_rows(IndexView view, BatchView batch, std::size_t rows,
                          std::uint32_t* broken) {
    typename IndexOf<Reader, Exclusive>::type const index(view);
    for_rows(rows, [&](std::size_t row) {
        Match const at = find(index, index.hash(batch.keys, row), batch, row);
        if (at.buf_index == kUndecided) {
            Shared::store(broken, 1u);
        }
        batch.buf_indices[row] = at.buf_index;
        batch.positions[row] = at.position;
        batch.mask[row] = at.buf_index != kNotFound;
    });
}

template <class Reader>
__global__ void claim_rows(IndexView view, BatchView batch, std::size_t rows,
                           std::uint32_t* broken) {
    typename IndexOf<Reader, Shared>::type const index(view);
    for_rows(rows, [&](std::size_t row) {
        Claim const c = claim(index, index.hash(batch.keys, row), batch, row);
        if (c.claimed == Claimed::Beyond) {
            Shared::store(broken, 1u);
        }
        batch.positions[row] = c.position;
        batch.buf_indices[row] = c.buf_index;
    });
}

template <class Reader>
__global__ void join_late_rows(IndexView view, BatchView batch, std::size_t rows) {
    typename IndexOf<Reader, Shared>::type const index(view);
    for_rows(rows, [&](std::size_t row) { join_late(index, batch, row); });
}

template <class Reader>
__global__ void settle_rows(IndexView view, BatchView batch, std::size_t rows) {
    typename IndexOf<Reader, Exclusive>::type const index(view);
    for_rows(rows, [&](std::size_t row) { settle(index, batch, row); });
}

template <class Reader>
__global__ void publish_rows(IndexView view, BatchView batch, std::size_t rows,
                             std::uint32_t const* buf_indices) {
    typename IndexOf<Reader, Exclusive>::type const index(view);
    for_rows(rows, [&](std::size_t row) {
        if (batch.mask[row] != 0) {
            publish(index, batch, row, buf_indices[row]);
        }
    });
}

template <class Reader>
__global__ void mark_rows(IndexView view, BatchView batch, std::size_t rows) {
    typename IndexOf<Reader, Shared>::type const index(view);
    for_rows(rows, [&](std::size_t row) {
        if (batch.mask[row] != 0) {
            mark(index, batch, row);
        }
    });
}

template <class Reader>
__global__ void release_rows(IndexView view, BatchView batch, std::size_t rows) {
    typename IndexOf<Reader, Shared>::type const index(view);
    for_rows(rows, [&](std::size_t row) {
        batch.mask[row] = batch.mask[row] != 0 && holds_claim(index, batch, row);
        if (batch.mask[row] != 0) {
            release(index, batch.positions[row]);
        }
    });
}

template <class Reader>
__global__ void place_rows(IndexView view, std::size_t entries, std::uint32_t* broken) {
    typename IndexOf<Reader, Shared>::type const index(view);
    for_rows(entries, [&](std::size_t buf_index) {
        std::uint64_t const hash = index.hash(view.key_buffer, buf_index);
        if (!place(index, hash, static_cast<std::uint32_t>(buf_index))) {
            Shared::store(broken, 1u);
        }
    });
}

#define TH_INSTANTIATE(Reader)                                                                     \
    template __global__ void find_rows<Reader>(IndexView, BatchView, std::size_t, std::uint32_t*); \
    template __global__ void claim_rows<Reader>(IndexView, BatchView, std::size_t,                 \
                                                std::uint32_t*);                                   \
    template __global__ void join_late_rows<Reader>(IndexView, BatchView, std::size_t);            \
    template __global__ void settle_rows<Reader>(IndexView, BatchView, std::size_t);               \
    template __global__ void publish_rows<Reader>(IndexView, BatchView, std::size_t,               \
                                                  std::uint32_t const*);                           \
    template __global__ void mark_rows<Reader>(IndexView, BatchView, std::size_t);                 \
    template __global__ void release_rows<Reader>(IndexView, BatchView, std::size_t);              \
    template __global__ void place_rows<Reader>(IndexView, std::size_t, std::uint32_t*);

TH_INSTANTIATE(Narrow8)
TH_INSTANTIATE(Narrow4)
TH_INSTANTIATE(NarrowAny)
TH_INSTANTIATE(Wide12)
TH_INSTANTIATE(Wide16)
TH_INSTANTIATE(WideAny)

template <std::uint32_t Buckets>
__global__ void find_flat(FlatView table, std::uint64_t const* keys, std::uint32_t* rows,
                          std::size_t count) {
    for_rows(count, [&](std::size_t i) {
        std::uint32_t const at = flat_start(table, keys[i]);
        rows[i] = table.double_hash ? flat_find(table, keys[i], at)
                                    : flat_find_buckets<Buckets>(table, keys[i], at);
    });
}

template <class Int>
__global__ void claim_flat(FlatView table, Int const* coords, std::uint32_t* positions,
                           std::size_t count) {
    for_rows(count, [&](std::size_t i) {
        Int const* const c = coords + 4 * i;
        std::uint64_t const key = packed_or_empty(c[0], c[1], c[2], c[3]);
        positions[i] = flat_claim<Shared>(table, key, static_cast<std::uint32_t>(i)).position;
    });
}

template <std::uint32_t Columns>
__global__ void find_shifted(FlatView table, std::int32_t const* coords, std::int32_t const* scale,
                             std::int32_t const* offset, std::uint32_t* rows, std::size_t count) {
    for_rows(count, [&](std::size_t i) {
        std::uint64_t const key = shifted_or_empty(coords + Columns * i, Columns, scale, offset);
        rows[i] = flat_find(table, key, flat_start(table, key));
    });
}

template <class Access>
__global__ void claim_vectors(VectorView table, std::size_t count) {
    for_rows(count, [&](std::size_t i) {
        vector_claim<Access>(table, static_cast<std::uint32_t>(i), table.columns);
    });
}

template <std::uint32_t Columns>
__global__ void find_vectors(VectorView table, std::int32_t const* queries, std::uint32_t* rows,
                             std::size_t count) {
    for_rows(count, [&](std::size_t i) {
        std::int32_t const* const query = queries + i * Columns;
        rows[i] = vector_find(table, query, Columns, murmur(query, Columns) & table.mask);
    });
}

template __global__ void claim_vectors<Shared>(VectorView, std::size_t);
template __global__ void find_vectors<4>(VectorView, std::int32_t const*, std::uint32_t*,
                                         std::size_t);
template __global__ void find_shifted<4>(FlatView, std::int32_t const*, std::int32_t const*,
                                         std::int32_t const*, std::uint32_t*, std::size_t);
template __global__ void find_flat<1>(FlatView, std::uint64_t const*, std::uint32_t*, std::size_t);
template __global__ void find_flat<4>(FlatView, std::uint64_t const*, std::uint32_t*, std::size_t);
template __global__ void claim_flat<std::int32_t>(FlatView, std::int32_t const*, std::uint32_t*,
                                                  std::size_t);
template __global__ void claim_flat<std::int64_t>(FlatView, std::int64_t const*, std::uint32_t*,
                                                  std::size_t);

}  // namespace
