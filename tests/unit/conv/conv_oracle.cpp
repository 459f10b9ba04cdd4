#include "conv_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "tensor/half.hpp"

namespace th_test::conv {
namespace {

struct PairLists {
    std::vector<std::int32_t> in;
    std::vector<std::int32_t> out;
    std::vector<std::int64_t> offsets{0};

    void add(std::int64_t i, std::int64_t o) {
        in.push_back(static_cast<std::int32_t>(i));
        out.push_back(static_cast<std::int32_t>(o));
    }
    void end_group() { offsets.push_back(static_cast<std::int64_t>(in.size())); }
    KernelMap map(std::int64_t num_in, std::int64_t num_out) const {
        KernelMap made;
        made.in_maps = Tensor::from(in, {static_cast<std::int64_t>(in.size())});
        made.out_maps = Tensor::from(out, {static_cast<std::int64_t>(out.size())});
        made.offsets = Tensor::from(offsets);
        made.num_in = num_in;
        made.num_out = num_out;
        return made;
    }
};

/// Calls f(k, i, o) for every pair.
template <class F>
void for_pairs(KernelMap const& map, F f) {
    auto const offsets = map.offsets.as<std::int64_t>();
    auto const in = map.in_maps.as<std::int32_t>();
    auto const out = map.out_maps.as<std::int32_t>();
    for (std::size_t k = 0; k + 1 < offsets.size(); ++k) {
        for (auto at = static_cast<std::size_t>(offsets[k]);
             at < static_cast<std::size_t>(offsets[k + 1]); ++at) {
            f(k, static_cast<std::size_t>(in[at]), static_cast<std::size_t>(out[at]));
        }
    }
}

/// Calls f(k, (i, c), (o, d), weight element) with flat positions, for every product.
template <class F>
void for_products(Case const& c, F f) {
    auto const in = static_cast<std::size_t>(c.in);
    auto const out = static_cast<std::size_t>(c.out);
    auto const groups = static_cast<std::size_t>(c.groups);
    std::size_t const rows = in / groups;
    std::size_t const columns = out / groups;
    for_pairs(c.map, [&](std::size_t k, std::size_t i, std::size_t o) {
        for (std::size_t g = 0; g < groups; ++g) {
            for (std::size_t x = 0; x < rows; ++x) {
                for (std::size_t y = 0; y < columns; ++y) {
                    f(i * in + g * rows + x, o * out + g * columns + y,
                      (k * rows + x) * out + g * columns + y);
                }
            }
        }
    });
}

Sums zeros(std::size_t count) {
    return {std::vector<double>(count, 0.0), std::vector<double>(count, 0.0)};
}

void add(Sums& sums, std::size_t at, double product) {
    sums.values[at] += product;
    sums.magnitudes[at] += std::abs(product);
}

double rounding_of(Dtype dtype) {
    switch (dtype) {
        case Dtype::Float64:
            return 0;  // as the oracle
        case Dtype::Float32:
            return 0;
        case Dtype::Float16:
            return 0x1p-11;
        default:
            return 0x1p-8;
    }
}

}  // namespace

KernelMap random_map(MapSize const& size, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> chance;
    PairLists pairs;
    for (std::int64_t k = 0; k < size.offsets; ++k) {
        for (std::int64_t o = 0; o < size.num_out; ++o) {
            for (std::int64_t i = 0; i < size.num_in; ++i) {
                if (chance(random) < size.density) pairs.add(i, o);
            }
        }
        pairs.end_group();
    }
    return pairs.map(size.num_in, size.num_out);
}

KernelMap line_map(std::int64_t length, std::int64_t offsets, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::int64_t> place;
    for (std::int64_t x = 0; x < length; ++x) {
        if (random() % 2 == 0) place.push_back(x);
    }
    std::shuffle(place.begin(), place.end(), random);
    std::vector<std::int64_t> row(static_cast<std::size_t>(length), -1);
    for (std::size_t i = 0; i < place.size(); ++i) {
        row[static_cast<std::size_t>(place[i])] = static_cast<std::int64_t>(i);
    }
    PairLists pairs;
    for (std::int64_t k = 0; k < offsets; ++k) {
        for (std::size_t o = 0; o < place.size(); ++o) {
            std::int64_t const x = place[o] + k - offsets / 2;
            if (x < 0 || x >= length || row[static_cast<std::size_t>(x)] < 0) continue;
            pairs.add(row[static_cast<std::size_t>(x)], static_cast<std::int64_t>(o));
        }
        pairs.end_group();
    }
    auto const rows = static_cast<std::int64_t>(place.size());
    return pairs.map(rows, rows);
}

Tensor random_tensor(Shape const& shape, Dtype dtype, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    Tensor made = Tensor::empty(shape, dtype);
    auto const count = static_cast<std::size_t>(made.size());
    for (std::size_t i = 0; i < count; ++i) {
        double const x = normal(random);
        auto const narrow = static_cast<float>(x);
        auto* const at = static_cast<unsigned char*>(made.data()) + i * byte_size(dtype);
        std::uint16_t const half = dtype == Dtype::Float16 ? tensorhash::float_to_half(narrow)
                                                           : tensorhash::float_to_bfloat16(narrow);
        if (dtype == Dtype::Float64) std::memcpy(at, &x, sizeof(x));
        if (dtype == Dtype::Float32) std::memcpy(at, &narrow, sizeof(narrow));
        if (byte_size(dtype) == 2) std::memcpy(at, &half, sizeof(half));
    }
    return made;
}

std::vector<double> numbers_of(Tensor const& tensor) {
    std::vector<double> out(static_cast<std::size_t>(tensor.size()));
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (tensor.dtype() == Dtype::Float64) out[i] = tensor.as<double>()[i];
        if (tensor.dtype() == Dtype::Float32) out[i] = tensor.as<float>()[i];
        auto const* const halves = static_cast<std::uint16_t const*>(tensor.data());
        if (tensor.dtype() == Dtype::Float16) out[i] = tensorhash::half_to_float(halves[i]);
        if (tensor.dtype() == Dtype::BFloat16) out[i] = tensorhash::bfloat16_to_float(halves[i]);
    }
    return out;
}

Sums forward_oracle(Case const& c, Tensor const& features, Tensor const& weight) {
    Sums sums = zeros(static_cast<std::size_t>(c.map.num_out * c.out));
    auto const x = numbers_of(features);
    auto const w = numbers_of(weight);
    for_products(c, [&](std::size_t from, std::size_t to, std::size_t at) {
        add(sums, to, x[from] * w[at]);
    });
    return sums;
}

Sums input_oracle(Case const& c, Tensor const& gradient, Tensor const& weight) {
    Sums sums = zeros(static_cast<std::size_t>(c.map.num_in * c.in));
    auto const y = numbers_of(gradient);
    auto const w = numbers_of(weight);
    for_products(c, [&](std::size_t from, std::size_t to, std::size_t at) {
        add(sums, from, y[to] * w[at]);
    });
    return sums;
}

Sums weight_oracle(Case const& c, Tensor const& features, Tensor const& gradient) {
    std::int64_t const offsets = c.map.offsets.size() - 1;
    Sums sums = zeros(static_cast<std::size_t>(offsets * c.in / c.groups * c.out));
    auto const x = numbers_of(features);
    auto const y = numbers_of(gradient);
    for_products(c, [&](std::size_t from, std::size_t to, std::size_t at) {
        add(sums, at, x[from] * y[to]);
    });
    return sums;
}

::testing::AssertionResult is_near(Tensor const& got, Sums const& want) {
    auto const numbers = numbers_of(got);
    if (numbers.size() != want.values.size()) {
        return ::testing::AssertionFailure()
               << numbers.size() << " elements, expected " << want.values.size();
    }
    double const of_sums = got.dtype() == Dtype::Float64 ? 1e-14 : 4e-6;
    double const of_dtype = rounding_of(got.dtype());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        double const allowed = of_sums * want.magnitudes[i] + of_dtype * std::abs(want.values[i]) +
                               (of_dtype > 0 ? 1e-7 : 0);
        if (!(std::abs(numbers[i] - want.values[i]) <= allowed)) {
            return ::testing::AssertionFailure()
                   << "element " << i << " is " << numbers[i] << ", expected " << want.values[i]
                   << " +- " << allowed;
        }
    }
    return ::testing::AssertionSuccess();
}

}  // namespace th_test::conv
