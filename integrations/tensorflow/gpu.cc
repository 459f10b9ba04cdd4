// The ops on GPUs. They are plain C++: the C interface takes device pointers and TensorFlow's
// stream, and the plugin of tensorhash has the kernels. So no nvcc is needed here.
#include <cstdint>
#include <memory>
#include <string>

#include "lookup_table_op.h"
#include "table_ops.h"
#include "tensorflow/core/framework/device_base.h"
#include "xla/stream_executor/stream.h"

namespace tensorhash_tf {
namespace {

struct EndScope {
    void operator()(th_device_scope* scope) const { th_device_end(scope); }
};
using ScopePtr = std::unique_ptr<th_device_scope, EndScope>;

/// Calls of this thread work on the op's device and stream until the scope ends.
absl::Status begin_scope(tf::OpKernelContext* ctx, ScopePtr* scope) {
    auto const* const info = ctx->device()->tensorflow_accelerator_device_info();
    auto* const context = ctx->op_device_context();
    if (info == nullptr || context == nullptr || context->stream() == nullptr) {
        return refused("device: expected a CUDA device with a stream, got ", ctx->device()->name());
    }
    auto const stream =
        reinterpret_cast<std::uintptr_t>(context->stream()->platform_specific_handle().stream);
    th_device_scope* begun = nullptr;
    TF_RETURN_IF_ERROR(
        to_status(th_device_begin(absl::StrCat("cuda:", info->gpu_id).c_str(), stream, &begun)));
    scope->reset(begun);
    return absl::OkStatus();
}

/// The same op, with its arrays in the memory of a GPU. Only tables of numbers live there.
template <class Op>
class OnGpu final : public Op {
public:
    explicit OnGpu(tf::OpKernelConstruction* ctx) : Op(ctx) {
        std::int64_t shard = -1;
        bool const one_shard = tf::TryGetNodeAttr(ctx->def(), "shard", &shard) && shard >= 0;
        OP_REQUIRES(ctx, !one_shard,
                    invalid("device: expected the CPU for an insert into one shard, got a GPU"));
    }

protected:
    absl::Status run(tf::OpKernelContext* ctx, LookupTable& table) override {
        if (dynamic_cast<PlainTable*>(&table) == nullptr) {
            return invalid("table: expected one of numbers without max_capacity on a GPU, got ",
                           table.DebugString());
        }
        ScopePtr scope;
        TF_RETURN_IF_ERROR(begin_scope(ctx, &scope));
        return Op::run(ctx, table);
    }
};

#define TH_REGISTER_GPU(op, type)                                                             \
    REGISTER_KERNEL_BUILDER(Name("Tensorhash" op).Device(tf::DEVICE_GPU).HostMemory("table"), \
                            OnGpu<type>)
TH_REGISTER_GPU("Find", FindOp);
TH_REGISTER_GPU("Accumulate", AccumulateOp);
TH_REGISTER_GPU("Assign", AssignOp);
TH_REGISTER_GPU("Remove", RemoveOp);
TH_REGISTER_GPU("Clear", ClearOp);
TH_REGISTER_GPU("Import", ImportOp);
#undef TH_REGISTER_GPU

REGISTER_KERNEL_BUILDER(
    Name("TensorhashUpdate").Device(tf::DEVICE_GPU).HostMemory("table").HostMemory("settings"),
    OnGpu<UpdateOp>);
REGISTER_KERNEL_BUILDER(
    Name("TensorhashReserve").Device(tf::DEVICE_GPU).HostMemory("table").HostMemory("capacity"),
    OnGpu<ReserveOp>);
REGISTER_KERNEL_BUILDER(Name("TensorhashShardSize")
                            .Device(tf::DEVICE_GPU)
                            .HostMemory("table")
                            .HostMemory("shard")
                            .HostMemory("size"),
                        OnGpu<ShardSizeOp>);

// The engine copies the entries to the host.
REGISTER_KERNEL_BUILDER(Name("TensorhashExport")
                            .Device(tf::DEVICE_GPU)
                            .HostMemory("table")
                            .HostMemory("begin")
                            .HostMemory("end")
                            .HostMemory("limit")
                            .HostMemory("keys")
                            .HostMemory("values")
                            .HostMemory("next"),
                        ExportOp);

#define TH_REGISTER_GPU_TABLE(op, type)                                          \
    REGISTER_KERNEL_BUILDER(Name("Tensorhash" op)                                \
                                .Device(tf::DEVICE_GPU)                          \
                                .HostMemory("table")                             \
                                .TypeConstraint("key_dtype", number_keys())      \
                                .TypeConstraint("value_dtype", number_values()), \
                            type)
TH_REGISTER_GPU_TABLE("Table", LookupTableOp<PlainTable>);
TH_REGISTER_GPU_TABLE("AnonymousTable", AnonymousLookupTableOp<PlainTable>);
#undef TH_REGISTER_GPU_TABLE

}  // namespace
}  // namespace tensorhash_tf
