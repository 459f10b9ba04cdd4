// The base of the ops that work on a table: finds it, and turns its errors into TensorFlow's.
#ifndef TENSORHASH_TENSORFLOW_TABLE_OP_H_
#define TENSORHASH_TENSORFLOW_TABLE_OP_H_

#include <cstdint>

#include "lookup_table_op.h"
#include "table.h"

namespace tensorhash_tf {

/// The base of the ops that take a tensorhash table as input 0.
template <class Table>
class OpOn : public tf::OpKernel {
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
                    invalid("table: expected a ", Table::wanted, ", got ", any->DebugString()));
        OP_REQUIRES_OK(ctx, guarded([&] { return run(ctx, *table); }));
    }

protected:
    virtual absl::Status run(tf::OpKernelContext* ctx, Table& table) = 0;
};
using TableOp = OpOn<LookupTable>;

/// The reduction with this name, which the op's attribute has checked.
inline th_reduce reduce_named(std::string const& name) {
    char const* const names[] = {"first", "last", "sum", "min", "max"};
    int reduce = TH_LAST;
    for (int i = 0; i < 5; ++i) {
        reduce = name == names[i] ? i : reduce;
    }
    return static_cast<th_reduce>(reduce);
}

/// Allocates output 0: one element of type T per key of input 1.
template <class T>
absl::Status output_per_key(tf::OpKernelContext* ctx, LookupTable const& table, T** elements) {
    tf::TensorShape rows = ctx->input(1).shape();
    rows.RemoveLastDims(table.key_shape().dims());
    tf::Tensor* output = nullptr;
    TF_RETURN_IF_ERROR(ctx->allocate_output(0, rows, &output));
    *elements = output->flat<T>().data();
    return absl::OkStatus();
}

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_TABLE_OP_H_
