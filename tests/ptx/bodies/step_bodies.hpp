// Kernel bodies over the steps alone: claim, join, find. A body is a struct of its arguments. The
// host passes it to a launch; only device code calls it.
#pragma once

#if !defined(TH_DEVICE_STEPS)
#define TH_DEVICE_STEPS 1
#endif

#include "tensorhash/step/find.hpp"
#include "tensorhash/step/insert.hpp"

namespace th_ptx {

using tensorhash::step::BatchView;
using tensorhash::step::IndexView;
namespace step = tensorhash::step;

#if defined(__CUDA_ARCH__)
template <class Work>
TH_STEP void for_rows(std::uint32_t rows, Work const& work) {
    std::uint32_t const block_size = __nvvm_read_ptx_sreg_ntid_x();
    std::uint32_t const first =
        __nvvm_read_ptx_sreg_ctaid_x() * block_size + __nvvm_read_ptx_sreg_tid_x();
    for (std::uint32_t row = first; row < rows;
         row += __nvvm_read_ptx_sreg_nctaid_x() * block_size) {
        work(row);
    }
}
#else
template <class Work>
TH_STEP void for_rows(std::uint32_t, Work const&) {}
#endif

template <class Reader>
struct ClaimRows {
    IndexView view;
    BatchView batch;
    std::uint32_t* broken;
    std::uint32_t rows;

    TH_STEP void operator()() const {
        typename step::IndexOf<Reader, step::Shared>::type const index(view);
        for_rows(rows, [&](std::uint32_t row) {
            step::Claim const c = step::claim(index, index.hash(batch.keys, row), batch, row);
            if (c.claimed == step::Claimed::Beyond) step::Shared::store(broken, 1u);
            batch.positions[row] = c.position;
            batch.buf_indices[row] = c.buf_index;
            batch.mask[row] =
                c.claimed == step::Claimed::Empty || c.claimed == step::Claimed::Erased;
        });
    }
};

template <class Reader>
struct JoinRows {
    IndexView view;
    BatchView batch;
    std::uint32_t rows;

    TH_STEP void operator()() const {
        typename step::IndexOf<Reader, step::Shared>::type const index(view);
        for_rows(rows, [&](std::uint32_t row) { step::join_late(index, batch, row); });
    }
};

template <class Reader>
struct FindRows {
    IndexView view;
    BatchView batch;
    std::uint32_t* broken;
    std::uint32_t rows;

    TH_STEP void operator()() const {
        typename step::IndexOf<Reader, step::Exclusive>::type const index(view);
        for_rows(rows, [&](std::uint32_t row) {
            step::Match const at = step::find(index, index.hash(batch.keys, row), batch, row);
            if (at.buf_index == step::kUndecided) step::Shared::store(broken, 1u);
            batch.buf_indices[row] = at.buf_index;
        });
    }
};

}  // namespace th_ptx
