// A table with string values, stored outside the engine by buffer index. Keys are numbers or
// strings.
#ifndef TENSORHASH_TENSORFLOW_TEXT_TABLE_H_
#define TENSORHASH_TENSORFLOW_TEXT_TABLE_H_

#include <algorithm>
#include <utility>
#include <vector>

#include "lock.h"
#include "one_shard_table.h"
#include "string_store.h"

namespace tensorhash_tf {

using Added = StringStore::Added;

/// Number keys: a set in the engine.
class NumberKeys {
public:
    absl::Status create(ElementSpec const& key, std::int64_t capacity, int) {
        key_elements_ = key.shape.num_elements();
        return map_.create(key, capacity);
    }
    absl::Status find(tf::OpKernelContext*, tf::Tensor const& keys,
                      std::vector<std::int32_t>* indices) const {
        indices->resize(static_cast<size_t>(rows(keys)));
        return map_.find(keys.data(), rows(keys), indices->data());
    }
    absl::Status add(tf::OpKernelContext*, tf::Tensor const& keys, Added* added) {
        added->indices.resize(static_cast<size_t>(rows(keys)));
        added->mask.resize(added->indices.size());
        return map_.activate(keys.data(), rows(keys), added->indices.data(), added->mask.data());
    }
    absl::Status erase(tf::OpKernelContext*, tf::Tensor const& keys) {
        return map_.erase(keys.data(), rows(keys));
    }
    absl::Status clear() { return map_.clear(); }
    absl::Status reserve(std::int64_t capacity) { return map_.reserve(capacity); }
    std::int64_t size() const { return map_.size(); }
    std::int64_t memory() const { return map_.memory(); }

    /// Calls make(rows, &keys) once the row count is known; it sets the tensor for the keys.
    template <class Make>
    absl::Status export_from(std::int64_t begin, std::int64_t limit, std::int64_t* next,
                             std::vector<std::int32_t>* indices, Make&& make) const {
        return map_.export_from(begin, limit, next, [&](std::int64_t rows, th_room* room) {
            tf::Tensor* keys = nullptr;
            TF_RETURN_IF_ERROR(make(rows, &keys));
            indices->resize(static_cast<size_t>(rows));
            *room = {keys->data(), nullptr, indices->data()};
            return absl::OkStatus();
        });
    }

private:
    std::int64_t rows(tf::Tensor const& keys) const { return keys.NumElements() / key_elements_; }

    Map map_;
    std::int64_t key_elements_ = 1;
};

/// String keys. The store's value column is unused and stays false.
class StringKeys {
public:
    absl::Status create(ElementSpec const& key, std::int64_t capacity, int hash_bits) {
        if (key.shape.dims() != 0) {
            return invalid("key_shape: expected [] for string keys, got ", key.shape.DebugString());
        }
        return store_.create({tf::DT_BOOL, {}}, capacity, hash_bits);
    }
    absl::Status find(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                      std::vector<std::int32_t>* indices) const {
        return store_.find(batch_of(ctx, keys), indices);
    }
    absl::Status add(tf::OpKernelContext* ctx, tf::Tensor const& keys, Added* added) {
        std::vector<std::uint8_t> const nothing(static_cast<size_t>(keys.NumElements()));
        return store_.accumulate(batch_of(ctx, keys), nothing.data(), TH_FIRST, added);
    }
    absl::Status erase(tf::OpKernelContext* ctx, tf::Tensor const& keys) {
        return store_.erase(batch_of(ctx, keys));
    }
    absl::Status clear() { return store_.clear(); }
    absl::Status reserve(std::int64_t capacity) { return store_.reserve(capacity); }
    std::int64_t size() const { return store_.map().size(); }
    std::int64_t memory() const { return store_.memory(); }

    template <class Make>
    absl::Status export_from(std::int64_t begin, std::int64_t limit, std::int64_t* next,
                             std::vector<std::int32_t>* indices, Make&& make) const {
        tf::Tensor* keys = nullptr;
        TF_RETURN_IF_ERROR(
            store_.map().export_from(begin, limit, next, [&](std::int64_t rows, th_room* room) {
                TF_RETURN_IF_ERROR(make(rows, &keys));
                indices->resize(static_cast<size_t>(rows));
                *room = {nullptr, nullptr, indices->data()};
                return absl::OkStatus();
            }));
        auto strings = keys->flat<tf::tstring>();
        for (size_t row = 0; row < indices->size(); ++row) {
            strings(static_cast<std::int64_t>(row)) = store_.bytes((*indices)[row]);
        }
        return absl::OkStatus();
    }

private:
    static StringStore::StringBatch batch_of(tf::OpKernelContext* ctx, tf::Tensor const& keys) {
        return {keys.flat<tf::tstring>().data(), keys.NumElements(), ctx};
    }

    StringStore store_;
};

/// Keys and their string values, `width` cells per buffer index. It has no lock.
template <class Keys>
struct TextStore {
    Keys keys;
    std::vector<tf::tstring> cells;
    size_t width = 1;

    absl::Status accumulate(tf::OpKernelContext* ctx, tf::Tensor const& batch,
                            tf::Tensor const& values, th_reduce reduce) {
        // Allocate first: once the keys have changed, nothing may fail.
        auto const* const given = values.flat<tf::tstring>().data();
        std::vector<tf::tstring> rows(given, given + values.NumElements());
        std::vector<std::int32_t> before;
        TF_RETURN_IF_ERROR(keys.find(ctx, batch, &before));
        auto const fresh = static_cast<size_t>(std::count(before.begin(), before.end(), -1));
        size_t const used = cells.size();
        cells.resize(used + fresh * width);
        Added added;
        auto const status = keys.add(ctx, batch, &added);
        if (!status.ok()) {
            cells.resize(used);
            return status;
        }
        size_t top = used / width;
        for (size_t row = 0; row < added.indices.size(); ++row) {
            auto const index = static_cast<size_t>(added.indices[row]);
            top = std::max(top, index + 1);
            if (added.mask[row] != 0 || reduce == TH_LAST) {
                std::move(rows.begin() + static_cast<std::ptrdiff_t>(row * width),
                          rows.begin() + static_cast<std::ptrdiff_t>((row + 1) * width),
                          cells.begin() + static_cast<std::ptrdiff_t>(index * width));
            }
        }
        cells.resize(top * width);  // equal new keys share one index
        return absl::OkStatus();
    }

    absl::Status erase(tf::OpKernelContext* ctx, tf::Tensor const& batch) {
        std::vector<std::int32_t> indices;
        TF_RETURN_IF_ERROR(keys.find(ctx, batch, &indices));
        TF_RETURN_IF_ERROR(keys.erase(ctx, batch));
        for (std::int32_t const index : indices) {
            for (size_t i = 0; index >= 0 && i < width; ++i) {
                cells[static_cast<size_t>(index) * width + i] = tf::tstring();
            }
        }
        return absl::OkStatus();
    }
};

template <class Keys>
class TextTable : public OneShardTable {
public:
    TextTable(tf::OpKernelContext* ctx, tf::OpKernel* op) : OneShardTable(ctx, op) {
        auto const status = ctx->status().ok() ? create(op->def()) : absl::OkStatus();
        if (!status.ok()) {
            ctx->SetStatus(status);
        }
    }

    absl::Status get(tf::OpKernelContext* ctx, tf::Tensor const& keys, Missing missing,
                     tf::Tensor* values, bool* exists) override {
        auto const* const defaults = static_cast<tf::tstring const*>(missing.data);
        auto* const out = values->flat<tf::tstring>().data();
        std::vector<std::int32_t> indices;
        Reading const guard(lock_);
        TF_RETURN_IF_ERROR(store_.keys.find(ctx, keys, &indices));
        size_t const width = store_.width;
        for (size_t row = 0; row < indices.size(); ++row) {
            bool const there = indices[row] >= 0;
            auto const* const from =
                there ? store_.cells.data() + static_cast<size_t>(indices[row]) * width
                      : defaults + (missing.per_row ? row * width : 0);
            for (size_t i = 0; i < width && (there || defaults != nullptr); ++i) {
                out[row * width + i] = from[i];
            }
            if (exists != nullptr) {
                exists[row] = there;
            }
        }
        return absl::OkStatus();
    }
    absl::Status accumulate(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                            tf::Tensor const& values, th_reduce reduce) override {
        if (reduce != TH_FIRST && reduce != TH_LAST) {
            return invalid("reduce: expected first or last for string values, got ",
                           reduce == TH_SUM   ? "sum"
                           : reduce == TH_MIN ? "min"
                                              : "max");
        }
        Writing const guard(lock_);
        return store_.accumulate(ctx, keys, values, reduce);
    }
    absl::Status assign(tf::OpKernelContext* ctx, tf::Tensor const& keys, tf::Tensor const& values,
                        bool* exists) override {
        auto const* const given = values.flat<tf::tstring>().data();
        std::vector<tf::tstring> rows(given, given + values.NumElements());
        std::vector<std::int32_t> indices;
        Writing const guard(lock_);
        TF_RETURN_IF_ERROR(store_.keys.find(ctx, keys, &indices));
        size_t const width = store_.width;
        for (size_t row = 0; row < indices.size(); ++row) {
            exists[row] = indices[row] >= 0;
            for (size_t i = 0; exists[row] && i < width; ++i) {
                store_.cells[static_cast<size_t>(indices[row]) * width + i] =
                    std::move(rows[row * width + i]);
            }
        }
        return absl::OkStatus();
    }
    absl::Status update(tf::OpKernelContext*, tf::Tensor const&, tf::Tensor const&,
                        th_optimizer const&, th_duplicates, bool*) override {
        return invalid("gradients: expected a table of floats, got ", DebugString());
    }
    absl::Status erase(tf::OpKernelContext* ctx, tf::Tensor const& keys) override {
        Writing const guard(lock_);
        return store_.erase(ctx, keys);
    }
    absl::Status replace(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                         tf::Tensor const& values) override {
        TextStore<Keys> made;
        made.width = store_.width;
        TF_RETURN_IF_ERROR(made.keys.create(key_, capacity_, hash_bits_));
        TF_RETURN_IF_ERROR(made.accumulate(ctx, keys, values, TH_LAST));
        Writing const guard(lock_);
        std::swap(store_, made);
        return absl::OkStatus();
    }
    absl::Status locate(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                        std::vector<std::int64_t>* indices) override {
        std::vector<std::int32_t> found;
        Reading const guard(lock_);
        TF_RETURN_IF_ERROR(store_.keys.find(ctx, keys, &found));
        indices->assign(found.begin(), found.end());
        return absl::OkStatus();
    }
    absl::Status clear() override {
        Writing const guard(lock_);
        TF_RETURN_IF_ERROR(store_.keys.clear());
        store_.cells.clear();
        return absl::OkStatus();
    }
    absl::Status reserve(std::int64_t capacity) override {
        Writing const guard(lock_);
        return store_.keys.reserve(capacity);
    }
    absl::Status export_from(tf::OpKernelContext* ctx, std::int64_t begin, std::int64_t end,
                             std::int64_t limit, std::int64_t* next) override {
        TF_RETURN_IF_ERROR(check_end(end));
        tf::Tensor* values = nullptr;
        std::vector<std::int32_t> indices;
        Reading const guard(lock_);
        TF_RETURN_IF_ERROR(store_.keys.export_from(
            begin, limit, next, &indices, [&](std::int64_t rows, tf::Tensor** keys) {
                return make_outputs(ctx, rows, keys, &values);
            }));
        auto* out = values->flat<tf::tstring>().data();
        for (std::int32_t const index : indices) {
            auto const* const from =
                store_.cells.data() + static_cast<size_t>(index) * store_.width;
            out = std::copy(from, from + store_.width, out);
        }
        return absl::OkStatus();
    }

    size_t size() const override {
        Reading const guard(lock_);
        return static_cast<size_t>(store_.keys.size());
    }
    std::int64_t MemoryUsed() const override {
        Reading const guard(lock_);
        std::int64_t bytes = sizeof(*this) + store_.keys.memory();
        for (tf::tstring const& cell : store_.cells) {
            bytes += static_cast<std::int64_t>(sizeof(cell) + cell.capacity());
        }
        return bytes;
    }

private:
    absl::Status create(tf::NodeDef const& def) {
        TF_RETURN_IF_ERROR(tf::GetNodeAttr(def, "hash_bits", &hash_bits_));
        TF_RETURN_IF_ERROR(check_devices());
        store_.width = static_cast<size_t>(value_.shape.num_elements());
        return store_.keys.create(key_, capacity_, hash_bits_);
    }

    mutable Lock lock_;
    TextStore<Keys> store_;
    int hash_bits_ = 64;
};

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_TEXT_TABLE_H_
