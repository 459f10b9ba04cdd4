// The CoordStore of a device: rows in order of insertion, and an index over them. Results have the
// bits of the CPU's store.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "backend/capacities.hpp"
#include "backend/coord_errors.hpp"
#include "backend/coords_backend.hpp"
#include "device/coord_index.hpp"
#include "device/distinct_rows.hpp"
#include "device/kernel_maps.hpp"
#include "device/order.hpp"
#include "device/selecting.hpp"
#include "device/stored_rows.hpp"
#include "device/sums.hpp"
#include "device/transfers.hpp"
#include "runtime/seed.hpp"

namespace tensorhash::device {

template <class Queue>
class CoordStore final : public backend::CoordStore {
public:
    /// With 0 columns the first batch sets them. `map_limit` as in MapMaker.
    CoordStore(Queue& queue, Device device, backend::CoordStoreRules const& rules,
               std::uint32_t columns, std::uint64_t map_limit)
        : queue_(&queue), device_(device), rules_(rules), map_limit_(map_limit),
          seed_(rules.seed ? *rules.seed : runtime::new_seed()), report_(queue, 1) {
        {
            auto const turn = order_->write(*queue_);
            upload_report({});
        }
        if (columns != 0) {
            set_columns(columns);
        }
    }
    // This stream frees the memory, so it waits for the calls on other streams.
    ~CoordStore() override { auto const turn = order_->write(*queue_); }

    backend::CoordStoreInfo info() const noexcept override {
        backend::CoordStoreInfo info;
        info.entries = held_.rows.entries;
        info.distinct = held_.state.claimed;
        info.slots = rules_.slots   ? *rules_.slots
                     : held_.packed ? held_.packed->slots()
                                    : backend::default_slots(info.distinct);
        info.columns = held_.rows.columns;
        info.key = held_.rows.columns == 0 || held_.packed ? coords::CoordKey::Packed64
                   : held_.rows.columns == kPackedColumns  ? coords::CoordKey::Packed128
                                                           : coords::CoordKey::Wide;
        info.grows = !rules_.slots;
        return info;
    }

    void set_columns(std::uint32_t columns) override {
        auto const turn = order_->write(*queue_);
        Held none;
        none.rows = StoredRows<Queue>::none(*queue_, columns);
        if (columns <= kPackedColumns) {
            none.packed = make_packed(rules_.slots.value_or(backend::default_slots(0)));
        } else {
            none.wide.emplace(*queue_, 0, secret());
        }
        held_ = std::move(none);
        upload_report(held_.state);
    }

    void insert(CoordRows const& rows, std::string_view argument) override {
        auto const turn = order_->write(*queue_);
        append(rows, argument);
    }

    void expand(CoordRows const& base, CoordRows const& offsets) override {
        auto const turn = order_->write(*queue_);
        Sums<Queue> sums(*queue_, base, offsets, rules_.range);
        DistinctRows<Queue> const distinct = sums.distinct();
        std::uint64_t const count = distinct.count();
        sums.check();
        Array<Queue, std::uint32_t> const found(*queue_, count);
        std::uint64_t fresh = count;
        Array<Queue, std::uint32_t> chosen;
        if (held_.rows.columns != 0) {
            RowsView const queries{distinct.rows().data(), base.columns, false};
            queue_->launch(count, SearchRows{view(), queries, found.data(), count});
            chosen = choose_rows(*queue_, IsAbsent{found.data()}, count, fresh);
        }
        Tensor rows = int32_tensor({static_cast<std::int64_t>(fresh), base.columns});
        if (chosen.data() == nullptr) {
            queue_->copy(rows.data(), distinct.rows().data(), rows.bytes(), Copy::Within);
        } else {
            distinct.rows().gather({chosen.data(), fresh}, rows.data());
        }
        append({rows, fresh, base.columns}, "base");
    }

    void clear() override {
        if (held_.rows.columns != 0) {
            set_columns(held_.rows.columns);
        }
    }
    void grow_on_demand() noexcept override { rules_.slots.reset(); }

    Tensor search(CoordRows const& queries, coords::SearchMode mode) const override {
        auto const turn = order_->read(*queue_);
        Tensor found = int32_tensor({static_cast<std::int64_t>(queries.rows)});
        auto* const out = words(found);
        auto const rows = static_cast<std::uint32_t>(queries.rows);
        if (held_.rows.columns == 0) {
            queue_->fill(out, 0xff, found.bytes());
        } else if (held_.packed && !rules_.double_hash && mode == coords::SearchMode::WarpCoop) {
            queue_->launch(rows, FindFlatByTile<8>{held_.packed->view(), view_of(queries),
                                                   &report_.data()->state, out, rows});
        } else {
            queue_->launch(rows, SearchRows{view(), view_of(queries), out, rows});
        }
        return found;
    }
    Tensor search(CoordRows const& queries, CoordRows const& offsets) const override {
        auto const turn = order_->read(*queue_);
        check_int32(*queue_, offsets, "offsets");
        Tensor found = int32_tensor(
            {static_cast<std::int64_t>(offsets.rows), static_cast<std::int64_t>(queries.rows)});
        if (held_.rows.columns == 0) {
            queue_->fill(found.data(), 0xff, found.bytes());
        } else {
            queue_->launch(queries.rows * offsets.rows,
                           SearchShifted{view(), view_of(queries), view_of(offsets), words(found),
                                         queries.rows, offsets.rows});
        }
        return found;
    }
    KernelMapPairs kernel_map(KernelMapRequest const& request) const override {
        auto const turn = order_->read(*queue_);
        MapMaker<Queue> maker(*queue_, device_, request, map_limit_);
        if (held_.rows.columns != 0) {
            return maker.make_from(view(), held_.rows.entries,
                                   held_.state.claimed < held_.rows.entries);
        }
        WideRowIndex<Queue> const nothing(*queue_, 0, secret());
        Array<Queue, std::int32_t> const no_rows(*queue_, 0);
        return maker.make_from({{}, nullptr, nothing.view(), no_rows.data(), request.out.columns},
                               0, false);
    }

    Tensor rows() const override {
        auto const turn = order_->read(*queue_);
        return held_.rows.view(*queue_, device_, order_);
    }
    Tensor unique() const override {
        auto const turn = order_->read(*queue_);
        std::uint64_t count = 0;
        Array<Queue, std::uint32_t> listed;
        Array<Queue, std::uint32_t> const found(*queue_, held_.rows.entries);
        if (held_.rows.entries != 0) {
            RowsView const own{held_.rows.numbers(), held_.rows.columns, false};
            queue_->launch(held_.rows.entries,
                           SearchRows{view(), own, found.data(), held_.rows.entries});
            listed = choose_rows(*queue_, IsFirst{found.data()}, held_.rows.entries, count);
        }
        Tensor unique = int32_tensor({static_cast<std::int64_t>(count)});
        if (count != 0) {
            queue_->copy(unique.data(), listed.data(), unique.bytes(), Copy::Within);
        }
        return unique;
    }
    std::optional<backend::CoordSlots> slots() const override {
        auto const turn = order_->read(*queue_);
        if (held_.rows.columns == 0) {
            return views_of(make_packed(rules_.slots.value_or(backend::default_slots(0))));
        }
        return held_.packed ? std::optional(views_of(*held_.packed)) : std::nullopt;
    }

private:
    /// What an insert says, and what stays on the device for lookups.
    struct Report {
        std::uint64_t not_int32 = kNoElement;
        std::uint64_t outside = kNoElement;
        FlatState state{};
    };
    /// Everything that an insert may replace.
    struct Held {
        StoredRows<Queue> rows{};
        std::optional<PackedIndex<Queue>> packed{};
        std::optional<WideRowIndex<Queue>> wide{};
        FlatState state{};  // as on the device
    };

    step::HashSecret secret() const {
        return rules_.published_hash ? step::HashSecret{} : step::secret_of(seed_);
    }
    PackedIndex<Queue> make_packed(std::uint64_t slots) const {
        return {*queue_, slots, rules_.double_hash, secret()};
    }
    void upload_report(FlatState const& state) const {
        Report report;
        report.state = state;
        write_one(*queue_, report_.data(), report);
    }
    Tensor int32_tensor(Shape shape) const {
        return Tensor::empty(std::move(shape), Dtype::Int32, device_);
    }
    static std::uint32_t* words(Tensor& tensor) {
        return static_cast<std::uint32_t*>(tensor.data());
    }
    RowIndexView view_of_index(Held const& held) const {
        return {held.packed ? held.packed->view() : FlatView{}, &report_.data()->state,
                held.wide ? held.wide->view() : WideView{}, held.rows.numbers(), held.rows.columns};
    }
    RowIndexView view() const { return view_of_index(held_); }
    /// One member of every slot; the view keeps the slots alive.
    Tensor slot_members(PackedIndex<Queue> const& index, std::size_t offset, Dtype dtype) const {
        Tensor members =
            Tensor::borrow_strided(reinterpret_cast<unsigned char*>(index.view().slots) + offset,
                                   {static_cast<std::int64_t>(index.slots())},
                                   {static_cast<std::int64_t>(sizeof(step::FlatSlot))}, dtype, true,
                                   owner_of_view(*queue_, device_, order_, index.owner()), device_);
        members.written_by(current_stream(device_));
        return members;
    }
    backend::CoordSlots views_of(PackedIndex<Queue> const& index) const {
        return {slot_members(index, offsetof(step::FlatSlot, key), Dtype::Int64),
                slot_members(index, offsetof(step::FlatSlot, row), Dtype::Int32)};
    }

    /// Appends one or more rows, with one wait; with one more if the keys become wide. A failure
    /// undoes the claims.
    void append(CoordRows const& fresh, std::string_view argument) {
        if (held_.rows.entries + fresh.rows > backend::kMaxCoordRows) {
            backend::fail_most_rows(argument, held_.rows.entries, fresh.rows);
        }
        Held next;
        bool claimed = false;
        try {
            write_rows(next, fresh);
            bool const packs =
                fresh.columns <= kPackedColumns && (held_.rows.columns == 0 || held_.packed);
            claimed = true;
            if (packs) {
                claim_packed(next, fresh, argument);
            } else {
                claim_wide(next, fresh, argument, false);
            }
        } catch (...) {
            if (claimed) {
                undo();
            }
            upload_report(held_.state);
            throw;
        }
        adopt(std::move(next));
    }

    /// Takes the new parts and keeps the others.
    void adopt(Held&& next) noexcept {
        if (!next.packed && !next.wide) {
            std::swap(next.packed, held_.packed);
            std::swap(next.wide, held_.wide);
        }
        held_ = std::move(next);
        upload_report(held_.state);
    }
    /// Empties the slots that a failed batch claimed in the store's own index.
    void undo() noexcept {
        auto const first = static_cast<std::uint32_t>(held_.rows.entries);
        if (held_.packed) {
            held_.packed->drop_from(first);
        }
        if (held_.wide) {
            held_.wide->drop_from(first);
        }
    }

    /// The rows so far and the new ones.
    void write_rows(Held& next, CoordRows const& fresh) {
        next.rows = held_.rows.with(*queue_, fresh, &report_.data()->not_int32);
        if (rules_.range == backend::RowRange::Packed128) {
            RowsView const own{next.rows.numbers() + held_.rows.entries * fresh.columns,
                               fresh.columns, false};
            find_outside(*queue_, own, fresh.rows, rules_.range, &report_.data()->outside);
        }
    }

    void claim_packed(Held& next, CoordRows const& fresh, std::string_view argument) {
        auto const first = static_cast<std::uint32_t>(held_.rows.entries);
        std::uint64_t const now = held_.packed ? held_.packed->slots() : 0;
        std::uint64_t const wanted =
            rules_.slots.value_or(backend::default_slots(held_.state.claimed + fresh.rows));
        if (wanted > now) {
            next.packed = make_packed(wanted);
            if (held_.packed) {
                FlatState state = held_.state;
                state.longest = 0;
                upload_state(state);
                next.packed->rehash(*held_.packed, &report_.data()->state);
            }
        }
        PackedIndex<Queue>& target = next.packed ? *next.packed : *held_.packed;
        target.claim(next.rows.numbers(), fresh.columns, first,
                     static_cast<std::uint32_t>(fresh.rows), &report_.data()->state);
        Report const report = read_one(*queue_, report_.data());
        next.state = report.state;
        check(report, fresh, argument);
        if (report.state.out_of_range != 0) {
            undo();
            next.packed.reset();
            claim_wide(next, fresh, argument, true);
        } else if (report.state.full != 0) {
            backend::fail_full(target.slots(), held_.state.claimed);
        }
    }
    /// Only the state: the rest of the report is already written.
    void upload_state(FlatState const& state) { write_one(*queue_, &report_.data()->state, state); }

    /// Throws what the CPU throws for numbers out of range.
    void check(Report const& report, CoordRows const& fresh, std::string_view argument) {
        if (rules_.range == backend::RowRange::Packed64) {
            if (report.not_int32 != kNoElement || report.state.out_of_range != 0) {
                fail_range(fresh, argument);
            }
            return;
        }
        if (report.not_int32 != kNoElement) {
            backend::fail_not_int32(argument, read_number(*queue_, fresh, report.not_int32));
        }
        if (report.outside != kNoElement) {
            backend::fail_range(argument, read_number(*queue_, fresh, report.outside),
                                rules_.range);
        }
    }
    [[noreturn]] void fail_range(CoordRows const& fresh, std::string_view argument) {
        FirstFound<Queue> const first(*queue_);
        find_outside(*queue_, view_of(fresh), fresh.rows, rules_.range, first.data());
        backend::fail_range(argument, read_number(*queue_, fresh, first.read()), rules_.range);
    }

    /// `is_new`: the store has no wide index yet, because all its rows have packed keys.
    void claim_wide(Held& next, CoordRows const& fresh, std::string_view argument, bool is_new) {
        bool const rebuild = is_new || !held_.wide || held_.wide->room() < next.rows.entries;
        auto const first = static_cast<std::uint32_t>(rebuild ? 0 : held_.rows.entries);
        if (rebuild) {
            // Twice the room, so that many small batches do not each rebuild the index.
            std::uint64_t const room =
                held_.rows.entries == 0 ? next.rows.entries : 2 * next.rows.entries;
            next.wide.emplace(*queue_, room, secret());
            upload_state({});
        }
        WideRowIndex<Queue>& target = next.wide ? *next.wide : *held_.wide;
        RowIndexView const index{
            {}, nullptr, target.view(), next.rows.numbers(), next.rows.columns};
        auto const count = static_cast<std::uint32_t>(next.rows.entries - first);
        queue_->launch(count, ClaimWide{index, first, &report_.data()->state, count});
        Report const report = read_one(*queue_, report_.data());
        next.state = report.state;
        check(report, fresh, argument);
        if (rules_.slots && report.state.claimed > *rules_.slots) {
            backend::fail_full(*rules_.slots, held_.state.claimed);
        }
    }

    Queue* queue_;
    Device device_;
    backend::CoordStoreRules rules_;
    std::uint64_t map_limit_;
    std::uint64_t seed_;
    Array<Queue, Report> report_;
    Held held_;
    std::shared_ptr<Order<Queue>> order_ = std::make_shared<Order<Queue>>();
};

}  // namespace tensorhash::device
