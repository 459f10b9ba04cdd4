// What the ops compute on the CPU: each reads and checks its inputs, then calls the table. ops.cc
// has the signatures.
#include <type_traits>

#include "lookup_table_op.h"
#include "read_only_table.h"
#include "string_table.h"
#include "table.h"
#include "text_table.h"

namespace tensorhash_tf {
namespace {

// TensorFlow's own lookup ops work on a LookupInterface.
static_assert(std::is_base_of_v<tf::lookup::LookupInterface, MutableNvidiaHashTableOfScalars>);

/// Reads the scalar input `i`. Checks its shape here, because shape functions do not run eagerly,
/// and in a graph the shape may be unknown.
absl::Status scalar_input(tf::OpKernelContext* ctx, int i, char const* name, std::int64_t* value) {
    tf::Tensor const& given = ctx->input(i);
    if (given.dtype() != tf::DT_INT64 || given.dims() != 0) {
        return invalid(name, ": expected a scalar int64, got ", tf::DataTypeString(given.dtype()),
                       " of shape ", given.shape().DebugString());
    }
    *value = given.scalar<std::int64_t>()();
    return absl::OkStatus();
}

/// The base of the ops that take a tensorhash table as input 0.
class TableOp : public tf::OpKernel {
public:
    using tf::OpKernel::OpKernel;

    void Compute(tf::OpKernelContext* ctx) final {
        OP_REQUIRES(ctx, ctx->input(0).dims() == 0,
                    invalid("table: expected one handle, a scalar, got shape ",
                            ctx->input(0).shape().DebugString()));
        tf::core::RefCountPtr<Interface> any;
        OP_REQUIRES_OK(ctx, tf::LookupResource(ctx, tf::HandleFromInput(ctx, 0), &any));
        auto* const table = dynamic_cast<LookupTable*>(any.get());
        OP_REQUIRES(ctx, table != nullptr,
                    invalid("table: expected a tensorhash table, got ", any->DebugString()));
        OP_REQUIRES_OK(ctx, guarded([&] { return run(ctx, *table); }));
    }

protected:
    virtual absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) = 0;
};

class FindOp final : public TableOp {
    using TableOp::TableOp;
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

class AccumulateOp final : public TableOp {
public:
    explicit AccumulateOp(tf::OpKernelConstruction* ctx) : TableOp(ctx) {
        std::string name;
        OP_REQUIRES_OK(ctx, ctx->GetAttr("reduce", &name));
        char const* const names[] = {"first", "last", "sum", "min", "max"};
        for (int i = 0; i < 5; ++i) {
            reduce_ = name == names[i] ? static_cast<th_reduce>(i) : reduce_;
        }
        OP_REQUIRES_OK(ctx, ctx->GetAttr("shard", &shard_));
    }

private:
    absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) override {
        TF_RETURN_IF_ERROR(table.CheckKeyAndValueTensorsForInsert(ctx->input(1), ctx->input(2)));
        if (shard_ >= 0) {
            TF_RETURN_IF_ERROR(table.require_shard(ctx->input(1), shard_));
        }
        return table.accumulate(ctx, ctx->input(1), ctx->input(2), reduce_);
    }
    th_reduce reduce_ = TH_LAST;
    std::int64_t shard_ = -1;
};

/// Allocates output 0: one bool per key. The caller sets it to true if the key is in the table.
absl::Status exists_output(tf::OpKernelContext* ctx, LookupTable const& table, bool** exists) {
    tf::TensorShape rows = ctx->input(1).shape();
    rows.RemoveLastDims(table.key_shape().dims());
    tf::Tensor* output = nullptr;
    TF_RETURN_IF_ERROR(ctx->allocate_output(0, rows, &output));
    *exists = output->flat<bool>().data();
    return absl::OkStatus();
}

class AssignOp final : public TableOp {
    using TableOp::TableOp;
    absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) override {
        TF_RETURN_IF_ERROR(table.CheckKeyAndValueTensorsForInsert(ctx->input(1), ctx->input(2)));
        bool* exists = nullptr;
        TF_RETURN_IF_ERROR(exists_output(ctx, table, &exists));
        return table.assign(ctx, ctx->input(1), ctx->input(2), exists);
    }
};

class UpdateOp final : public TableOp {
public:
    explicit UpdateOp(tf::OpKernelConstruction* ctx) : TableOp(ctx) {
        std::string duplicates;
        OP_REQUIRES_OK(ctx, ctx->GetAttr("duplicates", &duplicates));
        duplicates_ = duplicates == "sum" ? TH_ADD_UP : TH_IN_ORDER;
    }

private:
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
        TF_RETURN_IF_ERROR(exists_output(ctx, table, &exists));
        return table.update(ctx, ctx->input(1), ctx->input(2), sgd, duplicates_, exists);
    }
    th_duplicates duplicates_ = TH_IN_ORDER;
};

class ShardSizeOp final : public TableOp {
    using TableOp::TableOp;
    absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) override {
        std::int64_t shard = 0;
        TF_RETURN_IF_ERROR(scalar_input(ctx, 1, "shard", &shard));
        tf::Tensor* output = nullptr;
        TF_RETURN_IF_ERROR(ctx->allocate_output(0, {}, &output));
        return table.shard_size(shard, &output->scalar<std::int64_t>()());
    }
};

class RemoveOp final : public TableOp {
    using TableOp::TableOp;
    absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) override {
        TF_RETURN_IF_ERROR(table.CheckKeyTensorForRemove(ctx->input(1)));
        return table.erase(ctx, ctx->input(1));
    }
};

class ClearOp final : public TableOp {
    using TableOp::TableOp;
    absl::Status run(tf::OpKernelContext*, LookupTable& table) override { return table.clear(); }
};

class ReserveOp final : public TableOp {
    using TableOp::TableOp;
    absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) override {
        std::int64_t capacity = 0;
        TF_RETURN_IF_ERROR(scalar_input(ctx, 1, "capacity", &capacity));
        return table.reserve(capacity);
    }
};

class ImportOp final : public TableOp {
    using TableOp::TableOp;
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

class InitializeOp final : public TableOp {
    using TableOp::TableOp;
    absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) override {
        TF_RETURN_IF_ERROR(table.CheckKeyAndValueTensorsForInsert(ctx->input(1), ctx->input(2)));
        return table.initialize(ctx, ctx->input(1), ctx->input(2));
    }
};

class ExportOp final : public TableOp {
    using TableOp::TableOp;
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

#define TH_REGISTER(op, type) \
    REGISTER_KERNEL_BUILDER(Name("Tensorhash" op).Device(tf::DEVICE_CPU), type)
TH_REGISTER("Find", FindOp);
TH_REGISTER("Accumulate", AccumulateOp);
TH_REGISTER("Assign", AssignOp);
TH_REGISTER("Update", UpdateOp);
TH_REGISTER("ShardSize", ShardSizeOp);
TH_REGISTER("Remove", RemoveOp);
TH_REGISTER("Clear", ClearOp);
TH_REGISTER("Reserve", ReserveOp);
TH_REGISTER("Import", ImportOp);
TH_REGISTER("Initialize", InitializeOp);
TH_REGISTER("Export", ExportOp);
#undef TH_REGISTER

// Only strings need a table class of their own: the engine handles all other dtypes at run time.
#define TH_REGISTER_TABLE(op, keys, values, type)                       \
    REGISTER_KERNEL_BUILDER(Name("Tensorhash" op)                       \
                                .Device(tf::DEVICE_CPU)                 \
                                .TypeConstraint("key_dtype", keys)      \
                                .TypeConstraint("value_dtype", values), \
                            type)
#define TH_REGISTER_TABLES(keys, values, container)                                       \
    TH_REGISTER_TABLE("Table", keys, values, LookupTableOp<container>);                   \
    TH_REGISTER_TABLE("AnonymousTable", keys, values, AnonymousLookupTableOp<container>); \
    TH_REGISTER_TABLE("StaticTable", keys, values, LookupTableOp<ReadOnly<container>>);   \
    TH_REGISTER_TABLE("AnonymousStaticTable", keys, values,                               \
                      AnonymousLookupTableOp<ReadOnly<container>>)

tf::DataTypeVector const kNumberKeys = {tf::DT_BOOL,   tf::DT_INT8,  tf::DT_INT16,  tf::DT_INT32,
                                        tf::DT_INT64,  tf::DT_UINT8, tf::DT_UINT16, tf::DT_UINT32,
                                        tf::DT_UINT64, tf::DT_FLOAT, tf::DT_DOUBLE};
tf::DataTypeVector const kNumberValues = {
    tf::DT_BOOL,     tf::DT_INT8,   tf::DT_INT16,  tf::DT_INT32,  tf::DT_INT64,
    tf::DT_UINT8,    tf::DT_UINT16, tf::DT_UINT32, tf::DT_UINT64, tf::DT_HALF,
    tf::DT_BFLOAT16, tf::DT_FLOAT,  tf::DT_DOUBLE};
tf::DataTypeVector const kStrings = {tf::DT_STRING};
TH_REGISTER_TABLES(kNumberKeys, kNumberValues, PlainTable);
TH_REGISTER_TABLES(kStrings, kNumberValues, StringTable);
TH_REGISTER_TABLES(kNumberKeys, kStrings, TextTable<NumberKeys>);
TH_REGISTER_TABLES(kStrings, kStrings, TextTable<StringKeys>);
#undef TH_REGISTER_TABLES
#undef TH_REGISTER_TABLE

}  // namespace
}  // namespace tensorhash_tf
