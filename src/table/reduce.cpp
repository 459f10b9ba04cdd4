// Sum, prod, min, max and last. Integers wrap, bool sums are "or" and products "and", half floats
// are computed in float and round at every step. A NaN on either side gives NaN, as in NumPy's
// minimum and maximum.
#include "table/reduce.hpp"

#include <cstring>
#include <type_traits>

#include "tensor/stored.hpp"

namespace tensorhash::table {
namespace {

struct Sum {
    template <class T>
    static T join(T stored, T row) {
        if constexpr (std::is_same_v<T, bool>) {
            return stored || row;
        } else if constexpr (std::is_integral_v<T>) {
            using U = std::make_unsigned_t<T>;  // signed overflow would be undefined
            return static_cast<T>(static_cast<U>(static_cast<U>(stored) + static_cast<U>(row)));
        } else {
            return stored + row;
        }
    }
};
struct Prod {
    template <class T>
    static T join(T stored, T row) {
        if constexpr (std::is_same_v<T, bool>) {
            return stored && row;
        } else if constexpr (std::is_integral_v<T>) {
            // In 64 bits: a product of 16-bit numbers would be computed as signed int.
            return static_cast<T>(static_cast<std::uint64_t>(stored) *
                                  static_cast<std::uint64_t>(row));
        } else {
            return stored * row;
        }
    }
};
struct Min {
    template <class T>
    static T join(T stored, T row) {
        return stored != stored ? stored : (row < stored || row != row) ? row : stored;
    }
};
struct Max {
    template <class T>
    static T join(T stored, T row) {
        return stored != stored ? stored : (row > stored || row != row) ? row : stored;
    }
};

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
            function_ = for_dtype<Sum>(element.dtype);
            break;
        case Reduce::Min:
            function_ = for_dtype<Min>(element.dtype);
            break;
        case Reduce::Max:
            function_ = for_dtype<Max>(element.dtype);
            break;
        case Reduce::Prod:
            function_ = for_dtype<Prod>(element.dtype);
            break;
        case Reduce::Any:  // the map resolves these
        case Reduce::All:
        case Reduce::Count:
            break;
    }
}

}  // namespace tensorhash::table
