// A table that its initialiser fills once. After that it refuses changes.
#ifndef TENSORHASH_TENSORFLOW_READ_ONLY_TABLE_H_
#define TENSORHASH_TENSORFLOW_READ_ONLY_TABLE_H_

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "table.h"

namespace tensorhash_tf {

template <class Container>
class ReadOnly final : public Container {
public:
    using Container::Container;
    static constexpr char const* kind = "StaticHashTable";

    /// Equal keys must have equal values. A second call must pass exactly the entries of the
    /// table; it happens when a shared table is opened twice.
    absl::Status initialize(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                            tf::Tensor const& values) override {
        std::lock_guard<std::mutex> const guard(filling_);
        bool const filled = filled_.load(std::memory_order_relaxed);  // only written under the lock
        if (filled) {
            return check_same(ctx, keys, values);
        }
        TF_RETURN_IF_ERROR(Container::clear());  // a failed attempt may have left entries
        TF_RETURN_IF_ERROR(Container::accumulate(ctx, keys, values, TH_FIRST));
        std::int64_t differs = -1;
        TF_RETURN_IF_ERROR(first_difference(ctx, keys, values, &differs));
        if (differs < 0) {
            filled_.store(true, std::memory_order_release);  // pairs with the acquire in ready()
            return absl::OkStatus();
        }
        TF_RETURN_IF_ERROR(Container::clear());
        return invalid("keys: expected distinct keys, or equal values for equal keys; row ",
                       differs, " has the key of an earlier row and a different value");
    }

    absl::Status get(tf::OpKernelContext* ctx, tf::Tensor const& keys, Missing missing,
                     tf::Tensor* values, bool* exists) override {
        TF_RETURN_IF_ERROR(ready());
        return Container::get(ctx, keys, missing, values, exists);
    }
    absl::Status export_from(tf::OpKernelContext* ctx, std::int64_t begin, std::int64_t end,
                             std::int64_t limit, std::int64_t* next) override {
        TF_RETURN_IF_ERROR(ready());
        return Container::export_from(ctx, begin, end, limit, next);
    }

    absl::Status accumulate(tf::OpKernelContext*, tf::Tensor const&, tf::Tensor const&,
                            th_reduce) override {
        return refusal();
    }
    absl::Status assign(tf::OpKernelContext*, tf::Tensor const&, tf::Tensor const&,
                        bool*) override {
        return refusal();
    }
    absl::Status update(tf::OpKernelContext*, tf::Tensor const&, tf::Tensor const&,
                        th_optimizer const&, th_duplicates, bool*) override {
        return refusal();
    }
    absl::Status erase(tf::OpKernelContext*, tf::Tensor const&) override { return refusal(); }
    absl::Status replace(tf::OpKernelContext*, tf::Tensor const&, tf::Tensor const&) override {
        return refusal();
    }
    absl::Status clear() override { return refusal(); }
    absl::Status reserve(std::int64_t) override { return refusal(); }

    std::string DebugString() const override { return this->describe(kind); }

private:
    absl::Status ready() const {
        // Pairs with the release in initialize().
        if (filled_.load(std::memory_order_acquire)) {
            return absl::OkStatus();
        }
        return refused("table: it is not initialised yet");
    }
    static absl::Status refusal() {
        return refused(
            "table: it is read-only; for a mutable table use tensorhash.tensorflow.HashTable");
    }

    /// Refuses entries that are not exactly those of the filled table.
    absl::Status check_same(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                            tf::Tensor const& values) {
        std::int64_t differs = -1;
        TF_RETURN_IF_ERROR(first_difference(ctx, keys, values, &differs));
        if (differs >= 0) {
            return refused("table: expected one initialisation, or the same entries again; row ",
                           differs, " of keys and values differs");
        }
        std::vector<std::int64_t> indices;
        TF_RETURN_IF_ERROR(Container::locate(ctx, keys, &indices));
        std::sort(indices.begin(), indices.end());
        auto const distinct = std::unique(indices.begin(), indices.end()) - indices.begin();
        if (static_cast<size_t>(distinct) != this->size()) {
            return refused("table: expected one initialisation, or the same ", this->size(),
                           " entries again; got ", distinct, " of them");
        }
        return absl::OkStatus();
    }

    /// The first row with a key that is missing or has a different value in the table, or -1.
    absl::Status first_difference(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                                  tf::Tensor const& values, std::int64_t* differs) {
        *differs = -1;
        std::int64_t const rows = this->rows_of(keys);
        if (rows == 0) {
            return absl::OkStatus();
        }
        tf::Tensor stored;
        TF_RETURN_IF_ERROR(ctx->allocate_temp(values.dtype(), values.shape(), &stored));
        std::vector<std::uint8_t> exists(static_cast<size_t>(rows));
        TF_RETURN_IF_ERROR(Container::get(ctx, keys, {nullptr, false}, &stored,
                                          reinterpret_cast<bool*>(exists.data())));
        for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
            if (exists[row] == 0 || !same_row(stored, values, row, static_cast<size_t>(rows))) {
                *differs = static_cast<std::int64_t>(row);
                return absl::OkStatus();
            }
        }
        return absl::OkStatus();
    }

    static bool same_row(tf::Tensor const& one, tf::Tensor const& other, size_t row, size_t rows) {
        if (one.dtype() == tf::DT_STRING) {
            size_t const width = static_cast<size_t>(one.NumElements()) / rows;
            auto const* const have = one.flat<tf::tstring>().data() + row * width;
            return std::equal(have, have + width, other.flat<tf::tstring>().data() + row * width);
        }
        size_t const bytes = one.TotalBytes() / rows;
        return std::memcmp(static_cast<char const*>(one.data()) + row * bytes,
                           static_cast<char const*>(other.data()) + row * bytes, bytes) == 0;
    }

    std::mutex filling_;
    std::atomic<bool> filled_{false};
};

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_READ_ONLY_TABLE_H_
