// The CPU's vector store: an index is either extended in place or built anew beside the old one.
#include "coords/tables/cpu_vector_store.hpp"

#include <algorithm>
#include <utility>

#include "backend/capacities.hpp"
#include "backend/coord_errors.hpp"

namespace tensorhash::coords {
namespace {

Tensor int32_tensor(Shape shape) { return Tensor::empty(std::move(shape), Dtype::Int32); }

}  // namespace

CpuVectorStore::CpuVectorStore(std::optional<std::uint64_t> slots)
    : least_(slots.value_or(backend::default_slots(0))), grows_(!slots) {}

backend::VectorStoreInfo CpuVectorStore::info() const noexcept {
    backend::VectorStoreInfo info;
    info.entries = buffer_.rows().rows;
    info.distinct = index_ ? index_->size() : 0;
    info.slots = slot_count();
    info.columns = index_ ? index_->columns() : 0;
    info.grows = grows_;
    return info;
}

void CpuVectorStore::set_columns(std::uint32_t columns) {
    RowBuffer none(columns);
    index_.emplace(slot_count(), columns);
    buffer_ = std::move(none);
}

void CpuVectorStore::insert(CoordRows const& rows) {
    CoordRows const fresh = narrowed(rows, "vec_keys");
    RowBuffer::Appended all = buffer_.with(fresh, "vec_keys");
    std::size_t const before = all.rows.rows - fresh.rows;
    std::uint64_t const held = index_ ? index_->size() : 0;
    std::uint64_t const now = slot_count();
    std::uint64_t const wanted =
        grows_ ? std::max(now, backend::default_slots(held + fresh.rows)) : now;
    if (index_ && index_->capacity() == wanted) {
        if (!index_->insert(all.rows.data(), before, all.rows.rows)) {
            backend::fail_vectors_full(wanted, held);
        }
    } else {
        index::VectorIndex index(wanted, fresh.columns);
        if (!index.insert(all.rows.data(), 0, all.rows.rows)) {
            backend::fail_vectors_full(wanted, held);
        }
        index_.emplace(std::move(index));
    }
    buffer_.adopt(std::move(all));
}

void CpuVectorStore::grow_on_demand() noexcept {
    least_ = slot_count();
    grows_ = true;
}

Tensor CpuVectorStore::search(CoordRows const& rows) const {
    Tensor found = int32_tensor({static_cast<std::int64_t>(rows.rows)});
    auto* const out = static_cast<std::int32_t*>(found.data());
    if (!index_) {
        std::fill(out, out + rows.rows, -1);
        return found;
    }
    NarrowQueries const queries = narrow_queries(rows);
    index_->find(buffer_.rows().data(), queries.rows.data(), rows.rows, out);
    queries.hide_outside(out);
    return found;
}

Tensor CpuVectorStore::unique() const {
    CoordRows const& rows = buffer_.rows();
    Tensor first = int32_tensor({static_cast<std::int64_t>(rows.rows)});
    auto* const out = static_cast<std::int32_t*>(first.data());
    if (index_) {
        index_->find(rows.data(), rows.data(), rows.rows, out);
    }
    return own_rows(first);
}

Tensor CpuVectorStore::slots() const {
    Tensor kvs = int32_tensor({static_cast<std::int64_t>(slot_count()), 2});
    if (index_) {
        runtime::copy_bytes(kvs.data(), index_->slots(), kvs.bytes());
    } else {
        auto* const words = static_cast<std::int32_t*>(kvs.data());
        std::fill(words, words + kvs.size(), -1);
    }
    return kvs;
}

}  // namespace tensorhash::coords
