// The VectorStore of a device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "backend/capacities.hpp"
#include "backend/coord_errors.hpp"
#include "backend/coords_backend.hpp"
#include "device/coord_index.hpp"
#include "device/order.hpp"
#include "device/selecting.hpp"
#include "device/stored_rows.hpp"
#include "device/transfers.hpp"
#include "device/vectors.hpp"

namespace tensorhash::device {

template <class Queue>
class VectorStore final : public backend::VectorStore {
public:
    VectorStore(Queue& queue, Device device, std::optional<std::uint64_t> slots)
        : queue_(&queue), device_(device), least_(slots.value_or(backend::default_slots(0))),
          grows_(!slots), report_(queue, 1) {
        auto const turn = order_->write(*queue_);
        upload_report({});
    }
    // This stream frees the memory, so it waits for the calls on other streams.
    ~VectorStore() override { auto const turn = order_->write(*queue_); }

    backend::VectorStoreInfo info() const noexcept override {
        backend::VectorStoreInfo info;
        info.entries = held_.rows.entries;
        info.distinct = held_.state.claimed;
        info.slots = slot_count();
        info.columns = held_.rows.columns;
        info.grows = grows_;
        return info;
    }

    void set_columns(std::uint32_t columns) override {
        auto const turn = order_->write(*queue_);
        Held none;
        none.rows = StoredRows<Queue>::none(*queue_, columns);
        none.slots = empty_slots(slot_count());
        held_ = std::move(none);
        upload_report({});
    }

    /// Waits once. A failure undoes the claims.
    void insert(CoordRows const& fresh) override {
        auto const turn = order_->write(*queue_);
        if (held_.rows.entries + fresh.rows > backend::kMaxCoordRows) {
            backend::fail_most_rows("vec_keys", held_.rows.entries, fresh.rows);
        }
        std::uint64_t const wanted =
            grows_
                ? std::max(slot_count(), backend::default_slots(held_.state.claimed + fresh.rows))
                : slot_count();
        bool const in_place = held_.slots && held_.slots->size() == wanted;
        Held next;
        try {
            if (!in_place) {
                next.slots = empty_slots(wanted);
                upload_report({});
            }
            next.rows = held_.rows.with(*queue_, fresh, &report_.data()->not_int32);
            claim(in_place ? held_ : next, next.rows, in_place ? held_.rows.entries : 0);
            Report const report = read_one(*queue_, report_.data());
            check(report, fresh, wanted);
            next.state = report.state;
        } catch (...) {
            undo(in_place);
            throw;
        }
        if (in_place) {
            std::swap(next.slots, held_.slots);
        }
        held_ = std::move(next);
    }

    void grow_on_demand() noexcept override {
        least_ = slot_count();
        grows_ = true;
    }

    Tensor search(CoordRows const& queries) const override {
        auto const turn = order_->read(*queue_);
        Tensor found = int32_tensor({static_cast<std::int64_t>(queries.rows)});
        if (!held_.slots) {
            queue_->fill(found.data(), 0xff, found.bytes());
            return found;
        }
        Array<Queue, unsigned char> outside;
        if (queries.wide()) {
            outside = {*queue_, queries.rows};
        }
        Int32Rows<Queue> const own(*queue_, queries, nullptr, outside.data());
        find(own.data, outside.data(), queries.rows, words(found));
        return found;
    }

    Tensor rows() const override {
        auto const turn = order_->read(*queue_);
        return held_.rows.view(*queue_, device_, order_);
    }

    /// Waits for the number of keys.
    Tensor unique() const override {
        auto const turn = order_->read(*queue_);
        std::uint64_t const entries = held_.rows.entries;
        std::uint64_t count = 0;
        Array<Queue, std::uint32_t> listed;
        if (entries != 0) {
            Array<Queue, std::uint32_t> const found(*queue_, entries);
            find(held_.rows.numbers(), nullptr, entries, found.data());
            listed = choose_rows(*queue_, IsFirst{found.data()}, entries, count);
        }
        Tensor unique = int32_tensor({static_cast<std::int64_t>(count)});
        if (count != 0) {
            queue_->copy(unique.data(), listed.data(), unique.bytes(), Copy::Within);
        }
        return unique;
    }

    Tensor slots() const override {
        auto const turn = order_->read(*queue_);
        Tensor kvs = int32_tensor({static_cast<std::int64_t>(slot_count()), 2});
        if (held_.slots) {
            queue_->copy(kvs.data(), held_.slots->data(), kvs.bytes(), Copy::Within);
        } else {
            queue_->fill(kvs.data(), 0xff, kvs.bytes());
        }
        return kvs;
    }

private:
    using Slots = Array<Queue, step::VectorSlot>;

    /// What an insert says, and what stays on the device for lookups.
    struct Report {
        std::uint64_t not_int32 = kNoElement;
        FlatState state{};
    };
    /// Everything that an insert may replace.
    struct Held {
        StoredRows<Queue> rows{};
        std::optional<Slots> slots{};
        FlatState state{};  // as on the device
    };

    std::uint64_t slot_count() const noexcept { return held_.slots ? held_.slots->size() : least_; }
    Tensor int32_tensor(Shape shape) const {
        return Tensor::empty(std::move(shape), Dtype::Int32, device_);
    }
    static std::uint32_t* words(Tensor& tensor) {
        return static_cast<std::uint32_t*>(tensor.data());
    }
    Slots empty_slots(std::uint64_t count) const {
        Slots slots(*queue_, count);
        queue_->fill(slots.data(), 0xff, slots.bytes());  // kEmptyVectorSlot
        return slots;
    }
    static step::VectorView view_of_slots(Held const& held, StoredRows<Queue> const& rows) {
        return {held.slots->data(), rows.numbers(), rows.columns,
                static_cast<std::uint32_t>(held.slots->size() - 1), 0};
    }
    void find(std::int32_t const* queries, unsigned char const* outside, std::uint64_t rows,
              std::uint32_t* found) const {
        queue_->launch(rows, FindVectors{view_of_slots(held_, held_.rows), &report_.data()->state,
                                         queries, outside, found, rows});
    }
    void upload_report(FlatState const& state) const {
        Report report;
        report.state = state;
        write_one(*queue_, report_.data(), report);
    }
    /// Empties the slots that a failed batch claimed in the store's own index.
    void undo(bool in_place) {
        if (in_place) {
            auto const first = static_cast<std::uint32_t>(held_.rows.entries);
            step::VectorView const view = view_of_slots(held_, held_.rows);
            queue_->launch(held_.slots->size(), DropVectors{view, first});
        }
        upload_report(held_.state);
    }
    void claim(Held const& held, StoredRows<Queue> const& rows, std::uint64_t first) {
        auto const count = static_cast<std::uint32_t>(rows.entries - first);
        queue_->launch(count,
                       ClaimVectors{view_of_slots(held, rows), static_cast<std::uint32_t>(first),
                                    &report_.data()->state, count});
    }
    void check(Report const& report, CoordRows const& fresh, std::uint64_t slots) {
        if (report.not_int32 != kNoElement) {
            backend::fail_not_int32("vec_keys", read_number(*queue_, fresh, report.not_int32));
        }
        if (report.state.full != 0) {
            backend::fail_vectors_full(slots, held_.state.claimed);
        }
    }

    Queue* queue_;
    Device device_;
    std::uint64_t least_;  // slots before there are any
    bool grows_;
    Array<Queue, Report> report_;
    Held held_;
    std::shared_ptr<Order<Queue>> order_ = std::make_shared<Order<Queue>>();
};

}  // namespace tensorhash::device
