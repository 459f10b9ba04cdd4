// What the ops of bounded tables compute. ops.cc has the signatures.
#include <string>

#include "bounded_table.h"
#include "lookup_table_op.h"
#include "table_op.h"

namespace tensorhash_tf {
namespace {

/// The scores of a batch, or null for an empty input where the keys are not.
absl::Status scores_input(tf::OpKernelContext* ctx, int i, std::int64_t rows,
                          std::int64_t const** scores) {
    tf::Tensor const& given = ctx->input(i);
    *scores = nullptr;
    if (given.NumElements() == 0 && rows != 0) {
        return absl::OkStatus();
    }
    if (given.NumElements() != rows) {
        return invalid("scores: expected one per key, ", rows, ", got ", given.NumElements());
    }
    *scores = given.flat<std::int64_t>().data();
    return absl::OkStatus();
}

std::int64_t rows_of(tf::Tensor const& keys, LookupTable const& table) {
    return keys.NumElements() / table.key_shape().num_elements();
}

class AdmitOp final : public OpOn<BoundedTable> {
public:
    explicit AdmitOp(tf::OpKernelConstruction* ctx) : OpOn<BoundedTable>(ctx) {
        std::string name;
        OP_REQUIRES_OK(ctx, ctx->GetAttr("reduce", &name));
        reduce_ = reduce_named(name);
    }

private:
    absl::Status run(tf::OpKernelContext* ctx, BoundedTable& table) override {
        tf::Tensor const& keys = ctx->input(1);
        TF_RETURN_IF_ERROR(table.CheckKeyAndValueTensorsForInsert(keys, ctx->input(2)));
        std::int64_t const* scores = nullptr;
        TF_RETURN_IF_ERROR(scores_input(ctx, 3, rows_of(keys, table), &scores));
        bool* added = nullptr;
        TF_RETURN_IF_ERROR(output_per_key(ctx, table, &added));
        EvictedPtr evicted;
        TF_RETURN_IF_ERROR(table.admit(keys, ctx->input(2), reduce_, scores, added, &evicted));
        return copy_out(ctx, table, evicted.get());
    }
    static absl::Status copy_out(tf::OpKernelContext* ctx, BoundedTable const& table,
                                 th_evicted const* evicted) {
        tf::TensorShape const rows({th_evicted_rows(evicted)});
        tf::TensorShape key_rows = rows;
        key_rows.AppendShape(table.key_shape());
        tf::TensorShape value_rows = rows;
        value_rows.AppendShape(table.value_shape());
        tf::Tensor *keys = nullptr, *values = nullptr, *scores = nullptr;
        TF_RETURN_IF_ERROR(ctx->allocate_output("evicted_keys", key_rows, &keys));
        TF_RETURN_IF_ERROR(ctx->allocate_output("evicted_values", value_rows, &values));
        TF_RETURN_IF_ERROR(ctx->allocate_output("evicted_scores", rows, &scores));
        void* column = values->data();
        return to_status(
            th_evicted_copy(evicted, keys->data(), &column, scores->flat<std::int64_t>().data()));
    }
    th_reduce reduce_ = TH_LAST;
};

class TouchOp final : public OpOn<BoundedTable> {
    using OpOn<BoundedTable>::OpOn;
    absl::Status run(tf::OpKernelContext* ctx, BoundedTable& table) override {
        TF_RETURN_IF_ERROR(table.CheckKeyTensorForRemove(ctx->input(1)));
        std::int64_t const* scores = nullptr;
        TF_RETURN_IF_ERROR(scores_input(ctx, 2, rows_of(ctx->input(1), table), &scores));
        return table.touch(ctx->input(1), scores);
    }
};

class ExportScoresOp final : public OpOn<BoundedTable> {
    using OpOn<BoundedTable>::OpOn;
    absl::Status run(tf::OpKernelContext* ctx, BoundedTable& table) override {
        return table.export_scores(ctx);
    }
};

class SaveStateOp final : public OpOn<BoundedTable> {
    using OpOn<BoundedTable>::OpOn;
    absl::Status run(tf::OpKernelContext* ctx, BoundedTable& table) override {
        return table.save(ctx);
    }
};

class RestoreStateOp final : public OpOn<BoundedTable> {
    using OpOn<BoundedTable>::OpOn;
    absl::Status run(tf::OpKernelContext* ctx, BoundedTable& table) override {
        return table.restore(ctx->input(1));
    }
};

#define TH_REGISTER(op, type) \
    REGISTER_KERNEL_BUILDER(Name("Tensorhash" op).Device(tf::DEVICE_CPU), type)
TH_REGISTER("Admit", AdmitOp);
TH_REGISTER("Touch", TouchOp);
TH_REGISTER("ExportScores", ExportScoresOp);
TH_REGISTER("SaveState", SaveStateOp);
TH_REGISTER("RestoreState", RestoreStateOp);
TH_REGISTER("BoundedTable", LookupTableOp<BoundedTable>);
TH_REGISTER("AnonymousBoundedTable", AnonymousLookupTableOp<BoundedTable>);
#undef TH_REGISTER

}  // namespace
}  // namespace tensorhash_tf
