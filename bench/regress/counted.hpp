// What the workloads for callgrind share: numbers that are the same everywhere, and the function
// whose instructions count.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tensorhash/tensorhash.hpp"

/// callgrind finds this function by its name, so it must not be inlined or cloned.
extern "C" __attribute__((noipa)) inline void tensorhash_measured(
    std::function<void()> const& work) {
    work();
}

namespace counted {

/// splitmix64: the same numbers with every standard library.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t operator()() {
        std::uint64_t x = state_ += 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return x ^ (x >> 31);
    }
    std::int32_t below(std::int32_t end) {
        return static_cast<std::int32_t>((*this)() % static_cast<std::uint64_t>(end));
    }

private:
    std::uint64_t state_;
};

/// Prints the name first, so names and counts have one order.
inline void measure(std::string const& name, std::function<void()> const& work) {
    std::printf("%s\n", name.c_str());
    tensorhash_measured(work);
}

/// Checks results, so that a workload cannot become cheap by becoming wrong.
inline void expect(bool holds, char const* what) {
    if (!holds) {
        throw std::logic_error(std::string("a workload went wrong: ") + what);
    }
}

inline tensorhash::Tensor random_keys(tensorhash::Element const& key, std::int64_t rows,
                                      std::uint64_t seed) {
    Random random(seed);
    std::vector<std::int32_t> words(key.bytes() / 4 * static_cast<std::size_t>(rows));
    for (auto& word : words) {
        word = static_cast<std::int32_t>(random());
    }
    tensorhash::Shape shape{rows};
    shape.insert(shape.end(), key.shape.begin(), key.shape.end());
    tensorhash::Tensor keys = tensorhash::Tensor::empty(shape, key.dtype);
    std::memcpy(keys.data(), words.data(), words.size() * 4);
    return keys;
}

}  // namespace counted
