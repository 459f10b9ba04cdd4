// tensorhash-regress: fixed workloads for callgrind. It counts only instructions inside
// `tensorhash_measured`. Each workload prints its name first, so names and counts have one order.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "counted.hpp"
#include "tensorhash/tensorhash.hpp"

namespace {

using namespace counted;
using namespace tensorhash;

constexpr std::int64_t kRows = 50'000;

/// Each of rows / 4 rows four times, far apart.
Tensor repeated_rows(Element const& key, std::int64_t rows, std::uint64_t seed) {
    Tensor const distinct = random_keys(key, rows / 4, seed);
    Shape shape = distinct.shape();
    shape[0] = rows;
    Tensor all = Tensor::empty(shape, key.dtype);
    for (std::size_t i = 0; i < 4; ++i) {
        std::memcpy(static_cast<char*>(all.data()) + i * distinct.bytes(), distinct.data(),
                    distinct.bytes());
    }
    return all;
}

/// Distinct (0, x, y, z) on a wavy sheet: full of neighbours, as scanned surfaces are.
Tensor sheet_coords(std::int32_t side) {
    Random random(11);
    std::vector<std::int32_t> coords;
    for (std::int32_t x = 0; x < side; ++x) {
        for (std::int32_t y = 0; y < side; ++y) {
            coords.insert(coords.end(), {0, x, y, (x + y) / 8 + random.below(2)});
        }
    }
    return Tensor::from(coords, {std::int64_t{side} * side, 4});
}

Tensor batch_of(Tensor const& keys, std::int64_t begin, std::int64_t rows) {
    Shape shape = keys.shape();
    shape[0] = rows;
    auto const* const first =
        static_cast<char const*>(keys.data()) + begin * keys.byte_strides()[0];
    return Tensor::borrow(static_cast<void const*>(first), shape, keys.dtype());
}

/// The verbs of a table, for one kind of key.
void table_workloads(std::string const& kind, Element const& key) {
    Tensor const keys = random_keys(key, kRows, 1);
    Tensor const others = random_keys(key, kRows, 2);
    Tensor const values = Tensor::zeros({kRows}, Dtype::Int64);
    HashMap map(Capacity{kRows}, key, {{Dtype::Int64, {}}});
    measure(kind + " insert new", [&] { map.insert(keys, {values}); });
    expect(map.size() == kRows, "random keys were not distinct");
    measure(kind + " insert existing", [&] { map.insert(keys, {values}); });
    measure(kind + " find hit", [&] { map.find(keys); });
    measure(kind + " find miss", [&] { map.find(others); });
    measure(kind + " erase", [&] { map.erase(keys); });
    expect(map.size() == 0, "erase kept keys");

    constexpr std::int64_t kBatch = 5'000;
    HashMap grown(Capacity{0}, key, {{Dtype::Int64, {}}});
    measure(kind + " growth", [&] {
        for (std::int64_t begin = 0; begin < kRows; begin += kBatch) {
            grown.insert(batch_of(keys, begin, kBatch), {batch_of(values, begin, kBatch)});
        }
    });
    expect(grown.size() == kRows, "growth lost keys");

    Tensor const repeated = repeated_rows(key, kRows, 3);
    measure(kind + " unique", [&] { unique(repeated); });
    HashMap sums(Capacity{kRows}, key, {{Dtype::Float32, {}}});
    Tensor const ones = Tensor::zeros({kRows}, Dtype::Float32);
    measure(kind + " accumulate sum", [&] { sums.accumulate(repeated, {ones}, {Reduce::Sum}); });
    expect(sums.size() == kRows / 4, "accumulate lost keys");

    HashMap wide(Capacity{kRows}, key, {{Dtype::Float32, {16}}});
    wide.activate(keys);
    measure(kind + " get", [&] { wide.get(keys); });
}

void coords_workloads() {
    Tensor const coords = sheet_coords(150);
    auto const table = coords::PackedHashTable::from_coords(coords);
    measure("packed search", [&] { table.search(coords); });
    std::int64_t pairs = 0;
    measure("kernel map 3x3x3", [&] {
        pairs = coords::generate_kernel_map(coords, coords, {1, 1, 1}, {{3, 3, 3}}).in_maps.size();
    });
    expect(pairs > 3 * coords.shape()[0], "the kernel map has few pairs");
}

}  // namespace

int main() {
    // regress.py reads these two lines first, then one name per workload.
    std::printf("compiler %s\nisa %s\n", TENSORHASH_REGRESS_COMPILER, instruction_set());
    try {
        table_workloads("int64", {Dtype::Int64, {}});
        table_workloads("int32x3", {Dtype::Int32, {3}});
        coords_workloads();
    } catch (std::exception const& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
    return 0;
}
