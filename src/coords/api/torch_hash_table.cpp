// TorchHashTable: arguments, locks, rows. It uses the CPU index directly, without CoordsBackend,
// because no device will have this table.
#include "tensorhash/coords/torch_hash_table.hpp"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>

#include "coords/api/arguments.hpp"
#include "coords/rows/row_buffer.hpp"
#include "index/flat_index.hpp"
#include "index/vector_index.hpp"
#include "runtime/lock.hpp"
#include "tensor/allocators.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {

struct TorchHashTable::Impl {
    explicit Impl(std::optional<std::uint64_t> fixed_capacity) : fixed(fixed_capacity) {}

    std::uint64_t slots() const { return index ? index->capacity() : fixed.value_or(least); }

    std::optional<std::uint64_t> fixed;  // nullopt: the table grows
    std::uint64_t least = index::FlatIndex::capacity_for(0);
    RowBuffer buffer{0};
    std::optional<index::VectorIndex> index;
    mutable runtime::ReadWriteLock lock;
};

namespace {

using Reading = std::shared_lock<runtime::ReadWriteLock>;
using Writing = std::unique_lock<runtime::ReadWriteLock>;

// The index takes any number of columns. This limit keeps a row small compared with memory.
constexpr Columns kAnyColumns{1, 1u << 16};

Columns columns_of(std::optional<index::VectorIndex> const& index) {
    return index ? Columns{index->columns(), index->columns()} : kAnyColumns;
}

Tensor int32_tensor(Shape shape) { return Tensor::empty(std::move(shape), Dtype::Int32); }

[[noreturn]] void fail_full(std::uint64_t capacity, std::uint64_t held) {
    throw TableFull("capacity: this table takes " + std::to_string(capacity) +
                    " distinct keys and has " + std::to_string(held) +
                    "; vec_keys has more new keys than fit; make the table with a larger capacity, "
                    "or with from_keys and no capacity, so that it grows");
}

}  // namespace

TorchHashTable::TorchHashTable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TorchHashTable::TorchHashTable(TorchHashTable&&) noexcept = default;
TorchHashTable& TorchHashTable::operator=(TorchHashTable&&) noexcept = default;
TorchHashTable::~TorchHashTable() = default;

TorchHashTable::TorchHashTable(Capacity capacity, Device device)
    : impl_(std::make_unique<Impl>(slots_for(capacity))) {
    require_cpu(device, "device", "TorchHashTables");
}

TorchHashTable TorchHashTable::from_keys(Tensor const& vec_keys, std::optional<Capacity> capacity) {
    TorchHashTable made(std::make_unique<Impl>(slots_for(capacity)));
    made.insert(vec_keys);
    return made;
}

TorchHashTable TorchHashTable::restore(Tensor const& vec_keys, Capacity capacity, bool grows) {
    TorchHashTable made = from_keys(vec_keys, capacity);
    made.impl_->least = *made.impl_->fixed;
    if (grows) {
        made.impl_->fixed.reset();
    }
    return made;
}

void TorchHashTable::insert(Tensor const& vec_keys) {
    Writing const guard(impl_->lock);
    CoordRows const fresh =
        narrowed(check_rows(vec_keys, "vec_keys", columns_of(impl_->index)), "vec_keys");
    if (fresh.rows == 0) {
        if (!impl_->index && vec_keys.shape().size() == 2) {  // shape (0,) has no columns
            RowBuffer none(fresh.columns);
            impl_->index.emplace(impl_->slots(), fresh.columns);
            impl_->buffer = std::move(none);
        }
        return;
    }
    RowBuffer::Appended all = impl_->buffer.with(fresh, "vec_keys");
    std::size_t const before = all.rows.rows - fresh.rows;
    std::uint64_t const held = impl_->index ? impl_->index->size() : 0;
    std::uint64_t const wanted = impl_->fixed.value_or(
        std::max(impl_->slots(), index::FlatIndex::capacity_for(held + fresh.rows)));
    if (impl_->index && impl_->index->capacity() == wanted) {
        if (!impl_->index->insert(all.rows.data(), before, all.rows.rows)) {
            fail_full(wanted, held);
        }
    } else {
        index::VectorIndex index(wanted, fresh.columns);
        if (!index.insert(all.rows.data(), 0, all.rows.rows)) {
            fail_full(wanted, held);
        }
        impl_->index.emplace(std::move(index));
    }
    impl_->buffer.adopt(std::move(all));
}

Tensor TorchHashTable::search(Tensor const& search_keys) const {
    Reading const guard(impl_->lock);
    CoordRows const rows = check_rows(search_keys, "search_keys", columns_of(impl_->index));
    Tensor found = int32_tensor({static_cast<std::int64_t>(rows.rows)});
    auto* const out = static_cast<std::int32_t*>(found.data());
    if (!impl_->index) {
        std::fill(out, out + rows.rows, -1);
        return found;
    }
    NarrowQueries const queries = narrow_queries(rows);
    impl_->index->find(impl_->buffer.rows().data(), queries.rows.data(), rows.rows, out);
    queries.hide_outside(out);
    return found;
}

Tensor TorchHashTable::vector_keys() const {
    Reading const guard(impl_->lock);
    return impl_->buffer.rows().tensor;
}

Tensor TorchHashTable::unique_index() const {
    Reading const guard(impl_->lock);
    CoordRows const& rows = impl_->buffer.rows();
    Tensor first = int32_tensor({static_cast<std::int64_t>(rows.rows)});
    auto* const out = static_cast<std::int32_t*>(first.data());
    if (impl_->index) {
        impl_->index->find(rows.data(), rows.data(), rows.rows, out);
    }
    return own_rows(first);
}

Tensor TorchHashTable::table_kvs() const {
    Reading const guard(impl_->lock);
    std::uint64_t const capacity = impl_->slots();
    Tensor kvs = int32_tensor({static_cast<std::int64_t>(capacity), 2});
    if (impl_->index) {
        runtime::copy_bytes(kvs.data(), impl_->index->slots(), kvs.bytes());
    } else {
        auto* const words = static_cast<std::int32_t*>(kvs.data());
        std::fill(words, words + kvs.size(), -1);
    }
    return kvs;
}

bool TorchHashTable::grows() const { return !impl_->fixed; }

std::int64_t TorchHashTable::capacity() const {
    Reading const guard(impl_->lock);
    return static_cast<std::int64_t>(impl_->slots());
}

std::int64_t TorchHashTable::num_entries() const {
    Reading const guard(impl_->lock);
    return static_cast<std::int64_t>(impl_->buffer.rows().rows);
}

std::int64_t TorchHashTable::num_distinct() const {
    Reading const guard(impl_->lock);
    return impl_->index ? static_cast<std::int64_t>(impl_->index->size()) : 0;
}

int TorchHashTable::key_dim() const {
    Reading const guard(impl_->lock);
    return impl_->index ? static_cast<int>(impl_->index->columns()) : -1;
}

}  // namespace tensorhash::coords
