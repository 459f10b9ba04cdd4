// A table of at most max_capacity keys. A full one evicts entries and returns them.
#ifndef TENSORHASH_TENSORFLOW_BOUNDED_TABLE_H_
#define TENSORHASH_TENSORFLOW_BOUNDED_TABLE_H_

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lock.h"
#include "one_shard_table.h"

namespace tensorhash_tf {

/// Evicted entries, until they are copied out.
struct DestroyEvicted {
    void operator()(th_evicted* evicted) const { th_evicted_destroy(evicted); }
};
using EvictedPtr = std::unique_ptr<th_evicted, DestroyEvicted>;

/// Keys of one or more numbers. The lock is for restore(), which exchanges the whole map.
class BoundedTable : public OneShardTable {
public:
    static constexpr char const* kind = "bounded HashTable";
    static constexpr char const* wanted = "tensorhash table with max_capacity";

    BoundedTable(tf::OpKernelContext* ctx, tf::OpKernel* op) : OneShardTable(ctx, op) {
        auto const status = ctx->status().ok() ? create(op->def()) : absl::OkStatus();
        if (!status.ok()) {
            ctx->SetStatus(status);
        }
    }
    ~BoundedTable() override { th_bounded_destroy(map_); }

    /// accumulate() with scores, int64 [rows], or null for "lru". Sets `added`.
    absl::Status admit(tf::Tensor const& keys, tf::Tensor const& values, th_reduce reduce,
                       std::int64_t const* scores, bool* added, EvictedPtr* evicted) {
        void const* const column = values.data();
        th_evicted* gone = nullptr;
        Reading const guard(lock_);
        TF_RETURN_IF_ERROR(to_status(
            th_bounded_accumulate(map_, keys.data(), rows_of(keys), &column, &reduce, scores,
                                  nullptr, reinterpret_cast<std::uint8_t*>(added), &gone)));
        evicted->reset(gone);
        return absl::OkStatus();
    }
    absl::Status touch(tf::Tensor const& keys, std::int64_t const* scores) {
        Reading const guard(lock_);
        return to_status(th_bounded_touch(map_, keys.data(), rows_of(keys), scores));
    }
    /// Copies all entries to the outputs "keys", "values" and "scores".
    absl::Status export_scores(tf::OpKernelContext* ctx) {
        Writing const guard(lock_);  // the size must not change before the copy
        std::int64_t count = 0;
        TF_RETURN_IF_ERROR(to_status(th_bounded_size(map_, &count)));
        tf::Tensor* keys = nullptr;
        tf::Tensor* values = nullptr;
        tf::Tensor* scores = nullptr;
        TF_RETURN_IF_ERROR(make_outputs(ctx, count, &keys, &values));
        TF_RETURN_IF_ERROR(ctx->allocate_output("scores", tf::TensorShape({count}), &scores));
        void* column = values->data();
        return to_status(th_bounded_items(map_, count, keys->data(), &column,
                                          scores->flat<std::int64_t>().data(), &count));
    }
    /// The whole state: th_bounded_to_bytes.
    absl::Status save(tf::OpKernelContext* ctx) {
        th_memory state{nullptr, 0};
        {
            Reading const guard(lock_);
            TF_RETURN_IF_ERROR(to_status(th_bounded_to_bytes(map_, &state)));
        }
        tf::Tensor* output = nullptr;
        auto const status = ctx->allocate_output(0, tf::TensorShape({state.bytes}), &output);
        if (status.ok() && state.bytes > 0) {
            std::memcpy(output->data(), state.data, static_cast<std::size_t>(state.bytes));
        }
        th_memory_give(state);
        return status;
    }
    absl::Status restore(tf::Tensor const& state) {
        th_bounded* made = nullptr;
        Writing const guard(lock_);
        TF_RETURN_IF_ERROR(to_status(th_bounded_from_bytes(
            state.data(), static_cast<std::int64_t>(state.TotalBytes()), map_, &made)));
        std::swap(map_, made);
        th_bounded_destroy(made);
        return absl::OkStatus();
    }

    absl::Status get(tf::OpKernelContext*, tf::Tensor const& keys, Missing missing,
                     tf::Tensor* values, bool* exists) override {
        Reading const guard(lock_);
        return to_status(th_bounded_get(map_, keys.data(), rows_of(keys), 0, missing.data,
                                        missing.per_row, values->data(),
                                        reinterpret_cast<std::uint8_t*>(exists)));
    }
    absl::Status accumulate(tf::OpKernelContext*, tf::Tensor const&, tf::Tensor const&,
                            th_reduce) override {
        return invalid(
            "table: expected one without max_capacity; a bounded table evicts entries, and only "
            "tensorhash.tensorflow.HashTable.insert and accumulate return them");
    }
    absl::Status assign(tf::OpKernelContext*, tf::Tensor const& keys, tf::Tensor const& values,
                        bool* exists) override {
        void const* const column = values.data();
        Reading const guard(lock_);
        return to_status(th_bounded_assign(map_, keys.data(), rows_of(keys), &column,
                                           reinterpret_cast<std::uint8_t*>(exists)));
    }
    absl::Status update(tf::OpKernelContext*, tf::Tensor const& keys, tf::Tensor const& gradients,
                        th_optimizer const& optimizer, th_duplicates duplicates,
                        bool* exists) override {
        Reading const guard(lock_);
        return to_status(th_bounded_update(map_, keys.data(), rows_of(keys), gradients.data(),
                                           &optimizer, TH_SKIP, duplicates,
                                           reinterpret_cast<std::uint8_t*>(exists)));
    }
    absl::Status erase(tf::OpKernelContext*, tf::Tensor const& keys) override {
        Reading const guard(lock_);
        return to_status(th_bounded_erase(map_, keys.data(), rows_of(keys), nullptr));
    }
    absl::Status replace(tf::OpKernelContext*, tf::Tensor const& keys,
                         tf::Tensor const& values) override {
        if (rows_of(keys) > max_capacity_ || eviction_ == TH_SCORE) {
            return invalid("keys: expected at most ", max_capacity_, " of a table that evicts by ",
                           "\"lru\", got ", rows_of(keys), " for one that evicts by \"",
                           eviction_ == TH_LRU ? "lru" : "score", "\"");
        }
        th_bounded* made = nullptr;
        TF_RETURN_IF_ERROR(make(&made));
        void const* const column = values.data();
        th_reduce const last = TH_LAST;
        auto const status = to_status(th_bounded_accumulate(
            made, keys.data(), rows_of(keys), &column, &last, nullptr, nullptr, nullptr, nullptr));
        if (status.ok()) {
            Writing const guard(lock_);
            std::swap(map_, made);
        }
        th_bounded_destroy(made);
        return status;
    }
    absl::Status locate(tf::OpKernelContext*, tf::Tensor const& keys,
                        std::vector<std::int64_t>* indices) override {
        std::vector<std::int32_t> found(static_cast<size_t>(rows_of(keys)));
        Reading const guard(lock_);
        TF_RETURN_IF_ERROR(
            to_status(th_bounded_find(map_, keys.data(), rows_of(keys), found.data(), nullptr)));
        indices->assign(found.begin(), found.end());
        return absl::OkStatus();
    }
    absl::Status clear() override {
        Reading const guard(lock_);
        return to_status(th_bounded_clear(map_));
    }
    absl::Status reserve(std::int64_t capacity) override {
        return capacity <= max_capacity_ ? absl::OkStatus()
                                         : invalid("capacity: expected at most max_capacity, ",
                                                   max_capacity_, ", got ", capacity);
    }
    absl::Status export_from(tf::OpKernelContext* ctx, std::int64_t begin, std::int64_t end,
                             std::int64_t limit, std::int64_t* next) override {
        TF_RETURN_IF_ERROR(check_end(end));
        Writing const guard(lock_);  // the size must not change before the copy
        std::int64_t count = 0;
        TF_RETURN_IF_ERROR(to_status(th_bounded_size(map_, &count)));
        if (begin != 0 || limit < count) {
            return invalid("limit: expected all ", count, " entries of a bounded table, got ",
                           limit, " from ", begin);
        }
        *next = -1;
        tf::Tensor* keys = nullptr;
        tf::Tensor* values = nullptr;
        TF_RETURN_IF_ERROR(make_outputs(ctx, count, &keys, &values));
        void* column = values->data();
        return to_status(th_bounded_items(map_, count, keys->data(), &column, nullptr, &count));
    }

    size_t size() const override {
        std::int64_t size = 0;
        Reading const guard(lock_);
        th_bounded_size(map_, &size);
        return static_cast<size_t>(size);
    }
    std::int64_t MemoryUsed() const override {
        std::int64_t bytes = 0;
        Reading const guard(lock_);
        th_bounded_memory(map_, &bytes);
        return static_cast<std::int64_t>(sizeof(*this)) + bytes;
    }
    std::string DebugString() const override { return describe(kind); }
    /// Whether an op with these attributes can mean this table.
    bool has_limits_of(tf::NodeDef const& def) const {
        std::int64_t max_capacity = 0;
        th_eviction eviction = TH_LRU;
        return read_limits(def, &max_capacity, &eviction).ok() && max_capacity == max_capacity_ &&
               eviction == eviction_;
    }

private:
    static absl::Status read_limits(tf::NodeDef const& def, std::int64_t* max_capacity,
                                    th_eviction* eviction) {
        std::string name;
        TF_RETURN_IF_ERROR(tf::GetNodeAttr(def, "max_capacity", max_capacity));
        TF_RETURN_IF_ERROR(tf::GetNodeAttr(def, "eviction", &name));
        *eviction = name == "score" ? TH_SCORE : TH_LRU;
        return absl::OkStatus();
    }
    absl::Status create(tf::NodeDef const& def) {
        TF_RETURN_IF_ERROR(read_limits(def, &max_capacity_, &eviction_));
        TF_RETURN_IF_ERROR(check_devices());
        TF_RETURN_IF_ERROR(check_version());
        return make(&map_);
    }
    absl::Status make(th_bounded** made) const {
        EngineElement const key_element(key_);
        EngineElement const value_element(value_);
        th_element const column = value_element.get();
        return to_status(
            th_bounded_create(max_capacity_, key_element.get(), &column, 1, eviction_, made));
    }

    mutable Lock lock_;
    th_bounded* map_ = nullptr;
    std::int64_t max_capacity_ = 0;
    th_eviction eviction_ = TH_LRU;
};

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_BOUNDED_TABLE_H_
