// The sample that decides whether equal keys are joined before they travel.
#include "ranks/repeats.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "map/results.hpp"
#include "tensorhash/hash_map.hpp"
#include "tensorhash/step/hash.hpp"

namespace tensorhash::ranks {

using map::CheckedBatch;

namespace {

constexpr std::size_t kRun = 8;  // neighbouring rows of a sample

/// All keys, or runs of rows from the whole batch: enough that repeats of a key show in them.
Tensor sample_of(CheckedBatch const& keys, Element const& element) {
    double const root = std::sqrt(static_cast<double>(keys.rows));
    std::size_t const runs = (4096 + static_cast<std::size_t>(16 * root)) / kRun;
    if (keys.rows <= runs * kRun) {
        return keys.tensor;
    }
    Tensor sample = Tensor::empty(with_rows(runs * kRun, element.shape), element.dtype);
    std::size_t const bytes = kRun * element.bytes();
    auto* const to = static_cast<unsigned char*>(sample.data());
    // A run somewhere in each of as many equal parts: a batch may repeat itself at regular
    // distances.
    std::size_t const part = keys.rows / runs;
    for (std::size_t run = 0; run < runs; ++run) {
        std::size_t const first = run * part + step::mix(run) % (part - kRun + 1);
        std::copy_n(keys.data() + first * element.bytes(), bytes, to + run * bytes);
    }
    return sample;
}

}  // namespace

bool has_many_repeats(CheckedBatch const& keys, Element const& element) {
    Tensor const sample = sample_of(keys, element);
    auto const rows = static_cast<std::size_t>(sample.shape()[0]);
    HashMap distinct(Capacity{static_cast<std::int64_t>(rows)}, element, {});
    Located const located = distinct.activate(sample);
    auto const number = located.indices.as<std::int32_t>();  // keys in the order of their first row
    auto const is_new = located.mask.as<bool>();

    std::vector<bool> is_pair(rows);
    std::size_t pairs = 0, others = 0;
    std::int32_t known = 0, before_run = 0;
    for (std::size_t row = 0; row < rows; ++row) {
        before_run = row % kRun == 0 ? known : before_run;
        if (is_new[row]) {
            ++known;
        } else if (number[row] < before_run && !is_pair[static_cast<std::size_t>(number[row])]) {
            is_pair[static_cast<std::size_t>(number[row])] = true;
            ++pairs;
        } else {
            ++others;
        }
    }
    // Repeats within a run, and of keys that are everywhere, are as frequent in the batch as in the
    // sample. Pairs of far rows are not: if each key comes d times, s of n rows hold about
    // (d - 1) s^2 / 2n of them, and a third of the rows repeat a key at d = 1.5.
    auto const all = static_cast<double>(keys.rows), some = static_cast<double>(rows);
    return 3 * some * static_cast<double>(others) + 4 * all * static_cast<double>(pairs) >
           some * some;
}

}  // namespace tensorhash::ranks
