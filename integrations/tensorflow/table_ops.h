// What the ops do with a table, wherever their arrays are.
#ifndef TENSORHASH_TENSORFLOW_TABLE_OPS_H_
#define TENSORHASH_TENSORFLOW_TABLE_OPS_H_

#include <algorithm>
#include <string>
#include <vector>

#include "table.h"
#include "table_op.h"

namespace tensorhash_tf {

/// The key dtypes of a table of numbers.
inline tf::DataTypeVector number_keys() {
    return {tf::DT_BOOL,   tf::DT_INT8,   tf::DT_INT16,  tf::DT_INT32, tf::DT_INT64, tf::DT_UINT8,
            tf::DT_UINT16, tf::DT_UINT32, tf::DT_UINT64, tf::DT_FLOAT, tf::DT_DOUBLE};
}
/// The value dtypes of a table of numbers.
inline tf::DataTypeVector number_values() {
    return {tf::DT_BOOL,     tf::DT_INT8,   tf::DT_INT16,  tf::DT_INT32,  tf::DT_INT64,
            tf::DT_UINT8,    tf::DT_UINT16, tf::DT_UINT32, tf::DT_UINT64, tf::DT_HALF,
            tf::DT_BFLOAT16, tf::DT_FLOAT,  tf::DT_DOUBLE};
}

/// Reads the scalar input `i`. Checks its shape here, because shape functions do not run eagerly,
/// and in a graph the shape may be unknown.
inline absl::Status scalar_input(tf::OpKernelContext* ctx, int i, char const* name,
                                 std::int64_t* value) {
    tf::Tensor const& given = ctx->input(i);
    if (given.dtype() != tf::DT_INT64 || given.dims() != 0) {
        return invalid(name, ": expected a scalar int64, got ", tf::DataTypeString(given.dtype()),
                       " of shape ", given.shape().DebugString());
    }
    *value = given.scalar<std::int64_t>()();
    return absl::OkStatus();
}

class FindOp : public TableOp {
public:
    using TableOp::TableOp;

protected:
    absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) override {
        tf::Tensor const& keys = ctx->input(1);
        tf::Tensor const& default_value = ctx->input(2);
        TF_RETURN_IF_ERROR(table.CheckFindArguments(keys, default_value));
        tf::TensorShape rows = keys.shape();
        rows.RemoveLastDims(table.key_shape().dims());
        tf::TensorShape value_rows = rows;
        value_rows.AppendShape(table.value_shape());
        tf::Tensor* values = nullptr;
        tf::Tensor* exists = nullptr;
        TF_RETURN_IF_ERROR(ctx->allocate_output(0, value_rows, &values));
        TF_RETURN_IF_ERROR(ctx->allocate_output(1, rows, &exists));
        return table.read(ctx, keys, default_value, values, exists->flat<bool>().data());
    }
};

class AccumulateOp : public TableOp {
public:
    explicit AccumulateOp(tf::OpKernelConstruction* ctx) : TableOp(ctx) {
        std::string name;
        OP_REQUIRES_OK(ctx, ctx->GetAttr("reduce", &name));
        reduce_ = reduce_named(name);
        OP_REQUIRES_OK(ctx, ctx->GetAttr("shard", &shard_));
    }

protected:
    absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) override {
        TF_RETURN_IF_ERROR(table.CheckKeyAndValueTensorsForInsert(ctx->input(1), ctx->input(2)));
        if (shard_ >= 0) {
            TF_RETURN_IF_ERROR(table.require_shard(ctx->input(1), shard_));
        }
        return table.accumulate(ctx, ctx->input(1), ctx->input(2), reduce_);
    }

private:
    th_reduce reduce_ = TH_LAST;
    std::int64_t shard_ = -1;
};

/// The buffer index of each key, -1 for missing keys.
class LocateOp : public TableOp {
public:
    using TableOp::TableOp;

protected:
    absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) override {
        TF_RETURN_IF_ERROR(table.CheckKeyTensorForRemove(ctx->input(1)));
        std::int64_t* output = nullptr;
        TF_RETURN_IF_ERROR(output_per_key(ctx, table, &output));
        std::vector<std::int64_t> indices;
        TF_RETURN_IF_ERROR(table.locate(ctx, ctx->input(1), &indices));
        std::copy(indices.begin(), indices.end(), output);
        return absl::OkStatus();
    }
};

class AssignOp : public TableOp {
public:
    using TableOp::TableOp;

protected:
    absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) override {
        TF_RETURN_IF_ERROR(table.CheckKeyAndValueTensorsForInsert(ctx->input(1), ctx->input(2)));
        bool* exists = nullptr;
        TF_RETURN_IF_ERROR(output_per_key(ctx, table, &exists));
        return table.assign(ctx, ctx->input(1), ctx->input(2), exists);
    }
};

class UpdateOp : public TableOp {
public:
    explicit UpdateOp(tf::OpKernelConstruction* ctx) : TableOp(ctx) {
        std::string duplicates;
        OP_REQUIRES_OK(ctx, ctx->GetAttr("duplicates", &duplicates));
        duplicates_ = duplicates == "sum" ? TH_ADD_UP : TH_IN_ORDER;
    }

protected:
    absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) override {
        TF_RETURN_IF_ERROR(table.CheckKeyAndValueTensorsForInsert(ctx->input(1), ctx->input(2)));
        tf::Tensor const& settings = ctx->input(3);
        if (settings.dtype() != tf::DT_DOUBLE || settings.NumElements() != 2) {
            return invalid("settings: expected two doubles, learning rate and weight decay, got ",
                           settings.DebugString());
        }
        th_optimizer sgd{};
        sgd.kind = TH_SGD;
        sgd.lr = settings.flat<double>()(0);
        sgd.weight_decay = settings.flat<double>()(1);
        bool* exists = nullptr;
        TF_RETURN_IF_ERROR(output_per_key(ctx, table, &exists));
        return table.update(ctx, ctx->input(1), ctx->input(2), sgd, duplicates_, exists);
    }

private:
    th_duplicates duplicates_ = TH_IN_ORDER;
};

class ShardSizeOp : public TableOp {
public:
    using TableOp::TableOp;

protected:
    absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) override {
        std::int64_t shard = 0;
        TF_RETURN_IF_ERROR(scalar_input(ctx, 1, "shard", &shard));
        tf::Tensor* output = nullptr;
        TF_RETURN_IF_ERROR(ctx->allocate_output(0, {}, &output));
        return table.shard_size(shard, &output->scalar<std::int64_t>()());
    }
};

class RemoveOp : public TableOp {
public:
    using TableOp::TableOp;

protected:
    absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) override {
        TF_RETURN_IF_ERROR(table.CheckKeyTensorForRemove(ctx->input(1)));
        return table.erase(ctx, ctx->input(1));
    }
};

class ClearOp : public TableOp {
public:
    using TableOp::TableOp;

protected:
    absl::Status run(tf::OpKernelContext*, LookupTable& table) override { return table.clear(); }
};

class ReserveOp : public TableOp {
public:
    using TableOp::TableOp;

protected:
    absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) override {
        std::int64_t capacity = 0;
        TF_RETURN_IF_ERROR(scalar_input(ctx, 1, "capacity", &capacity));
        return table.reserve(capacity);
    }
};

class ImportOp : public TableOp {
public:
    using TableOp::TableOp;

protected:
    absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) override {
        TF_RETURN_IF_ERROR(table.CheckKeyAndValueTensorsForImport(ctx->input(1), ctx->input(2)));
        if (ctx->input(1).dims() != 1 + table.key_shape().dims()) {
            return invalid("keys: expected a list of keys of shape ",
                           table.key_shape().DebugString(), ", got ",
                           ctx->input(1).shape().DebugString());
        }
        return table.replace(ctx, ctx->input(1), ctx->input(2));
    }
};

class InitializeOp : public TableOp {
public:
    using TableOp::TableOp;

protected:
    absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) override {
        TF_RETURN_IF_ERROR(table.CheckKeyAndValueTensorsForInsert(ctx->input(1), ctx->input(2)));
        return table.initialize(ctx, ctx->input(1), ctx->input(2));
    }
};

class ExportOp : public TableOp {
public:
    using TableOp::TableOp;

protected:
    absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) override {
        std::int64_t begin = 0;
        std::int64_t end = 0;
        std::int64_t limit = 0;
        TF_RETURN_IF_ERROR(scalar_input(ctx, 1, "begin", &begin));
        TF_RETURN_IF_ERROR(scalar_input(ctx, 2, "end", &end));
        TF_RETURN_IF_ERROR(scalar_input(ctx, 3, "limit", &limit));
        tf::Tensor* next = nullptr;
        TF_RETURN_IF_ERROR(ctx->allocate_output("next", {}, &next));
        std::int64_t at = 0;
        TF_RETURN_IF_ERROR(table.export_from(ctx, begin, end, limit, &at));
        next->scalar<std::int64_t>()() = at;
        return absl::OkStatus();
    }
};

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_TABLE_OPS_H_
