// DeviceTable: the TableBackend of a device, over a queue. Results have the bits of the CPU's
// table. Over 400 lines: one class, with one short function per verb.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backend/device_backend.hpp"
#include "backend/table_backend.hpp"
#include "device/core.hpp"
#include "device/keys.hpp"
#include "device/known_state.hpp"
#include "device/optimizing.hpp"
#include "device/order.hpp"
#include "device/pending.hpp"
#include "device/transfers.hpp"
#include "runtime/seed.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/stream.hpp"

namespace tensorhash::device {

/// The bytes of a new table; UINT64_MAX if the sum overflows.
inline std::uint64_t memory_for(backend::TableSpec const& spec) {
    std::uint64_t row_bytes = spec.key.bytes() + sizeof(std::uint32_t);  // a word of the free stack
    for (Element const& element : spec.values) {
        row_bytes += element.bytes();
    }
    std::uint64_t const index =
        buckets_for(format_of(spec.key), spec.capacity) * sizeof(step::NarrowBucket);
    std::uint64_t const live = (spec.capacity + 31) / 32 * sizeof(std::uint32_t);
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(row_bytes, spec.capacity, &bytes) ||
        __builtin_add_overflow(bytes, index + live, &bytes)) {
        return UINT64_MAX;
    }
    return bytes;
}

template <class Queue>
class DeviceTable final : public backend::TableBackend {
public:
    /// The queue must outlive the table and its views.
    DeviceTable(Queue& queue, backend::TableSpec const& spec, Device device)
        : queue_(&queue), device_(device), key_(spec.key), elements_(spec.values),
          core_(queue, format_of(spec.key), spec.capacity,
                spec.seed ? *spec.seed : runtime::new_seed()),
          columns_(make_columns(spec.capacity)) {
        // A call on another stream waits for the zeros of the new memory.
        auto const turn = order_->write(*queue_);
    }
    // This stream frees the memory, so it waits for the calls on other streams.
    ~DeviceTable() override { auto const turn = order_->write(*queue_); }

    void find(backend::KeyRows keys, backend::Answers out) const override {
        auto const turn = order_->read(*queue_);
        known_.forget();  // a lookup may find that the index is corrupt
        Array<Queue, unsigned char> copy;
        core_.find(aligned(keys, copy), to_rows(keys.rows), {out.indices, out.mask});
    }
    void insert(backend::Insert const& batch) override { run(batch); }
    void activate(backend::Activate const& batch) override { run(batch); }
    void insert_or_assign(backend::InsertOrAssign const& batch) override { run(batch); }
    void accumulate(backend::Accumulate const& batch) override { run(batch); }
    void erase(backend::Erase const& batch) override { run(batch); }
    void reserve(backend::Reserve const& request) override { run(request); }
    void compact(backend::Compact const& request) override { run(request); }
    void update(backend::Update const& batch) override { run(batch); }

    std::unique_ptr<backend::Prepared> prepare(backend::Change const& change) override {
        auto const turn = order_->write(*queue_);
        auto pending = std::make_unique<Pending<Queue>>(change);
        std::visit([&](auto const& what) { prepare(*pending, what); }, change);
        return pending;
    }
    // std::visit throws only for a variant without a value; a change always has one.
    // NOLINTNEXTLINE(bugprone-exception-escape)
    void finish(std::unique_ptr<backend::Prepared> prepared) noexcept override {
        auto const turn = order_->write(*queue_);
        known_.forget();
        auto& pending = static_cast<Pending<Queue>&>(*prepared);
        std::visit([&](auto const& what) { finish(pending, what); }, pending.change);
    }
    void cancel(std::unique_ptr<backend::Prepared> prepared) noexcept override {
        auto const turn = order_->write(*queue_);
        auto& pending = static_cast<Pending<Queue>&>(*prepared);
        if (pending.insertion) {
            core_.cancel(std::move(*pending.insertion));
        }
    }

    void gather(std::size_t column, backend::Gather const& rows, void* out) const override {
        auto const turn = order_->read(*queue_);
        columns_[column].gather(rows, out);
    }
    void gather_keys(backend::Gather const& rows, void* out) const override {
        auto const turn = order_->read(*queue_);
        core_.buffers().keys.gather(rows, out);
    }
    std::size_t list(std::uint64_t begin, std::size_t limit, std::int32_t* out) const override {
        auto const turn = order_->read(*queue_);
        if (begin == 0 && known_.has_at_most(limit)) {
            State const now = known_.state(core_);
            list_live(0, now.top, limit, reinterpret_cast<std::uint32_t*>(out), nullptr);
            return now.top - now.free;
        }
        std::uint64_t const top = core_.most_top();
        std::uint64_t const rows = begin < top ? top - begin : 0;
        auto const total = Array<Queue, std::uint32_t>::zeros(*queue_, 1);
        list_live(begin, rows, limit, reinterpret_cast<std::uint32_t*>(out), total.data());
        return std::min<std::size_t>(read_one(*queue_, total.data()), limit);
    }
    void items(void* keys, std::span<void* const> values) const override {
        auto const turn = order_->read(*queue_);
        State const now = known_.state(core_);
        std::uint64_t const entries = now.top - now.free;
        Array<Queue, std::uint32_t> listed(*queue_, entries);
        list_live(0, now.top, entries, listed.data(), nullptr);
        backend::Gather const rows{listed.data(), entries};
        core_.buffers().keys.gather(rows, keys);
        for (std::size_t i = 0; i < values.size(); ++i) {
            columns_[i].gather(rows, values[i]);
        }
    }
    Tensor key_tensor() const override { return view(core_.buffers().keys, key_).as_read_only(); }
    Tensor value_tensor(std::size_t column) const override {
        return view(columns_[column], elements_[column]);
    }
    backend::LookupMemory lookup_memory() const override {
        auto const turn = order_->read(*queue_);
        auto const& index = core_.index();
        return {index.data(), index.buckets(), core_.buffers().keys.data(), index.seed()};
    }
    bool overlaps(void const* data, std::size_t bytes) const noexcept override {
        bool shared = core_.buffers().keys.contains(data, bytes);
        for (Column<Queue> const& column : columns_) {
            shared = shared || column.contains(data, bytes);
        }
        return shared;
    }

    void clear() noexcept override {
        auto const turn = order_->write(*queue_);
        known_.forget();
        core_.clear();
    }
    std::unique_ptr<backend::TableBackend> clone() const override {
        auto const turn = order_->read(*queue_);
        auto copy = make_same();
        auto const copying = copy->order_->write(*queue_);
        copy->core_.copy_from(core_);
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            columns_[i].copy_to(copy->columns_[i], core_.capacity());
        }
        return copy;
    }
    std::unique_ptr<backend::TableBackend> make_empty() const override { return make_same(); }

    backend::TableImage to_cpu() const override;
    void from_cpu(backend::TableImage const& image) override;
    void validate() const override;

    Device device() const noexcept override { return device_; }
    backend::TableSizes sizes() const override {
        auto const turn = order_->read(*queue_);
        State const now = known_.state(core_);
        return {now.top - now.free, core_.capacity(), now.top};
    }
    MemoryUsage memory_usage() const noexcept override {
        MemoryUsage usage;
        usage.keys = core_.buffers().keys.bytes();
        for (Column<Queue> const& column : columns_) {
            usage.values += column.bytes();
        }
        usage.index = core_.index().bytes();
        usage.bookkeeping = core_.buffers().live.bytes() + core_.buffers().free.bytes();
        return usage;
    }

private:
    using Work = Pending<Queue>;

    void load(backend::TableImage const& image, std::vector<std::uint32_t> const& live);

    template <class What>
    void run(What const& what) {
        auto const turn = order_->write(*queue_);
        known_.forget();
        Work pending{backend::Change(what)};
        prepare(pending, what);
        finish(pending, what);
    }

    // Preparing gets all memory. Nothing of the table changes.

    void prepare(Work& pending, backend::Insert const& batch) {
        prepare_insert(pending, batch.keys, batch.out);
    }
    void prepare(Work& pending, backend::Activate const& batch) {
        prepare_insert(pending, batch.keys, batch.out);
    }
    void prepare(Work& pending, backend::InsertOrAssign const& batch) {
        prepare_insert(pending, batch.keys, batch.out, [&](std::uint64_t capacity) {
            pending.last = {*queue_, capacity, to_rows(batch.keys.rows)};
        });
    }
    void prepare(Work& pending, backend::Assign const& batch) {
        pending.last = {*queue_, core_.capacity(), rows_of(batch)};
        core_.find(aligned(batch.keys, pending.keys), rows_of(batch),
                   {batch.out.indices, batch.out.mask});
    }
    void prepare(Work& pending, backend::Accumulate const& batch) {
        prepare_insert(pending, batch.keys, batch.out, [&](std::uint64_t capacity) {
            for (std::size_t i = 0; i < columns_.size(); ++i) {
                Reduce const how = batch.reduce[batch.reduce.size() == 1 ? 0 : i];
                if (how == Reduce::Last) {
                    pending.last = {*queue_, capacity, to_rows(batch.keys.rows)};
                } else if (needs_order(elements_[i].dtype, how)) {
                    pending.sorted = {*queue_, to_rows(batch.keys.rows)};
                }
            }
        });
    }
    void prepare(Work& pending, backend::Update const& batch) {
        if (std::holds_alternative<RowStep const*>(batch.step)) {
            throw DeviceError(
                "step: a step written by the user runs on the CPU, this table is on " +
                to_string(device_) + "; copy it with .cpu()");
        }
        pending.sorted = {*queue_, to_rows(batch.keys.rows)};
        if (batch.lookup == backend::Lookup::Insert) {
            prepare_insert(pending, batch.keys, batch.out);
        } else if (batch.lookup == backend::Lookup::Find) {
            core_.find(aligned(batch.keys, pending.keys), rows_of(batch),
                       {batch.out.indices, batch.out.mask});
        }
    }
    void prepare(Work& pending, backend::Erase const& batch) {
        pending.erasing = core_.prepare_erase(aligned(batch.keys, pending.keys),
                                              to_rows(batch.keys.rows), batch.mask);
    }
    void prepare(Work& pending, backend::Reserve const& request) {
        if (request.capacity > kMaxEntries) {
            backend::fail_capacity(request.capacity);
        }
        if (request.capacity > core_.capacity()) {
            pending.columns = make_columns(request.capacity);
            pending.growth = core_.prepare_reserve(request.capacity);
        }
    }
    void prepare(Work& pending, backend::Shrink const&) {
        State const now = core_.read_state();
        pending.end = core_.end_of_live(now.top);
        if (pending.end < core_.capacity()) {
            pending.columns = make_columns(pending.end);
        }
        pending.growth = core_.prepare_shrink(now, pending.end);
    }
    void prepare(Work& pending, backend::Compact const& request) {
        State const now = core_.read_state();
        pending.entries = now.top - now.free;
        rank_live(now.top, request.old_to_new);
        if (now.free != 0) {
            pending.columns = make_columns(core_.capacity());
            pending.growth.buffers = core_.make_buffers(core_.capacity());
            pending.growth.index = core_.make_index(core_.capacity());
            Array<Queue, std::uint32_t> listed(*queue_, pending.entries);
            list_live(0, now.top, pending.entries, listed.data(), nullptr);
            backend::Gather const rows{listed.data(), pending.entries};
            core_.buffers().keys.gather(rows, pending.growth.buffers->keys.data());
            for (std::size_t i = 0; i < columns_.size(); ++i) {
                columns_[i].gather(rows, pending.columns[i].data());
            }
        }
    }

    template <class Scratch = void (*)(std::uint64_t)>
    void prepare_insert(
        Work& pending, backend::KeyRows const& keys, backend::Answers const& out,
        Scratch const& scratch = [](std::uint64_t) {}) {
        unsigned char const* const rows = aligned(keys, pending.keys);
        pending.insertion = core_.prepare_insert(rows, to_rows(keys.rows), {out.indices, out.mask});
        try {
            std::uint64_t const capacity = pending.insertion->capacity;
            if (capacity != core_.capacity()) {
                pending.columns = make_columns(capacity);
            }
            scratch(capacity);
        } catch (...) {
            core_.cancel(std::move(*pending.insertion));
            throw;
        }
    }

    // Finishing cannot fail.

    void finish(Work& pending, backend::Insert const& batch) noexcept {
        finish_insert(pending);
        write({batch.out.indices, batch.out.mask, rows_of(batch)}, batch.values);
    }
    void finish(Work& pending, backend::Activate const& batch) noexcept {
        finish_insert(pending);
        zero_new(batch);
    }
    void finish(Work& pending, backend::InsertOrAssign const& batch) noexcept {
        finish_insert(pending);
        write({batch.out.indices, pending.last.choose(batch.out.indices), rows_of(batch)},
              batch.values);
    }
    void finish(Work& pending, backend::Assign const& batch) noexcept {
        write({batch.out.indices, pending.last.choose(batch.out.indices), rows_of(batch)},
              batch.values);
    }
    void finish(Work& pending, backend::Accumulate const& batch) noexcept {
        finish_insert(pending);
        Rows const rows{batch.out.indices, batch.out.mask, rows_of(batch)};
        write(rows, batch.values);
        bool is_sorted = false;
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            Reduce const how = batch.reduce[batch.reduce.size() == 1 ? 0 : i];
            if (how == Reduce::Last) {
                columns_[i].scatter({rows.indices, pending.last.choose(rows.indices), rows.count},
                                    batch.values.columns[i], batch.values.order);
                continue;
            }
            if (needs_order(elements_[i].dtype, how) && !is_sorted) {
                pending.sorted.sort(rows.indices, core_.capacity());
                is_sorted = true;
            }
            JoinRequest const request{columns_[i].data(), batch.values, i,
                                      static_cast<std::uint32_t>(num_elements(elements_[i].shape)),
                                      rows};
            join(*queue_, request, elements_[i].dtype, how, pending.sorted);
        }
    }
    void finish(Work& pending, backend::Update const& batch) noexcept {
        std::uint32_t const rows = rows_of(batch);
        if (batch.lookup == backend::Lookup::Insert) {
            finish_insert(pending);
            zero_new(batch);
            if (batch.initial.data != nullptr) {
                columns_[0].scatter({batch.out.indices, batch.out.mask, rows}, batch.initial,
                                    nullptr);
            }
            // The mask says "added"; update reports "was present".
            queue_->launch(rows, FlipMask{batch.out.mask, rows});
        }
        pending.sorted.sort(batch.out.indices, core_.capacity());
        Gradients const given{batch.gradients, pending.sorted.indices(), pending.sorted.rows(),
                              rows, batch.duplicates == DuplicateKeys::Sum};
        // A step that the user wrote was refused before.
        Optimizer const& optimizer = **std::get_if<Optimizer const*>(&batch.step);
        make_steps(*queue_, columns_, elements_[0], given, optimizer);
    }
    void finish(Work& pending, backend::Erase const&) noexcept {
        core_.finish_erase(*pending.erasing);
    }
    void finish(Work& pending, backend::Reserve const&) noexcept {
        take_columns(pending, core_.most_top());
        core_.finish_reserve(std::move(pending.growth));
    }
    void finish(Work& pending, backend::Shrink const&) noexcept {
        take_columns(pending, pending.end);
        core_.finish_shrink(std::move(pending.growth), pending.end);
    }
    void finish(Work& pending, backend::Compact const&) noexcept {
        if (pending.growth.buffers) {
            columns_ = std::move(pending.columns);
            core_.finish_compact(std::move(*pending.growth.buffers),
                                 std::move(*pending.growth.index), pending.entries);
        }
    }
    void finish_insert(Work& pending) noexcept {
        take_columns(pending, core_.most_top());
        core_.finish_insert(std::move(*pending.insertion));
    }

    /// Zeroes the values of the added keys.
    template <class Batch>
    void zero_new(Batch const& batch) {
        for (Column<Queue>& column : columns_) {
            column.scatter({batch.out.indices, batch.out.mask, rows_of(batch)},
                           backend::DefaultRows{}, nullptr);
        }
    }
    template <class Batch>
    static std::uint32_t rows_of(Batch const& batch) {
        return static_cast<std::uint32_t>(batch.keys.rows);
    }
    /// Copies the values of the first rows to the new columns and takes those.
    void take_columns(Work& pending, std::uint64_t rows) {
        for (std::size_t i = 0; i < pending.columns.size(); ++i) {
            columns_[i].copy_to(pending.columns[i], rows);
            columns_[i] = std::move(pending.columns[i]);
        }
    }
    void write(Rows const& rows, backend::ValueRows const& values) {
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            columns_[i].scatter(rows, values.columns[i], values.order);
        }
    }
    std::vector<Column<Queue>> make_columns(std::uint64_t capacity) const {
        std::vector<Column<Queue>> columns;
        for (Element const& element : elements_) {
            columns.emplace_back(*queue_, element.bytes(), capacity);
        }
        return columns;
    }
    std::unique_ptr<DeviceTable> make_same() const {
        return std::make_unique<DeviceTable>(
            *queue_, backend::TableSpec{key_, elements_, core_.capacity(), core_.index().seed()},
            device_);
    }
    Tensor view(Column<Queue> const& column, Element const& element) const {
        auto const turn = order_->read(*queue_);
        Tensor made = Tensor::borrow(
            static_cast<void*>(column.data()), with_rows(core_.capacity(), element.shape),
            element.dtype, owner_of_view(*queue_, device_, order_, column.owner()), device_);
        made.written_by(current_stream(device_));
        return made;
    }
    unsigned char const* aligned(backend::KeyRows const& keys,
                                 Array<Queue, unsigned char>& copy) const {
        return aligned_keys(*queue_, keys, format_of(key_), copy);
    }
    /// Lists live indices from `begin` on, of `rows` rows. `total`, unless null, gets their number.
    void list_live(std::uint64_t begin, std::uint64_t rows, std::uint64_t limit, std::uint32_t* out,
                   std::uint32_t* total) const {
        if (rows == 0) {
            return;
        }
        IsLive const is_live{core_.buffers().live.data()};
        auto const ranks = count_live(is_live, begin, rows, total);
        queue_->launch(rows, ListChosen<IsLive>{is_live, begin, rows, ranks.data(), limit, out});
    }
    /// The new index of each entry if there were no gaps; -1 for others.
    void rank_live(std::uint64_t top, std::int32_t* out) const {
        queue_->fill(out, 0xff, core_.capacity() * sizeof(std::int32_t));
        if (top != 0) {
            IsLive const is_live{core_.buffers().live.data()};
            auto const ranks = count_live(is_live, 0, top, nullptr);
            queue_->launch(top, RankChosen<IsLive>{is_live, top, ranks.data(), out});
        }
    }
    Array<Queue, std::uint32_t> count_live(IsLive const& is_live, std::uint64_t begin,
                                           std::uint64_t rows, std::uint32_t* total) const {
        Array<Queue, std::uint32_t> counts(*queue_, segments_of(rows));
        queue_->launch(rows, CountChosen<IsLive>{is_live, begin, rows, counts.data()});
        queue_->scan(counts.data(), counts.size(), total);
        return counts;
    }

    Queue* queue_;
    Device device_;
    Element key_;
    std::vector<Element> elements_;  // of the value columns
    Core<Queue> core_;
    std::vector<Column<Queue>> columns_;
    mutable KnownState known_;
    std::shared_ptr<Order<Queue>> order_ = std::make_shared<Order<Queue>>();
};

}  // namespace tensorhash::device

#include "device/image.hpp"
