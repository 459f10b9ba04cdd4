// Puts large outputs into memory that the engine has used before. TensorFlow's allocator gives
// untouched pages, and in a large lookup their first touch takes longer than the lookup.
#ifndef TENSORHASH_TENSORFLOW_WARM_MEMORY_H_
#define TENSORHASH_TENSORFLOW_WARM_MEMORY_H_

#include <cstdint>

#include "map.h"
#include "tensorflow/core/framework/allocation_description.pb.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorhash_tf {

/// Smaller outputs stay in TensorFlow's memory.
constexpr std::int64_t kWarmBytes = std::int64_t{1} << 20;

/// Engine memory under a tensor. Freeing the last tensor returns it to the engine, on any thread.
class WarmBuffer final : public tf::TensorBuffer {
public:
    WarmBuffer(th_memory memory, std::size_t used)
        : tf::TensorBuffer(memory.data), memory_(memory), used_(used) {}
    ~WarmBuffer() override { th_memory_give(memory_); }

    std::size_t size() const override { return used_; }
    tf::TensorBuffer* root_buffer() override { return this; }
    void FillAllocationDescription(tf::AllocationDescription* description) const override {
        description->set_requested_bytes(static_cast<std::int64_t>(used_));
        description->set_allocated_bytes(memory_.bytes);
        description->set_allocator_name("tensorhash");
    }

private:
    th_memory memory_;
    std::size_t used_;
};

/// Moves output `i` to warm memory if it is large. The output is allocated but not yet written, so
/// TensorFlow's own block has cost nothing. Outputs that must lie where TensorFlow put them stay
/// there.
inline absl::Status use_warm_memory(tf::OpKernelContext* ctx, int i, tf::Tensor* output) {
    auto const bytes = static_cast<std::int64_t>(output->TotalBytes());
    auto const where = ctx->output_alloc_attr(i);
    bool const on_gpu = ctx->op_device_context() != nullptr;
    if (on_gpu || bytes < kWarmBytes || !tf::DataTypeCanUseMemcpy(output->dtype()) ||
        where.scope_id > 0 || where.gpu_compatible() || where.nic_compatible()) {
        return absl::OkStatus();
    }
    th_memory memory{nullptr, 0};
    TF_RETURN_IF_ERROR(to_status(th_memory_take(bytes, &memory)));
    tf::core::RefCountPtr<tf::TensorBuffer> buffer(
        new WarmBuffer(memory, static_cast<std::size_t>(bytes)));
    *output = tf::Tensor(output->dtype(), output->shape(), std::move(buffer));
    return absl::OkStatus();
}

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_WARM_MEMORY_H_
