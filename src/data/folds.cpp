// The folds. Integers wrap. A NaN stays in Min and Max, and its first row is their arg, as in
// NumPy. Every identity is exact: -0.0 + x is x for every x, also for -0.0.
#include "data/folds.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

namespace tensorhash::data {
namespace {

template <class T>
T value_of(std::uint64_t word) {
    return std::bit_cast<T>(word);
}
template <class T>
std::uint64_t word_of(T value) {
    return std::bit_cast<std::uint64_t>(value);
}

template <class T>
T add_wrapping(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        return a + b;
    } else {
        return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    }
}
template <class T>
T multiply_wrapping(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        return a * b;
    } else {
        return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    }
}

/// Does `value` replace `best`? A NaN replaces every number, and nothing replaces a NaN.
template <bool Greatest, class T>
bool is_better(T value, T best) {
    if constexpr (std::is_floating_point_v<T>) {
        if (best != best) return false;
        if (value != value) return true;
    }
    return Greatest ? value > best : value < best;
}

/// The value that every other one replaces or equals.
template <bool Greatest, class T>
constexpr T worst() {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_floating_point_v<T>) {
        return Greatest ? -Limits::infinity() : Limits::infinity();
    } else {
        return Greatest ? Limits::min() : Limits::max();
    }
}

// Each fold has: the words of its state, the identity, and how to add a value and a state.

struct Count {
    static constexpr std::size_t kWords = 1;
    static void start(std::uint64_t* state) { *state = 0; }
    static void add(std::uint64_t* state, std::uint64_t, std::int64_t) { *state += 1; }
    static void merge(std::uint64_t* state, std::uint64_t const* other, std::int64_t) {
        *state += *other;
    }
};

template <class T, class Value = T>
struct Sum {
    static constexpr std::size_t kWords = 1;
    static constexpr T kZero = std::is_floating_point_v<T> ? static_cast<T>(-0.0) : T{0};
    static void start(std::uint64_t* state) { *state = word_of(kZero); }
    static void join(std::uint64_t* state, T value) {
        *state = word_of(add_wrapping(value_of<T>(*state), value));
    }
    static void add(std::uint64_t* state, std::uint64_t value, std::int64_t) {
        join(state, static_cast<T>(value_of<Value>(value)));
    }
    static void merge(std::uint64_t* state, std::uint64_t const* other, std::int64_t) {
        join(state, value_of<T>(*other));
    }
};
template <class Value>
using DoubleSum = Sum<double, Value>;

template <class T>
struct Prod {
    static constexpr std::size_t kWords = 1;
    static void start(std::uint64_t* state) { *state = word_of(T{1}); }
    static void add(std::uint64_t* state, std::uint64_t value, std::int64_t) {
        *state = word_of(multiply_wrapping(value_of<T>(*state), value_of<T>(value)));
    }
    static void merge(std::uint64_t* state, std::uint64_t const* other, std::int64_t) {
        add(state, *other, 0);
    }
};

template <class T, bool Greatest>
struct Extreme {
    static constexpr std::size_t kWords = 1;
    static void start(std::uint64_t* state) { *state = word_of(worst<Greatest, T>()); }
    static void add(std::uint64_t* state, std::uint64_t value, std::int64_t) {
        if (is_better<Greatest>(value_of<T>(value), value_of<T>(*state))) *state = value;
    }
    static void merge(std::uint64_t* state, std::uint64_t const* other, std::int64_t) {
        add(state, *other, 0);
    }
};
template <class T>
using Min = Extreme<T, false>;
template <class T>
using Max = Extreme<T, true>;

template <class T, bool Greatest>
struct ArgExtreme {
    static constexpr std::size_t kWords = 2;
    static void start(std::uint64_t* state) {
        state[0] = word_of(worst<Greatest, T>());
        state[1] = word_of(std::int64_t{-1});
    }
    static void add(std::uint64_t* state, std::uint64_t value, std::int64_t row) {
        if (value_of<std::int64_t>(state[1]) < 0 ||
            is_better<Greatest>(value_of<T>(value), value_of<T>(state[0]))) {
            state[0] = value;
            state[1] = word_of(row);
        }
    }
    static void merge(std::uint64_t* state, std::uint64_t const* other, std::int64_t before) {
        add(state, other[0], value_of<std::int64_t>(other[1]) + before);
    }
};
template <class T>
using ArgMin = ArgExtreme<T, false>;
template <class T>
using ArgMax = ArgExtreme<T, true>;

template <class T>
struct Any {
    static constexpr std::size_t kWords = 1;
    static void start(std::uint64_t* state) { *state = 0; }
    static void add(std::uint64_t* state, std::uint64_t value, std::int64_t) {
        *state |= value_of<T>(value) != T{0} ? 1u : 0u;  // NaN is true
    }
    static void merge(std::uint64_t* state, std::uint64_t const* other, std::int64_t) {
        *state |= *other;
    }
};

template <class T>
struct All {
    static constexpr std::size_t kWords = 1;
    static void start(std::uint64_t* state) { *state = 1; }
    static void add(std::uint64_t* state, std::uint64_t value, std::int64_t) {
        *state &= value_of<T>(value) != T{0} ? 1u : 0u;
    }
    static void merge(std::uint64_t* state, std::uint64_t const* other, std::int64_t) {
        *state &= *other;
    }
};

/// Welford's update, and Chan's for two states: both stay accurate if the mean is large.
template <class T>
struct Moments {
    static constexpr std::size_t kWords = 3;
    static void start(std::uint64_t* state) {
        state[0] = 0;
        state[1] = state[2] = word_of(0.0);
    }
    static void add(std::uint64_t* state, std::uint64_t word, std::int64_t) {
        auto const value = static_cast<double>(value_of<T>(word));
        state[0] += 1;
        double const mean = value_of<double>(state[1]);
        double const deviation = value - mean;
        double const moved = mean + deviation / static_cast<double>(state[0]);
        state[1] = word_of(moved);
        state[2] = word_of(value_of<double>(state[2]) + deviation * (value - moved));
    }
    static void merge(std::uint64_t* state, std::uint64_t const* other, std::int64_t) {
        if (state[0] == 0) {
            for (std::size_t i = 0; i < kWords; ++i) state[i] = other[i];
            return;
        }
        auto const mine = static_cast<double>(state[0]);
        auto const theirs = static_cast<double>(other[0]);
        double const apart = value_of<double>(other[1]) - value_of<double>(state[1]);
        double const part = theirs / (mine + theirs);
        state[0] += other[0];
        state[1] = word_of(value_of<double>(state[1]) + apart * part);
        state[2] = word_of(value_of<double>(state[2]) + value_of<double>(other[2]) +
                           apart * apart * mine * part);
    }
};

struct First {
    static constexpr std::size_t kWords = 2;
    static void start(std::uint64_t* state) { state[0] = state[1] = 0; }
    static void add(std::uint64_t* state, std::uint64_t value, std::int64_t) {
        if (state[1] == 0) {
            state[0] = value;
            state[1] = 1;
        }
    }
    static void merge(std::uint64_t* state, std::uint64_t const* other, std::int64_t) {
        add(state, *other, 0);
    }
};

struct Last {
    static constexpr std::size_t kWords = 1;
    static void start(std::uint64_t* state) { *state = 0; }
    static void add(std::uint64_t* state, std::uint64_t value, std::int64_t) { *state = value; }
    static void merge(std::uint64_t* state, std::uint64_t const* other, std::int64_t) {
        *state = *other;
    }
};

template <class Fold>
void start_all(std::uint64_t* states, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) Fold::start(states + i * Fold::kWords);
}

template <class Fold>
void add_row(std::uint64_t* state, FoldRows const& rows, std::size_t i) {
    std::uint64_t value = 0;
    if constexpr (!std::is_same_v<Fold, Count>) value = rows.values[i];
    auto const row = static_cast<std::int64_t>(rows.rows != nullptr ? rows.rows[i] : i);
    Fold::add(state, value, rows.first_row + row);
}

/// Rows of one group that follow each other keep the state in registers.
template <class Fold>
void add_runs(std::uint64_t* states, FoldRows const& rows) {
    for (std::size_t i = 0; i < rows.count;) {
        std::uint32_t const group = rows.groups[i];
        std::uint64_t state[Fold::kWords];
        std::copy_n(states + group * Fold::kWords, Fold::kWords, state);
        for (; i < rows.count && rows.groups[i] == group; ++i) add_row<Fold>(state, rows, i);
        std::copy_n(state, Fold::kWords, states + group * Fold::kWords);
    }
}

/// Do most of the first rows have the group of the row before?
bool has_runs(FoldRows const& rows) {
    std::size_t const count = std::min<std::size_t>(rows.count, 128);
    std::size_t equal = 0;
    for (std::size_t i = 1; i < count; ++i) {
        equal += rows.groups[i] == rows.groups[i - 1] ? 1 : 0;
    }
    return equal > count - count / 8;
}

template <class Fold>
void add_all(std::uint64_t* states, FoldRows const& given) {
    FoldRows const rows = given;  // in registers: the stores below cannot change it
    if (has_runs(rows)) return add_runs<Fold>(states, rows);
    for (std::size_t i = 0; i < rows.count; ++i) {
        add_row<Fold>(states + rows.groups[i] * Fold::kWords, rows, i);
    }
}

template <class Fold>
void merge_all(std::uint64_t* states, std::uint32_t const* groups, std::uint64_t const* other,
               std::size_t count, std::int64_t rows_before) {
    for (std::size_t i = 0; i < count; ++i) {
        Fold::merge(states + groups[i] * Fold::kWords, other + i * Fold::kWords, rows_before);
    }
}

template <class Fold>
constexpr FoldOps kOps{Fold::kWords, start_all<Fold>, add_all<Fold>, merge_all<Fold>};

template <template <class> class Fold>
FoldOps const& in_domain(Domain domain) {
    switch (domain) {
        case Domain::Signed:
            return kOps<Fold<std::int64_t>>;
        case Domain::Unsigned:
            return kOps<Fold<std::uint64_t>>;
        case Domain::Double:
            break;
    }
    return kOps<Fold<double>>;
}

template <class T>
using PlainSum = Sum<T>;

}  // namespace

Domain domain_of(Dtype dtype) noexcept {
    switch (dtype) {
        case Dtype::UInt8:
        case Dtype::UInt16:
        case Dtype::UInt32:
        case Dtype::UInt64:
            return Domain::Unsigned;
        case Dtype::Float16:
        case Dtype::BFloat16:
        case Dtype::Float32:
        case Dtype::Float64:
            return Domain::Double;
        default:
            return Domain::Signed;
    }
}

FoldOps const& fold_ops(FoldKind kind, Domain domain) {
    switch (kind) {
        case FoldKind::Count:
            return kOps<Count>;
        case FoldKind::Sum:
            return in_domain<PlainSum>(domain);
        case FoldKind::DoubleSum:
            return in_domain<DoubleSum>(domain);
        case FoldKind::Prod:
            return in_domain<Prod>(domain);
        case FoldKind::Min:
            return in_domain<Min>(domain);
        case FoldKind::Max:
            return in_domain<Max>(domain);
        case FoldKind::Any:
            return in_domain<Any>(domain);
        case FoldKind::All:
            return in_domain<All>(domain);
        case FoldKind::Moments:
            return in_domain<Moments>(domain);
        case FoldKind::First:
            return kOps<First>;
        case FoldKind::Last:
            return kOps<Last>;
        case FoldKind::ArgMin:
            return in_domain<ArgMin>(domain);
        case FoldKind::ArgMax:
            break;
    }
    return in_domain<ArgMax>(domain);
}

}  // namespace tensorhash::data
