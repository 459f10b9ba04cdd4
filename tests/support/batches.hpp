// Makes batches: keys of any width and dtype from numbers, values from a seed, and the reverse.
// Does not use GoogleTest, so that the fuzzer can use it too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/oracle.hpp"
#include "tensorhash/tensorhash.hpp"

namespace th_test {

using tensorhash::Shape;
using tensorhash::Tensor;
using Ids = std::vector<std::uint64_t>;

/// SplitMix64 (Steele, Lea and Flood): good enough for tests, the same on every platform.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    std::uint64_t below(std::uint64_t n) { return next() % n; }
    bool one_in(std::uint64_t n) { return below(n) == 0; }

private:
    std::uint64_t state_;
};

/// Sanitized tests are ten times slower, so they run a sample of key kinds, thread counts and
/// sizes. TENSORHASH_TEST_IN_FULL=1 runs all of them (make test-release).
bool runs_in_full();

/// A dtype and element shape under a name that GoogleTest accepts.
struct KeyKind {
    std::string name;
    Element element;
    std::size_t width() const { return element.bytes(); }
};

KeyKind bytes_kind(std::int64_t width);

std::vector<KeyKind> typed_kinds();

/// Every width from 1 to 64 bytes, two wider ones, and the typed keys; a sample under sanitizers.
std::vector<KeyKind> all_kinds();

/// One kind for each path through the engine: in-slot words, fast wide paths, odd widths, floats.
std::vector<KeyKind> sample_kinds();

/// Half of the keys are random bytes. The others differ in one small number that starts at any
/// byte, to catch a comparison or hash that skips a byte. Keys of at least four bytes are distinct.
void write_key(char* out, std::size_t width, std::uint64_t id);

Shape rows_shape(std::size_t rows, Element const& element);

/// Turns any byte of a bool into 0 or 1.
void make_legal(char* bytes, std::size_t count, Dtype dtype);

Tensor make_keys(Element const& key, Ids const& ids);

/// Any bits: only accumulate interprets values, all other operations copy them.
Tensor make_values(Element const& value, std::size_t rows, std::uint64_t seed);

/// Floats of very different magnitudes, so that the order of addition shows in the bits; no NaN and
/// no zero. Other dtypes get any bits.
Tensor make_finite_values(Element const& value, std::size_t rows, std::uint64_t seed);

std::vector<Tensor> make_columns(std::vector<Element> const& columns, std::size_t rows,
                                 std::uint64_t seed);

/// `rows` numbers below `universe`: the smaller the universe, the more duplicates.
Ids random_ids(std::size_t rows, std::uint64_t universe, std::uint64_t seed);

Ids sequence(std::size_t rows, std::uint64_t first = 0);

std::string bytes_of(Tensor const& tensor);

Rows rows_of(Tensor const& tensor, Element const& element);

std::vector<Rows> rows_of(std::vector<Tensor> const& tensors, std::vector<Element> const& elements);

template <class T>
std::vector<T> to_vector(Tensor const& tensor) {
    Tensor const here = tensor.to(tensorhash::Device{});
    auto span = here.as<T>();
    return {span.begin(), span.end()};
}

/// A mask as bytes, which GoogleTest prints and compares.
std::vector<std::uint8_t> mask_of(Tensor const& tensor);

Tensor int64_keys(std::vector<std::int64_t> const& values);

}  // namespace th_test
