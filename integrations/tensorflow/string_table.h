// A table with string keys and number values.
#ifndef TENSORHASH_TENSORFLOW_STRING_TABLE_H_
#define TENSORHASH_TENSORFLOW_STRING_TABLE_H_

#include <vector>

#include "lock.h"
#include "one_shard_table.h"
#include "string_store.h"

namespace tensorhash_tf {

/// A StringStore behind a lock: readers together, writers alone.
class StringTable : public OneShardTable {
public:
    StringTable(tf::OpKernelContext* ctx, tf::OpKernel* op) : OneShardTable(ctx, op) {
        auto const status = ctx->status().ok() ? create(op->def()) : absl::OkStatus();
        if (!status.ok()) {
            ctx->SetStatus(status);
        }
    }

    absl::Status get(tf::OpKernelContext* ctx, tf::Tensor const& keys, Missing missing,
                     tf::Tensor* values, bool* exists) override {
        std::vector<std::int32_t> indices;
        Reading const guard(lock_);
        TF_RETURN_IF_ERROR(store_.find(batch_of(ctx, keys), &indices));
        TF_RETURN_IF_ERROR(store_.gather(indices, missing, values->data()));
        for (size_t row = 0; exists != nullptr && row < indices.size(); ++row) {
            exists[row] = indices[row] >= 0;
        }
        return absl::OkStatus();
    }
    absl::Status accumulate(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                            tf::Tensor const& values, th_reduce reduce) override {
        Writing const guard(lock_);
        return store_.accumulate(batch_of(ctx, keys), values.data(), reduce);
    }
    absl::Status assign(tf::OpKernelContext* ctx, tf::Tensor const& keys, tf::Tensor const& values,
                        bool* exists) override {
        Writing const guard(lock_);
        return store_.assign(batch_of(ctx, keys), values.data(), row_bytes(), exists);
    }
    absl::Status update(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                        tf::Tensor const& gradients, th_optimizer const& optimizer,
                        th_duplicates duplicates, bool* exists) override {
        Writing const guard(lock_);
        return store_.update(batch_of(ctx, keys), gradients.data(), row_bytes(), optimizer,
                             duplicates, exists);
    }
    absl::Status erase(tf::OpKernelContext* ctx, tf::Tensor const& keys) override {
        Writing const guard(lock_);
        return store_.erase(batch_of(ctx, keys));
    }
    absl::Status replace(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                         tf::Tensor const& values) override {
        StringStore made;
        TF_RETURN_IF_ERROR(made.create(value_, capacity_, hash_bits_));
        TF_RETURN_IF_ERROR(made.accumulate(batch_of(ctx, keys), values.data(), TH_LAST));
        Writing const guard(lock_);
        std::swap(store_, made);
        return absl::OkStatus();
    }
    absl::Status locate(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                        std::vector<std::int64_t>* indices) override {
        std::vector<std::int32_t> found;
        Reading const guard(lock_);
        TF_RETURN_IF_ERROR(store_.find(batch_of(ctx, keys), &found));
        indices->assign(found.begin(), found.end());
        return absl::OkStatus();
    }
    absl::Status clear() override {
        Writing const guard(lock_);
        return store_.clear();
    }
    absl::Status reserve(std::int64_t capacity) override {
        Writing const guard(lock_);
        return store_.reserve(capacity);
    }
    absl::Status export_from(tf::OpKernelContext* ctx, std::int64_t begin, std::int64_t end,
                             std::int64_t limit, std::int64_t* next) override {
        TF_RETURN_IF_ERROR(check_end(end));
        Reading const guard(lock_);
        void* column = nullptr;
        tf::Tensor* keys = nullptr;
        std::vector<std::int32_t> indices;
        TF_RETURN_IF_ERROR(
            store_.map().export_from(begin, limit, next, [&](std::int64_t rows, th_room* room) {
                tf::Tensor* values = nullptr;
                TF_RETURN_IF_ERROR(make_outputs(ctx, rows, &keys, &values));
                indices.resize(static_cast<size_t>(rows));
                column = values->data();
                *room = {nullptr, &column, indices.data()};
                return absl::OkStatus();
            }));
        auto strings = keys->flat<tf::tstring>();
        for (size_t row = 0; row < indices.size(); ++row) {
            strings(static_cast<std::int64_t>(row)) = store_.bytes(indices[row]);
        }
        return absl::OkStatus();
    }

    size_t size() const override {
        Reading const guard(lock_);
        return static_cast<size_t>(store_.map().size());
    }
    std::int64_t MemoryUsed() const override {
        Reading const guard(lock_);
        return sizeof(*this) + store_.memory();
    }

private:
    absl::Status create(tf::NodeDef const& def) {
        TF_RETURN_IF_ERROR(tf::GetNodeAttr(def, "hash_bits", &hash_bits_));
        if (key_.shape.dims() != 0) {
            return invalid("key_shape: expected [] for string keys, got ",
                           key_.shape.DebugString());
        }
        TF_RETURN_IF_ERROR(check_devices());
        return store_.create(value_, capacity_, hash_bits_);
    }
    size_t row_bytes() const {
        return static_cast<size_t>(value_.shape.num_elements() * tf::DataTypeSize(value_.dtype));
    }
    static StringStore::StringBatch batch_of(tf::OpKernelContext* ctx, tf::Tensor const& keys) {
        return {keys.flat<tf::tstring>().data(), keys.NumElements(), ctx};
    }

    mutable Lock lock_;
    StringStore store_;
    int hash_bits_ = 64;
};

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_STRING_TABLE_H_
