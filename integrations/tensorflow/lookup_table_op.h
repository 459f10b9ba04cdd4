// The ops that make tables. TensorFlow's resource manager owns a named table, handles own an
// anonymous one. Both are typed as LookupInterface, because TensorFlow's own ops look up that
// type.
#ifndef TENSORHASH_TENSORFLOW_LOOKUP_TABLE_OP_H_
#define TENSORHASH_TENSORFLOW_LOOKUP_TABLE_OP_H_

#include <mutex>
#include <typeinfo>

#include "table.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/refcount.h"

namespace tensorhash_tf {

using Interface = tf::lookup::LookupInterface;

/// Makes a Container. If its attributes are wrong, frees it and returns the error.
template <class Container>
absl::Status make_table(tf::OpKernelContext* ctx, tf::OpKernel* op, Interface** table) {
    Container* made = nullptr;
    TF_RETURN_IF_ERROR(guarded([&] {
        made = new Container(ctx, op);
        return absl::OkStatus();
    }));
    if (!ctx->status().ok()) {
        made->Unref();
        return ctx->status();
    }
    if (ctx->track_allocations()) {
        ctx->record_persistent_memory_allocation(made->MemoryUsed());
    }
    *table = made;
    return absl::OkStatus();
}

/// Finds the table with this name, or makes it.
template <class Container>
class LookupTableOp : public tf::OpKernel {
public:
    explicit LookupTableOp(tf::OpKernelConstruction* ctx) : tf::OpKernel(ctx) {
        OP_REQUIRES_OK(ctx, ctx->GetAttr("use_node_name_sharing", &use_node_name_sharing_));
    }

    void Compute(tf::OpKernelContext* ctx) override {
        std::lock_guard<std::mutex> const guard(lock_);
        if (!named_) {
            OP_REQUIRES_OK(ctx, info_.Init(ctx->resource_manager(), def(), use_node_name_sharing_));
        }
        Interface* table = nullptr;
        OP_REQUIRES_OK(ctx, info_.resource_manager()->template LookupOrCreate<Interface>(
                                info_.container(), info_.name(), &table, [&](Interface** made) {
                                    return make_table<Container>(ctx, this, made);
                                }));
        tf::core::ScopedUnref const unref(table);
        OP_REQUIRES_OK(ctx, check_same(*table));
        tf::Tensor* handle = nullptr;
        OP_REQUIRES_OK(ctx, ctx->allocate_output(0, {}, &handle));
        handle->scalar<tf::ResourceHandle>()() =
            tf::MakeResourceHandle<Interface>(ctx, info_.container(), info_.name());
        named_ = true;
    }

    ~LookupTableOp() override {
        if (named_ && info_.resource_is_private_to_kernel()) {
            // Not an error: a session reset may have deleted it already.
            info_.resource_manager()
                ->template Delete<Interface>(info_.container(), info_.name())
                .IgnoreError();
        }
    }

private:
    /// An existing table with this name must match the attributes of this op.
    absl::Status check_same(Interface const& table) const {
        tf::DataType key_dtype, value_dtype;
        tf::TensorShape key_shape, value_shape;
        TF_RETURN_IF_ERROR(tf::GetNodeAttr(def(), "key_dtype", &key_dtype));
        TF_RETURN_IF_ERROR(tf::GetNodeAttr(def(), "value_dtype", &value_dtype));
        TF_RETURN_IF_ERROR(tf::GetNodeAttr(def(), "key_shape", &key_shape));
        TF_RETURN_IF_ERROR(tf::GetNodeAttr(def(), "value_shape", &value_shape));
        Placement placement;
        TF_RETURN_IF_ERROR(read_placement(def(), &placement));
        // Compare the exact class: a read-only table derives from the mutable one, so a
        // dynamic_cast would accept it.
        if (typeid(table) == typeid(Container) && table.key_dtype() == key_dtype &&
            table.value_dtype() == value_dtype && table.key_shape() == key_shape &&
            table.value_shape() == value_shape &&
            static_cast<Container const&>(table).placement() == placement &&
            static_cast<Container const&>(table).has_limits_of(def())) {
            return absl::OkStatus();
        }
        return invalid("shared_name: \"", info_.name(),
                       "\" is another table: expected a tensorhash ", Container::kind, " of ",
                       tf::DataTypeString(key_dtype), key_shape.DebugString(), " to ",
                       tf::DataTypeString(value_dtype), value_shape.DebugString(), " on ",
                       placement.describe(), ", got ", table.DebugString());
    }

    std::mutex lock_;
    tf::ContainerInfo info_;
    bool use_node_name_sharing_ = false;
    bool named_ = false;
};

/// Makes a new table on every call. The table is destroyed with its last handle.
template <class Container>
class AnonymousLookupTableOp : public tf::OpKernel {
public:
    using tf::OpKernel::OpKernel;

    void Compute(tf::OpKernelContext* ctx) override {
        Interface* table = nullptr;
        OP_REQUIRES_OK(ctx, make_table<Container>(ctx, this, &table));
        tf::Tensor* handle = nullptr;
        auto const status = ctx->allocate_output(0, {}, &handle);
        if (!status.ok()) {
            table->Unref();
        }
        OP_REQUIRES_OK(ctx, status);
        handle->scalar<tf::ResourceHandle>()() =
            tf::ResourceHandle::MakeRefCountingHandle<Interface>(table, ctx->device()->name());
    }
};

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_LOOKUP_TABLE_OP_H_
