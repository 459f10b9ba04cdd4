// The kernels of our ops, for the CPU: what each reads, checks and calls. ops.cc has their signatures.
#include <type_traits>

#include "lookup_table_op.h"
#include "read_only_table.h"
#include "string_table.h"
#include "table.h"

namespace tensorhash_tf {
namespace {

// The class that the design names: a LookupInterface, so that TensorFlow's own lookup ops work on it.
static_assert(std::is_base_of_v<tf::lookup::LookupInterface, MutableNvidiaHashTableOfScalars>);

/// The number in input `i`. Shape functions do not run eagerly and may not know, so the kernel looks itself.
absl::Status scalar_input(tf::OpKernelContext* ctx, int i, char const* name, std::int64_t* value) {
    tf::Tensor const& given = ctx->input(i);
    if (given.dtype() != tf::DT_INT64 || given.dims() != 0) {
        return invalid(name, ": expected a scalar int64, got ", tf::DataTypeString(given.dtype()),
                       " of shape ", given.shape().DebugString());
    }
    *value = given.scalar<std::int64_t>()();
    return absl::OkStatus();
}

/// An op on a table of ours, which is its input 0.
class TableKernel : public tf::OpKernel {
public:
    using tf::OpKernel::OpKernel;

    void Compute(tf::OpKernelContext* ctx) final {
        OP_REQUIRES(ctx, ctx->input(0).dims() == 0,
                    invalid("table: expected one handle, a scalar, got shape ",
                            ctx->input(0).shape().DebugString()));
        tf::core::RefCountPtr<Interface> any;
        OP_REQUIRES_OK(ctx, tf::LookupResource(ctx, tf::HandleFromInput(ctx, 0), &any));
        auto* const table = dynamic_cast<Table*>(any.get());
        OP_REQUIRES(ctx, table != nullptr,
                    invalid("table: expected a tensorhash table, got ", any->DebugString()));
        OP_REQUIRES_OK(ctx, guarded([&] { return run(ctx, *table); }));
    }

protected:
    virtual absl::Status run(tf::OpKernelContext* ctx, Table& table) = 0;
};

class FindKernel final : public TableKernel {
    using TableKernel::TableKernel;
    absl::Status run(tf::OpKernelContext* ctx, Table& table) override {
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

class UpsertKernel final : public TableKernel {
public:
    explicit UpsertKernel(tf::OpKernelConstruction* ctx) : TableKernel(ctx) {
        std::string name;
        OP_REQUIRES_OK(ctx, ctx->GetAttr("reduce", &name));
        char const* const names[] = {"first", "last", "sum", "min", "max"};
        for (int i = 0; i < 5; ++i) {
            reduce_ = name == names[i] ? static_cast<th_reduce>(i) : reduce_;
        }
    }

private:
    absl::Status run(tf::OpKernelContext* ctx, Table& table) override {
        TF_RETURN_IF_ERROR(table.CheckKeyAndValueTensorsForInsert(ctx->input(1), ctx->input(2)));
        return table.upsert(ctx, ctx->input(1), ctx->input(2), reduce_);
    }
    th_reduce reduce_ = TH_LAST;
};

class RemoveKernel final : public TableKernel {
    using TableKernel::TableKernel;
    absl::Status run(tf::OpKernelContext* ctx, Table& table) override {
        TF_RETURN_IF_ERROR(table.CheckKeyTensorForRemove(ctx->input(1)));
        return table.erase(ctx, ctx->input(1));
    }
};

class ClearKernel final : public TableKernel {
    using TableKernel::TableKernel;
    absl::Status run(tf::OpKernelContext*, Table& table) override { return table.clear(); }
};

class ReserveKernel final : public TableKernel {
    using TableKernel::TableKernel;
    absl::Status run(tf::OpKernelContext* ctx, Table& table) override {
        std::int64_t capacity = 0;
        TF_RETURN_IF_ERROR(scalar_input(ctx, 1, "capacity", &capacity));
        return table.reserve(capacity);
    }
};

class ImportKernel final : public TableKernel {
    using TableKernel::TableKernel;
    absl::Status run(tf::OpKernelContext* ctx, Table& table) override {
        TF_RETURN_IF_ERROR(table.CheckKeyAndValueTensorsForImport(ctx->input(1), ctx->input(2)));
        if (ctx->input(1).dims() != 1 + table.key_shape().dims()) {
            return invalid("keys: expected a list of keys of shape ",
                           table.key_shape().DebugString(), ", got ",
                           ctx->input(1).shape().DebugString());
        }
        return table.replace(ctx, ctx->input(1), ctx->input(2));
    }
};

class InitializeKernel final : public TableKernel {
    using TableKernel::TableKernel;
    absl::Status run(tf::OpKernelContext* ctx, Table& table) override {
        TF_RETURN_IF_ERROR(table.CheckKeyAndValueTensorsForInsert(ctx->input(1), ctx->input(2)));
        return table.initialize(ctx, ctx->input(1), ctx->input(2));
    }
};

class ExportKernel final : public TableKernel {
    using TableKernel::TableKernel;
    absl::Status run(tf::OpKernelContext* ctx, Table& table) override {
        std::int64_t begin = 0;
        std::int64_t limit = 0;
        TF_RETURN_IF_ERROR(scalar_input(ctx, 1, "begin", &begin));
        TF_RETURN_IF_ERROR(scalar_input(ctx, 2, "limit", &limit));
        tf::Tensor* next = nullptr;
        TF_RETURN_IF_ERROR(ctx->allocate_output("next", {}, &next));
        std::int64_t at = 0;
        TF_RETURN_IF_ERROR(table.export_from(ctx, begin, limit, &at));
        next->scalar<std::int64_t>()() = at;
        return absl::OkStatus();
    }
};

#define TH_REGISTER(op, kernel) \
    REGISTER_KERNEL_BUILDER(Name("Tensorhash" op).Device(tf::DEVICE_CPU), kernel)
TH_REGISTER("Find", FindKernel);
TH_REGISTER("Upsert", UpsertKernel);
TH_REGISTER("Remove", RemoveKernel);
TH_REGISTER("Clear", ClearKernel);
TH_REGISTER("Reserve", ReserveKernel);
TH_REGISTER("Import", ImportKernel);
TH_REGISTER("Initialize", InitializeKernel);
TH_REGISTER("Export", ExportKernel);
#undef TH_REGISTER

// One class of table for all keys that are numbers: the engine knows dtypes at run time.
#define TH_REGISTER_KEY(key, container)                                                           \
    REGISTER_KERNEL_BUILDER(                                                                      \
        Name("TensorhashTable").Device(tf::DEVICE_CPU).TypeConstraint("key_dtype", key),          \
        LookupTableOp<container>);                                                                \
    REGISTER_KERNEL_BUILDER(                                                                      \
        Name("TensorhashAnonymousTable").Device(tf::DEVICE_CPU).TypeConstraint("key_dtype", key), \
        AnonymousLookupTableOp<container>);                                                       \
    REGISTER_KERNEL_BUILDER(                                                                      \
        Name("TensorhashStaticTable").Device(tf::DEVICE_CPU).TypeConstraint("key_dtype", key),    \
        LookupTableOp<ReadOnly<container>>);                                                      \
    REGISTER_KERNEL_BUILDER(Name("TensorhashAnonymousStaticTable")                                \
                                .Device(tf::DEVICE_CPU)                                           \
                                .TypeConstraint("key_dtype", key),                                \
                            AnonymousLookupTableOp<ReadOnly<container>>)
TH_REGISTER_KEY(tf::DT_BOOL, PlainTable);
TH_REGISTER_KEY(tf::DT_INT8, PlainTable);
TH_REGISTER_KEY(tf::DT_INT16, PlainTable);
TH_REGISTER_KEY(tf::DT_INT32, PlainTable);
TH_REGISTER_KEY(tf::DT_INT64, PlainTable);
TH_REGISTER_KEY(tf::DT_UINT8, PlainTable);
TH_REGISTER_KEY(tf::DT_UINT16, PlainTable);
TH_REGISTER_KEY(tf::DT_UINT32, PlainTable);
TH_REGISTER_KEY(tf::DT_UINT64, PlainTable);
TH_REGISTER_KEY(tf::DT_FLOAT, PlainTable);
TH_REGISTER_KEY(tf::DT_DOUBLE, PlainTable);
TH_REGISTER_KEY(tf::DT_STRING, StringTable);
#undef TH_REGISTER_KEY

}  // namespace
}  // namespace tensorhash_tf
