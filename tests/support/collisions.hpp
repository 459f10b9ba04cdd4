// Keys that collide on purpose, made with the inverse of the engine's hash. Rule 7 promises the
// right result for them.
#pragma once

#include <cstdlib>

#include "support/batches.hpp"
#include "tensorhash/step/hash.hpp"
#include "tensorhash/step/key.hpp"

namespace th_test {

namespace step = tensorhash::step;

/// The default seed of all tables in test programs that include this file: tests that craft
/// collisions must know it. TENSORHASH_SEED=n runs the tests under another seed.
inline std::uint64_t const test_seed = [] {
    setenv("TENSORHASH_SEED", "1", 0);
    return static_cast<std::uint64_t>(std::strtoull(std::getenv("TENSORHASH_SEED"), nullptr, 0));
}();
inline step::HashSecret const test_secret = step::secret_of(test_seed);

/// Homes of write_same_home_key(): the first bucket of every index, one inside, and the last.
inline constexpr std::uint32_t first_home = 0;
inline constexpr std::uint32_t inner_home = 0x5a5a5a5a;
inline constexpr std::uint32_t last_home = 0xffffffff;

/// An 8-byte key. The high half of its mixed word is `home` for all numbers, so all these keys
/// share one home bucket in every index. Their classes (low bits) differ. `number` must be in [1,
/// 2^27).
void write_same_home_key(void* out, std::uint32_t home, std::uint64_t number,
                         step::HashSecret const& secret = test_secret);

/// A key of more than eight bytes with the hash `wanted`. Keys of other numbers have the same hash,
/// so only a comparison tells them apart. In keys below 16 bytes, the bytes after the eighth are
/// the number.
void write_key_of_hash(void* out, std::size_t width, std::uint64_t wanted, std::uint64_t number,
                       step::HashSecret const& secret = test_secret);

/// A key with one of eight hashes. They differ only in the class, so all these keys share one home
/// bucket.
void write_same_hash_key(void* out, std::size_t width, std::uint64_t number,
                         step::HashSecret const& secret = test_secret);

Tensor same_home_keys(std::size_t rows, std::uint32_t home = inner_home, std::uint64_t first = 1,
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
