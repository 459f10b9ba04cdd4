// Our tables as TensorFlow lookup tables: TensorFlow's own LookupTable*V2 ops work on them,
// and our ops add more. LookupTable is the common base; PlainTable has number keys and values.
#ifndef TENSORHASH_TENSORFLOW_TABLE_H_
#define TENSORHASH_TENSORFLOW_TABLE_H_

#include <limits>
#include <string>
#include <vector>

#include "shards.h"
#include "tensorflow/core/framework/lookup_interface.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "warm_memory.h"

namespace tensorhash_tf {

/// Reads the attributes "devices" and "policy". No devices means the first CPU device.
inline absl::Status read_placement(tf::NodeDef const& def, Placement* placement) {
    std::vector<std::string> devices;
    TF_RETURN_IF_ERROR(tf::GetNodeAttr(def, "devices", &devices));
    if (!devices.empty()) {
        placement->devices = std::move(devices);
    }
    return tf::GetNodeAttr(def, "policy", &placement->policy);
}

/// A lookup table over the engine. TensorFlow's functions are final here and call the few virtual
/// functions that a table implements. Any thread may call those. Arguments are already checked.
class LookupTable : public tf::lookup::LookupInterface {
public:
    /// The name of such a table in Python.
    static constexpr char const* kind = "HashTable";
    /// What an op that works on any table expects, for its errors.
    static constexpr char const* wanted = "tensorhash table";

    /// Reads the attributes of the op. Reports errors in ctx->status().
    LookupTable(tf::OpKernelContext* ctx, tf::OpKernel* op) {
        auto const status = read_attributes(op->def());
        if (!status.ok()) {
            ctx->SetStatus(status);
        }
    }

    /// Reads the values of keys; missing keys get `missing`. Sets `exists` unless it is null.
    virtual absl::Status get(tf::OpKernelContext* ctx, tf::Tensor const& keys, Missing missing,
                             tf::Tensor* values, bool* exists) = 0;
    /// Adds new keys. Combines every further row of a key by `reduce`, in row order.
    virtual absl::Status accumulate(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                                    tf::Tensor const& values, th_reduce reduce) = 0;
    /// Overwrites the values of keys in the table; of equal keys the last row wins. Sets `exists`.
    virtual absl::Status assign(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                                tf::Tensor const& values, bool* exists) = 0;
    /// One optimizer step for each row with a key in the table. Sets `exists`.
    virtual absl::Status update(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                                tf::Tensor const& gradients, th_optimizer const& optimizer,
                                th_duplicates duplicates, bool* exists) = 0;
    virtual absl::Status erase(tf::OpKernelContext* ctx, tf::Tensor const& keys) = 0;
    virtual absl::Status replace(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                                 tf::Tensor const& values) = 0;
    /// The engine's index of each key, or -1 if it is missing.
    virtual absl::Status locate(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                                std::vector<std::int64_t>* indices) = 0;
    /// Refuses keys that belong to another shard, and names the first.
    virtual absl::Status require_shard(tf::Tensor const& keys, std::int64_t shard) = 0;
    /// The number of entries in one shard.
    virtual absl::Status shard_size(std::int64_t shard, std::int64_t* size) = 0;
    virtual absl::Status clear() = 0;
    virtual absl::Status reserve(std::int64_t capacity) = 0;
    /// Writes up to `limit` entries with begin <= index < end to the outputs "keys" and "values".
    /// The indices of a shard begin at shard << 32.
    virtual absl::Status export_from(tf::OpKernelContext* ctx, std::int64_t begin, std::int64_t end,
                                     std::int64_t limit, std::int64_t* next) = 0;
    /// Fills a read-only table, once.
    virtual absl::Status initialize(tf::OpKernelContext*, tf::Tensor const&, tf::Tensor const&) {
        return refused("table: expected a StaticHashTable, got a mutable table; use insert");
    }

    /// Like Find. Also sets `exists` unless it is null.
    absl::Status read(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                      tf::Tensor const& default_value, tf::Tensor* values, bool* exists) {
        Missing const missing{default_value.data(), default_value.shape() != value_.shape};
        TF_RETURN_IF_ERROR(use_warm_memory(ctx, 0, values));
        return get(ctx, keys, missing, values, exists);
    }
    absl::Status Find(tf::OpKernelContext* ctx, tf::Tensor const& keys, tf::Tensor* values,
                      tf::Tensor const& default_value) final {
        return guarded([&] { return read(ctx, keys, default_value, values, nullptr); });
    }
    absl::Status Insert(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                        tf::Tensor const& values) final {
        return guarded([&] { return accumulate(ctx, keys, values, TH_LAST); });
    }
    absl::Status Remove(tf::OpKernelContext* ctx, tf::Tensor const& keys) final {
        return guarded([&] { return erase(ctx, keys); });
    }
    absl::Status ExportValues(tf::OpKernelContext* ctx) final {
        constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
        std::int64_t next = 0;
        return guarded([&] { return export_from(ctx, 0, kAll, kAll, &next); });
    }
    absl::Status ImportValues(tf::OpKernelContext* ctx, tf::Tensor const& keys,
                              tf::Tensor const& values) final {
        return guarded([&] { return replace(ctx, keys, values); });
    }

    tf::DataType key_dtype() const final { return key_.dtype; }
    tf::DataType value_dtype() const final { return value_.dtype; }
    tf::TensorShape key_shape() const final { return key_.shape; }
    tf::TensorShape value_shape() const final { return value_.shape; }
    Placement const& placement() const { return placement_; }
    /// Whether an op with these attributes can mean this table; only bounded tables have limits.
    bool has_limits_of(tf::NodeDef const&) const { return true; }
    std::string DebugString() const override { return describe(kind); }

protected:
    std::string describe(char const* name) const {
        return absl::StrCat("a tensorhash ", name, " of ", tf::DataTypeString(key_.dtype),
                            key_.shape.DebugString(), " to ", tf::DataTypeString(value_.dtype),
                            value_.shape.DebugString(), " on ", placement_.describe(), " with ",
                            size(), " entries");
    }

    std::int64_t rows_of(tf::Tensor const& keys) const {
        return keys.NumElements() / key_.shape.num_elements();
    }

    /// Allocates the outputs of an export of `rows` rows.
    absl::Status make_outputs(tf::OpKernelContext* ctx, std::int64_t rows, tf::Tensor** keys,
                              tf::Tensor** values) const {
        tf::TensorShape key_rows({rows});
        key_rows.AppendShape(key_.shape);
        tf::TensorShape value_rows({rows});
        value_rows.AppendShape(value_.shape);
        TF_RETURN_IF_ERROR(ctx->allocate_output("keys", key_rows, keys));
        TF_RETURN_IF_ERROR(ctx->allocate_output("values", value_rows, values));
        // The op's attributes set the dtypes of the outputs. They are not yet checked against this
        // table.
        if ((*keys)->dtype() != key_.dtype || (*values)->dtype() != value_.dtype) {
            return invalid("table: expected a table of ", tf::DataTypeString((*keys)->dtype()),
                           " to ", tf::DataTypeString((*values)->dtype()), ", got ", DebugString());
        }
        TF_RETURN_IF_ERROR(use_warm_memory(ctx, 0, *keys));
        return use_warm_memory(ctx, 1, *values);
    }

    ElementSpec key_;
    ElementSpec value_;
    std::int64_t capacity_ = 0;
    Placement placement_;

private:
    absl::Status read_attributes(tf::NodeDef const& def) {
        TF_RETURN_IF_ERROR(tf::GetNodeAttr(def, "key_dtype", &key_.dtype));
        TF_RETURN_IF_ERROR(tf::GetNodeAttr(def, "value_dtype", &value_.dtype));
        TF_RETURN_IF_ERROR(tf::GetNodeAttr(def, "key_shape", &key_.shape));
        TF_RETURN_IF_ERROR(tf::GetNodeAttr(def, "value_shape", &value_.shape));
        TF_RETURN_IF_ERROR(tf::GetNodeAttr(def, "capacity", &capacity_));
        TF_RETURN_IF_ERROR(read_placement(def, &placement_));
        if (key_.shape.num_elements() == 0 || value_.shape.num_elements() == 0) {
            return invalid("key_shape, value_shape: expected at least one element each, got ",
                           key_.shape.DebugString(), " and ", value_.shape.DebugString());
        }
        return absl::OkStatus();
    }
};

/// Keys of one or more numbers. Batches go to the engine without a copy. The engine does the
/// locking.
class PlainTable : public LookupTable {
public:
    PlainTable(tf::OpKernelContext* ctx, tf::OpKernel* op) : LookupTable(ctx, op) {
        if (ctx->status().ok()) {
            auto const status = map_.create(key_, value_, capacity_, placement_);
            if (!status.ok()) {
                ctx->SetStatus(status);
            }
        }
    }

    absl::Status get(tf::OpKernelContext*, tf::Tensor const& keys, Missing missing,
                     tf::Tensor* values, bool* exists) override {
        return map_.get(keys.data(), rows_of(keys), missing, values->data(), exists);
    }
    absl::Status accumulate(tf::OpKernelContext*, tf::Tensor const& keys, tf::Tensor const& values,
                            th_reduce reduce) override {
        return map_.accumulate(keys.data(), rows_of(keys), values.data(), reduce);
    }
    absl::Status assign(tf::OpKernelContext*, tf::Tensor const& keys, tf::Tensor const& values,
                        bool* exists) override {
        return map_.assign(keys.data(), rows_of(keys), values.data(), exists);
    }
    absl::Status update(tf::OpKernelContext*, tf::Tensor const& keys, tf::Tensor const& gradients,
                        th_optimizer const& optimizer, th_duplicates duplicates,
                        bool* exists) override {
        return map_.update(keys.data(), rows_of(keys), gradients.data(), optimizer, duplicates,
                           exists);
    }
    absl::Status erase(tf::OpKernelContext*, tf::Tensor const& keys) override {
        return map_.erase(keys.data(), rows_of(keys));
    }
    absl::Status replace(tf::OpKernelContext*, tf::Tensor const& keys,
                         tf::Tensor const& values) override {
        return map_.replace(keys.data(), rows_of(keys), values.data());
    }
    absl::Status locate(tf::OpKernelContext*, tf::Tensor const& keys,
                        std::vector<std::int64_t>* indices) override {
        indices->resize(static_cast<size_t>(rows_of(keys)));
        return map_.find(keys.data(), rows_of(keys), indices->data());
    }
    absl::Status require_shard(tf::Tensor const& keys, std::int64_t shard) override {
        std::vector<std::int32_t> owners(static_cast<size_t>(rows_of(keys)));
        TF_RETURN_IF_ERROR(map_.shard_of(keys.data(), rows_of(keys), owners.data()));
        for (size_t row = 0; row < owners.size(); ++row) {
            if (owners[row] != shard) {
                return invalid("keys: row ", row, " belongs to ",
                               placement_.devices[static_cast<size_t>(owners[row])],
                               ", not to shard ", shard,
                               "; use insert(), which sends each row to its shard");
            }
        }
        return absl::OkStatus();
    }
    absl::Status shard_size(std::int64_t shard, std::int64_t* size) override {
        auto const shards = static_cast<std::int64_t>(placement_.devices.size());
        if (shard < 0 || shard >= shards) {
            return invalid("shard: expected 0 to ", shards - 1, ", got ", shard);
        }
        return map_.size(static_cast<std::int32_t>(shard), size);
    }
    absl::Status clear() override { return map_.clear(); }
    absl::Status reserve(std::int64_t capacity) override { return map_.reserve(capacity); }
    absl::Status export_from(tf::OpKernelContext* ctx, std::int64_t begin, std::int64_t end,
                             std::int64_t limit, std::int64_t* next) override {
        void* column = nullptr;
        return map_.export_from(begin, end, limit, next,
                                [&](std::int64_t rows, th_sharded_room* room) {
                                    tf::Tensor* keys = nullptr;
                                    tf::Tensor* values = nullptr;
                                    TF_RETURN_IF_ERROR(make_outputs(ctx, rows, &keys, &values));
                                    column = values->data();
                                    *room = {keys->data(), &column, nullptr};
                                    return absl::OkStatus();
                                });
    }

    size_t size() const override {
        std::int64_t size = 0;
        map_.size(-1, &size).IgnoreError();  // fails only for a shard that does not exist
        return static_cast<size_t>(size);
    }
    std::int64_t MemoryUsed() const override { return sizeof(*this) + map_.memory(); }

private:
    Shards map_;
};

/// Another name for PlainTable; docs/tensorflow.md explains it. Scalars are elements with an empty
/// shape. It is not a template, because dtypes are known at run time. Strings have StringTable.
using MutableNvidiaHashTableOfScalars = PlainTable;

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_TABLE_H_
