// Keys that collide on purpose: the engine's hash run backwards. Rule 7 promises the right answer
// for them.
#pragma once

#include <cstdlib>

#include "support/batches.hpp"
#include "tensorhash/step/hash.hpp"
#include "tensorhash/step/key.hpp"

namespace th_test {

namespace step = tensorhash::step;

/// The seed of all tables that are not given one, in every test program that includes this file:
/// tests that craft collisions must know it. TENSORHASH_SEED=n runs the tests under another one.
inline std::uint64_t const test_seed = [] {
    setenv("TENSORHASH_SEED", "1", 0);
    return static_cast<std::uint64_t>(std::strtoull(std::getenv("TENSORHASH_SEED"), nullptr, 0));
}();
inline step::HashSecret const test_secret = step::secret_of(test_seed);

/// A key of eight bytes whose mixed word agrees with its siblings' in the low `bits`: one home line
/// for all of them in every index of up to 2^bits lines, and keys of all classes (the top bits) in
/// it. Numbers below 2^(59 - bits).
void write_same_home_key(void* out, int bits, std::uint64_t number,
                         step::HashSecret const& secret = test_secret);

/// A key of more than eight bytes with this hash: only comparing tells it from its siblings of
/// other numbers. Of keys below 16 bytes the bytes after the eighth are the number.
void write_key_of_hash(void* out, std::size_t width, std::uint64_t wanted, std::uint64_t number,
                       step::HashSecret const& secret = test_secret);

/// One of eight hashes, which differ in the class alone: one home line.
void write_same_hash_key(void* out, std::size_t width, std::uint64_t number,
                         step::HashSecret const& secret = test_secret);

Tensor same_home_keys(std::size_t rows, int bits, std::uint64_t first = 1,
                      step::HashSecret const& secret = test_secret);

/// Rows of `width` bytes, each written by `write(bytes, row)`.
template <class Write>
Tensor wide_keys(std::size_t width, std::size_t rows, Write const& write) {
    Tensor out = Tensor::empty({static_cast<std::int64_t>(rows), static_cast<std::int64_t>(width)},
                               Dtype::UInt8);
    auto* bytes = static_cast<char*>(out.data());
    for (std::size_t i = 0; i < rows; ++i) write(bytes + width * i, i);
    return out;
}

Tensor same_hash_keys(std::size_t width, std::size_t rows, std::uint64_t first = 1,
                      step::HashSecret const& secret = test_secret);

}  // namespace th_test
