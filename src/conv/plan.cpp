// Checks a kernel map once, for all its convolutions.
#include "conv/plan.hpp"

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include "coords/kernel_map/forms.hpp"
#include "runtime/parallel.hpp"
#include "tensor/allocators.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::conv {

using coords::fail_map;

namespace {

/// Small stretches for few rows, so that threads share them; large ones keep the list short.
constexpr std::size_t kFewRows = 32768;
constexpr std::size_t kSmallStretch = 128;
constexpr std::size_t kLargeStretch = 512;

/// Pairs of one task of the check.
constexpr std::size_t kCheckGrain = 1 << 15;

void require_array(Tensor const& array, Dtype dtype, std::string_view argument) {
    std::string const name_of(argument);
    if (array.dtype() != dtype) {
        throw DtypeError(name_of + ": expected " + std::string(name(dtype)) + ", got " +
                             std::string(name(array.dtype())),
                         name_of, dtype);
    }
    require_host(array.device(), argument);
    if (array.rank() != 1) {
        throw ValueError(name_of + ": expected one dimension, got shape " +
                         to_string(array.shape()));
    }
}

void require_rows(std::int64_t rows, std::string_view argument) {
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    if (rows < 0 || rows > kMost) {
        throw ValueError(std::string(argument) + ": expected 0 to " + std::to_string(kMost) +
                         " rows, got " + std::to_string(rows));
    }
}

/// A copy that no caller can write to.
coords::KernelMap private_copy(coords::KernelMap const& map) {
    require_array(map.in_maps, Dtype::Int32, "in_maps");
    require_array(map.out_maps, Dtype::Int32, "out_maps");
    require_array(map.offsets, Dtype::Int64, "offsets");
    require_rows(map.num_in, "num_in");
    require_rows(map.num_out, "num_out");
    coords::KernelMap copy = map;
    copy.in_maps = map.in_maps.clone();
    copy.out_maps = map.out_maps.clone();
    copy.offsets = map.offsets.clone();
    return copy;
}

std::vector<std::int64_t> checked_bounds(coords::KernelMap const& map) {
    auto const given = map.offsets.as<std::int64_t>();
    std::int64_t const pairs = map.in_maps.size();
    bool const good = !given.empty() && map.out_maps.size() == pairs && given.front() == 0 &&
                      given.back() == pairs && std::is_sorted(given.begin(), given.end());
    if (!good) {
        fail_map("offsets: expected ascending numbers from 0 to " + std::to_string(pairs) +
                 ", the number of pairs");
    }
    return {given.begin(), given.end()};
}

/// Are all these rows in [0, limit)? Compares as unsigned: one test for both ends.
bool below(std::int32_t const* begin, std::int32_t const* end, std::int64_t limit) {
    if (begin == end) return true;
    std::uint32_t most = 0;
    for (; begin != end; ++begin) most = std::max(most, static_cast<std::uint32_t>(*begin));
    return static_cast<std::int64_t>(most) < limit;
}

bool ascends(std::int32_t const* begin, std::int32_t const* end) {
    int falls = 0;
    for (; begin + 1 < end; ++begin) falls |= begin[1] < begin[0] ? 1 : 0;
    return falls == 0;
}

/// What is wrong with the rows, so that the message can name it.
struct Faults {
    std::atomic<bool> in{false};
    std::atomic<bool> out{false};
    std::atomic<bool> order{false};
};

void check_rows(PlanData const& plan, std::size_t begin, std::size_t end, Faults& faults) {
    PairRows const pairs = plan.pairs();
    auto const mark = [](std::atomic<bool>& fault, bool good) {
        if (!good) fault.store(true, std::memory_order_relaxed);
    };
    mark(faults.in, below(pairs.in + begin, pairs.in + end, plan.map.num_in));
    mark(faults.out, below(pairs.out + begin, pairs.out + end, plan.map.num_out));
    auto const first = static_cast<std::int64_t>(begin);
    auto group = std::upper_bound(plan.bounds.begin(), plan.bounds.end(), first) - 1;
    for (; group + 1 != plan.bounds.end() && *group < static_cast<std::int64_t>(end); ++group) {
        // One pair more than the chunk: the order over its end is checked too.
        std::int64_t const last = std::min(group[1], static_cast<std::int64_t>(end) + 1);
        mark(faults.order, ascends(pairs.out + std::max(*group, first), pairs.out + last));
    }
}

void require_good(Faults const& faults, coords::KernelMap const& map) {
    auto const fail_rows = [](char const* argument, std::int64_t limit) {
        fail_map(std::string(argument) + ": expected rows from 0 on, below " +
                 std::to_string(limit));
    };
    // Relaxed: the threads that wrote them are done.
    if (faults.in.load(std::memory_order_relaxed)) fail_rows("in_maps", map.num_in);
    if (faults.out.load(std::memory_order_relaxed)) fail_rows("out_maps", map.num_out);
    if (faults.order.load(std::memory_order_relaxed)) {
        fail_map("out_maps: expected rows that ascend within each offset");
    }
}

/// A hash of a pair. The exchanged pair has another one.
std::uint64_t mixed(std::int32_t first, std::int32_t second) {
    std::uint64_t word = static_cast<std::uint64_t>(static_cast<std::uint32_t>(first)) << 32 |
                         static_cast<std::uint32_t>(second);
    word *= 0x9e3779b97f4a7c15u;
    word ^= word >> 32;
    word *= 0xd6e8feb86659fd93u;
    return word ^ (word >> 29);
}

/// Does offset K - 1 - k have the pairs of offset k with in and out exchanged, for every k?
/// Compares sums of hashes: different sets have equal sums with a chance of one in 2^64.
bool is_mirrored(PlanData const& plan) {
    std::size_t const groups = plan.groups();
    if (plan.map.num_in != plan.map.num_out) return false;
    auto const size = [&](std::size_t k) { return plan.bounds[k + 1] - plan.bounds[k]; };
    for (std::size_t k = 0; k < groups; ++k) {
        if (size(k) != size(groups - 1 - k)) return false;
    }
    std::vector<std::uint64_t> straight(groups);
    std::vector<std::uint64_t> exchanged(groups);
    PairRows const pairs = plan.pairs();
    runtime::run_tasks(groups, [&](std::size_t k) {
        std::uint64_t one = 0;
        std::uint64_t other = 0;
        for (std::int64_t at = plan.bounds[k]; at < plan.bounds[k + 1]; ++at) {
            one += mixed(pairs.in[at], pairs.out[at]);
            other += mixed(pairs.out[at], pairs.in[at]);
        }
        straight[k] = one;
        exchanged[k] = other;
    });
    for (std::size_t k = 0; k < groups; ++k) {
        if (straight[k] != exchanged[groups - 1 - k]) return false;
    }
    return true;
}

}  // namespace

PlanData::PlanData(coords::KernelMap const& given)
    : map(private_copy(given)), bounds(checked_bounds(map)) {
    Faults faults;
    runtime::for_ranges(
        static_cast<std::size_t>(bounds.back()), kCheckGrain,
        [&](std::size_t begin, std::size_t end) { check_rows(*this, begin, end, faults); });
    require_good(faults, map);
    find_stretches();
}

PairRows PlanData::pairs() const noexcept {
    return {static_cast<std::int32_t const*>(map.in_maps.data()),
            static_cast<std::int32_t const*>(map.out_maps.data()), bounds.back()};
}

void PlanData::find_stretches() {
    auto const rows = static_cast<std::size_t>(map.num_out);
    stretch_rows = rows < kFewRows ? kSmallStretch : kLargeStretch;
    stretches = (rows + stretch_rows - 1) / stretch_rows;
    stretch_starts.resize(groups() * (stretches + 1));
    std::int32_t const* const out = pairs().out;
    runtime::run_tasks(groups(), [&](std::size_t k) {
        std::int32_t const* at = out + bounds[k];
        std::int32_t const* const end = out + bounds[k + 1];
        std::int64_t* const starts = stretch_starts.data() + k * (stretches + 1);
        for (std::size_t s = 0; s < stretches; ++s) {
            // Few steps: the next start is near.
            auto const first = static_cast<std::int64_t>(s * stretch_rows);
            std::ptrdiff_t step = 32;
            while (step < end - at && at[step] < first) {
                at += step;
                step *= 2;
            }
            at = std::lower_bound(at, step < end - at ? at + step : end, first);
            starts[s] = at - out;
        }
        starts[stretches] = bounds[k + 1];
    });
}

Turned const& PlanData::turned() const {
    std::call_once(turned_once_, [&] {
        Turned made;
        made.mirrored = is_mirrored(*this);
        if (!made.mirrored) made.map = std::make_shared<PlanData const>(coords::transpose(map));
        turned_ = std::move(made);
    });
    return turned_;
}

ConvPlan::ConvPlan(coords::KernelMap const& map) : data_(std::make_shared<PlanData const>(map)) {}

std::int64_t ConvPlan::offsets() const noexcept {
    return static_cast<std::int64_t>(data_->groups());
}
std::int64_t ConvPlan::pairs() const noexcept { return data_->bounds.back(); }
std::int64_t ConvPlan::num_in() const noexcept { return data_->map.num_in; }
std::int64_t ConvPlan::num_out() const noexcept { return data_->map.num_out; }

}  // namespace tensorhash::conv
