// tensorhash-instructions: one call of each kind that the benchmark has a goal for, for callgrind.
// Prints "name<TAB>rows" per call; bench/suites/instructions.py divides the counts by the rows.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "../regress/counted.hpp"
#include "tensorhash/tensorhash.hpp"

namespace {

using namespace counted;
using namespace tensorhash;

constexpr std::int64_t kRows = 200'000;

void count(std::string const& what, std::int64_t rows, std::function<void()> const& work) {
    measure(what + "\t" + std::to_string(rows), work);
}

/// All over 64 bits.
std::int64_t spread(std::uint64_t number) {
    return static_cast<std::int64_t>(number * 0x1e3779b97f4a7c15u);
}

Tensor int64_keys(std::int64_t rows, std::int64_t groups, std::uint64_t seed) {
    Random random(seed);
    std::vector<std::int64_t> keys(static_cast<std::size_t>(rows));
    for (auto& key : keys) {
        key = spread(random() % static_cast<std::uint64_t>(groups));
    }
    return Tensor::from(keys);
}

void verbs(std::string const& kind, Element const& key) {
    Tensor const keys = random_keys(key, kRows, 1);
    Tensor const others = random_keys(key, kRows, 2);
    Tensor const values = Tensor::zeros({kRows}, Dtype::Int64);
    HashMap map(Capacity{kRows}, key, {{Dtype::Int64, {}}});
    count("insert, " + kind, kRows, [&] { map.insert(keys, {values}); });
    expect(map.size() == kRows, "random keys were not distinct");
    count("find (hit), " + kind, kRows, [&] { map.find(keys); });
    count("find (miss), " + kind, kRows, [&] { map.find(others); });
    count("erase, " + kind, kRows, [&] { map.erase(keys); });
    expect(map.size() == 0, "erase kept keys");
}

/// Every key 8 times, in random order.
void repeated_keys(std::string const& kind, Element const& key) {
    std::int64_t const distinct = kRows / 8;
    Tensor const few = random_keys(key, distinct, 3);
    Tensor all = random_keys(key, kRows, 3);
    Random random(4);
    for (std::int64_t i = 0; i < kRows; ++i) {
        auto const from =
            static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(distinct));
        std::memcpy(
            static_cast<char*>(all.data()) + static_cast<std::size_t>(i) * key.bytes(),
            static_cast<char const*>(few.data()) + static_cast<std::size_t>(from) * key.bytes(),
            key.bytes());
    }
    Tensor const values = Tensor::zeros({kRows}, Dtype::Int64);
    HashMap map(Capacity{kRows}, key, {{Dtype::Int64, {}}});
    count("insert, each key 8 times, " + kind, kRows, [&] { map.insert(all, {values}); });
    expect(map.size() <= distinct, "keys were not repeated");
}

void small_batches() {
    Element const key{Dtype::Int64, {}};
    for (std::int64_t const rows : {1'000, 10'000}) {
        Tensor const keys = random_keys(key, rows, 5);
        Tensor const values = Tensor::zeros({rows}, Dtype::Int64);
        HashMap map(Capacity{rows}, key, {{Dtype::Int64, {}}});
        std::string const size = rows == 1'000 ? "10^3 keys" : "10^4 keys";
        count("insert, " + size, rows, [&] { map.insert(keys, {values}); });
        count("find (hit), " + size, rows, [&] { map.find(keys); });
        count("erase, " + size, rows, [&] { map.erase(keys); });
    }
}

void shards() {
    Element const key{Dtype::Int64, {}};
    Element const value{Dtype::Float32, {16}};
    Tensor const keys = random_keys(key, kRows, 6);
    Tensor const values = Tensor::zeros({kRows, 16}, Dtype::Float32);
    HashMap one(Capacity{kRows}, key, {value});
    ShardedHashMap two(Capacity{kRows}, key, {value},
                       {Device::parse("cpu:0"), Device::parse("cpu:1")});
    auto const all = [&](std::string const& where, auto& map) {
        count("insert, " + where, kRows, [&] { map.insert(keys, {values}); });
        count("find, " + where, kRows, [&] { map.find(keys); });
        count("get, " + where, kRows, [&] { map.get(keys); });
        count("erase, " + where, kRows, [&] { map.erase(keys); });
    };
    all("1 table", one);
    all("2 shards", two);
}

/// Five rows per group, as 5M rows in 10^6 groups, and 1,000 groups.
void columns() {
    constexpr std::int64_t rows = 1'000'000;
    Tensor const values = Tensor::zeros({rows}, Dtype::Float64);
    std::vector<data::Aggregation> const sum{{data::Aggregate::Sum, values}};
    for (std::int64_t const groups : {std::int64_t{1'000}, rows / 5}) {
        Tensor const keys = int64_keys(rows, groups, 7);
        std::string const name = groups == 1'000 ? "1,000 groups" : "five rows per group";
        count("group-by sum, " + name, rows, [&] { data::group_by(keys, sum); });
    }
    // Half of the left rows have a partner among distinct right rows.
    std::vector<std::int64_t> distinct;
    for (std::int64_t i = 0; i < rows / 5; ++i) {
        distinct.push_back(spread(static_cast<std::uint64_t>(i)));
    }
    Tensor const right = Tensor::from(distinct);
    Tensor const left = int64_keys(rows, 2 * rows / 5, 9);
    count("left join", rows, [&] { data::join(left, right, data::How::Left); });
    Tensor const wide = random_keys({Dtype::Int32, {3}}, kRows, 10);
    count("unique, int32x3", kRows, [&] { unique(wide, {false, false, false}); });
}

void strings() {
    Random random(11);
    std::string bytes;
    std::vector<std::int64_t> offsets{0};
    for (std::int64_t i = 0; i < kRows; ++i) {
        auto const word = random() % 4'000;
        bytes += std::to_string(100'000 + word) + std::string(word % 15, 'x');
        offsets.push_back(static_cast<std::int64_t>(bytes.size()));
    }
    std::vector<std::uint8_t> const all(bytes.begin(), bytes.end());
    StringRows const rows{Tensor::from(offsets), Tensor::from(all)};
    StringIndex index;
    count("StringIndex", kRows, [&] { index.insert(rows); });
}

/// A flat ground around a sensor, with walls, as in bench/suites/points.py.
Tensor street(std::int64_t rows, std::uint64_t seed) {
    Random random(seed);
    auto const unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
    std::vector<double> points;
    for (std::int64_t i = 0; i < rows; ++i) {
        double const angle = 6.283185307179586 * unit();
        double const distance = -12 * (std::log(1 - unit()) + std::log(1 - unit()));
        double const height = unit() < 0.7 ? 0.1 * (unit() - 0.5) : 6 * unit();
        points.insert(points.end(),
                      {distance * std::cos(angle), distance * std::sin(angle), height});
    }
    return Tensor::from(points, {rows, 3});
}

void points() {
    Tensor const cloud = street(kRows, 12);
    Tensor const queries = street(kRows / 2, 13);
    count("kNN, k = 8", kRows / 2, [&] { coords::knn_search({cloud}, {queries}, 8); });
    count("radius 0.3", kRows / 2, [&] { coords::radius_search({cloud}, {queries}, 0.3); });
    // A tenth of the benchmark's points: voxels that are wider hold as many of them.
    count("voxel_downsample", kRows,
          [&] { coords::voxel_means(cloud, {0.316, 0.316, 0.1}, {0, 0, 0}); });
}

/// Per pair: a tenth of a cube's cells.
void kernel_maps() {
    constexpr std::int32_t side = 79;
    Random random(14);
    std::vector<std::int32_t> cells;
    for (std::int32_t x = 0; x < side; ++x) {
        for (std::int32_t y = 0; y < side; ++y) {
            for (std::int32_t z = 0; z < side; ++z) {
                if (random.below(10) == 0) {
                    cells.insert(cells.end(), {0, x, y, z});
                }
            }
        }
    }
    auto const rows = static_cast<std::int64_t>(cells.size() / 4);
    Tensor const voxels = Tensor::from(cells, {rows, 4});
    for (std::int64_t const size : {3, 5, 7}) {
        auto const make = [&] {
            return coords::generate_kernel_map(voxels, voxels, {1, 1, 1}, {{size, size, size}});
        };
        std::int64_t const pairs = make().in_maps.size();
        std::string const edge = std::to_string(size);
        count("kernel map " + edge + "^3, per pair", pairs, make);
    }
}

}  // namespace

int main() {
    std::printf("isa %s\n", instruction_set());
    try {
        verbs("int64", {Dtype::Int64, {}});
        verbs("int32x3", {Dtype::Int32, {3}});
        verbs("bytes64", {Dtype::UInt8, {64}});
        repeated_keys("int64", {Dtype::Int64, {}});
        repeated_keys("int32x3", {Dtype::Int32, {3}});
        small_batches();
        shards();
        columns();
        strings();
        points();
        kernel_maps();
    } catch (std::exception const& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
    return 0;
}
