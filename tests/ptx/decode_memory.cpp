// Instructions that touch memory.
#include "ptx/statement.hpp"

namespace th_ptx {
namespace {

/// Atomics without an order are relaxed; loads and stores without one are weak.
void take_order(Statement& s, Order without) {
    s.in.order = without;
    s.modifiers.take_one<Order>({{"weak", Order::Weak},
                                 {"relaxed", Order::Relaxed},
                                 {"volatile", Order::Relaxed},
                                 {"acquire", Order::Acquire},
                                 {"release", Order::Release},
                                 {"acq_rel", Order::AcquireRelease}},
                                s.in.order);
    s.in.scope = Scope::All;
    s.modifiers.take_one<Scope>({{"cta", Scope::Block}, {"gpu", Scope::All}, {"sys", Scope::All}},
                                s.in.scope);
}

void decode_change(Statement& s, bool returns) {
    s.in.op = Op::Atomic;
    if (s.in.type.kind == Kind::Float) throw PtxError("atomics on floats are unknown");
    take_space(s);
    take_order(s, Order::Relaxed);
    bool const known = s.modifiers.take_one<Change>({{"cas", Change::CompareAndSwap},
                                                     {"exch", Change::Exchange},
                                                     {"add", Change::Add},
                                                     {"and", Change::And},
                                                     {"or", Change::Or},
                                                     {"xor", Change::Xor},
                                                     {"min", Change::Min},
                                                     {"max", Change::Max}},
                                                    s.in.change);
    if (!known) throw PtxError("expected an atomic operation");
    bool const swaps = s.in.change == Change::CompareAndSwap;
    std::size_t const first = returns ? 1 : 0;
    s.require_arguments(first + (swaps ? 3 : 2));
    if (returns) s.in.d = s.operand(0);
    s.in.a = s.names.address(s.argument(first), s.in.offset);
    s.in.b = s.operand(first + 1);
    if (swaps) s.in.c = s.operand(first + 2);
}

}  // namespace

void decode_load(Statement& s) {
    s.in.op = Op::Load;
    s.require_arguments(2);
    take_space(s);
    take_order(s, Order::Weak);
    s.modifiers.ignore({"nc", "v2", "v4", "ca", "cg", "cs", "L1", "L2"});
    s.in.a = s.names.address(s.argument(1), s.in.offset);
    if (s.is_vector(0)) {
        s.in.parts = s.names.vector(s.argument(0));
    } else {
        s.in.parts = {s.operand(0)};
    }
}

void decode_store(Statement& s) {
    s.in.op = Op::Store;
    s.require_arguments(2);
    take_space(s);
    if (s.in.space == Space::Param) throw PtxError("a kernel cannot write its parameters");
    take_order(s, Order::Weak);
    s.modifiers.ignore({"v2", "v4", "wb", "cg", "cs"});
    s.in.a = s.names.address(s.argument(0), s.in.offset);
    if (s.is_vector(1)) {
        s.in.parts = s.names.vector(s.argument(1));
    } else {
        s.in.parts = {s.operand(1)};
    }
}

/// Returns the old value.
void decode_atomic(Statement& s) { decode_change(s, true); }
/// Does not.
void decode_reduction(Statement& s) { decode_change(s, false); }

void decode_fence(Statement& s) {
    s.in.op = Op::Fence;
    s.modifiers.ignore({"sc", "acq_rel", "gpu", "gl", "sys"});
    s.in.scope = s.modifiers.take("cta") ? Scope::Block : Scope::All;
    s.require_arguments(0);
}

void decode_prefetch(Statement& s) {
    s.in.op = Op::Prefetch;
    s.modifiers.ignore({"global", "L1", "L2"});
    s.require_arguments(1);
    s.in.a = s.names.address(s.argument(0), s.in.offset);
}

}  // namespace th_ptx
