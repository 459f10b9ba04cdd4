// How accumulate joins a stored number with a row's: sum, min and max. Integers wrap, bool sums are
// "or". A NaN on either side gives NaN, as in NumPy's minimum and maximum. `constexpr`, so that
// CUDA compilers may call them in device code.
#pragma once

#include <type_traits>

namespace tensorhash {

struct JoinSum {
    template <class T>
    static constexpr T join(T stored, T row) {
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

struct JoinMin {
    template <class T>
    static constexpr T join(T stored, T row) {
        return stored != stored ? stored : (row < stored || row != row) ? row : stored;
    }
};

struct JoinMax {
    template <class T>
    static constexpr T join(T stored, T row) {
        return stored != stored ? stored : (row > stored || row != row) ? row : stored;
    }
};

}  // namespace tensorhash
