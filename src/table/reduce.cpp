// Sum, min, max and last, row by row. Half floats add in float and round at every step.
#include "table/reduce.hpp"

#include <cstring>

#include "tensor/joins.hpp"
#include "tensor/stored.hpp"

namespace tensorhash::table {
namespace {

template <class Type, class Op>
void join_elements(unsigned char* stored, unsigned char const* row, std::size_t elements) {
    using T = typename Type::Stored;
    for (std::size_t i = 0; i < elements; ++i) {
        // Rows may be unaligned: memcpy, which compiles to a plain load.
        T a;
        T b;
        std::memcpy(&a, stored + i * sizeof(T), sizeof(T));
        std::memcpy(&b, row + i * sizeof(T), sizeof(T));
        a = Type::store(Op::join(Type::load(a), Type::load(b)));
        std::memcpy(stored + i * sizeof(T), &a, sizeof(T));
    }
}

template <class Op>
auto for_dtype(Dtype dtype) -> void (*)(unsigned char*, unsigned char const*, std::size_t) {
    switch (dtype) {
        case Dtype::Bool:
            return join_elements<Plain<bool>, Op>;
        case Dtype::Int8:
            return join_elements<Plain<std::int8_t>, Op>;
        case Dtype::Int16:
            return join_elements<Plain<std::int16_t>, Op>;
        case Dtype::Int32:
            return join_elements<Plain<std::int32_t>, Op>;
        case Dtype::Int64:
            return join_elements<Plain<std::int64_t>, Op>;
        case Dtype::UInt8:
            return join_elements<Plain<std::uint8_t>, Op>;
        case Dtype::UInt16:
            return join_elements<Plain<std::uint16_t>, Op>;
        case Dtype::UInt32:
            return join_elements<Plain<std::uint32_t>, Op>;
        case Dtype::UInt64:
            return join_elements<Plain<std::uint64_t>, Op>;
        case Dtype::Float16:
            return join_elements<Half, Op>;
        case Dtype::BFloat16:
            return join_elements<BrainHalf, Op>;
        case Dtype::Float32:
            return join_elements<Plain<float>, Op>;
        case Dtype::Float64:
            return join_elements<Plain<double>, Op>;
        case Dtype::Undefined:
            break;
    }
    return nullptr;
}

void replace(unsigned char* stored, unsigned char const* row, std::size_t bytes) {
    std::memcpy(stored, row, bytes);
}
void keep(unsigned char*, unsigned char const*, std::size_t) {}

}  // namespace

Join::Join(Element const& element, Reduce reduce)
    : function_(keep), elements_(static_cast<std::size_t>(num_elements(element.shape))) {
    switch (reduce) {
        case Reduce::First:
            break;
        case Reduce::Last:
            function_ = replace;
            elements_ = element.bytes();
            break;
        case Reduce::Sum:
            function_ = for_dtype<JoinSum>(element.dtype);
            break;
        case Reduce::Min:
            function_ = for_dtype<JoinMin>(element.dtype);
            break;
        case Reduce::Max:
            function_ = for_dtype<JoinMax>(element.dtype);
            break;
    }
}

}  // namespace tensorhash::table
