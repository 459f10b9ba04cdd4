#include "support/kernel_map_oracle.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

namespace th_test {

Tensor tensor_of(Voxels const& rows, std::size_t columns) {
    std::vector<std::int32_t> flat;
    for (Voxel const& row : rows) flat.insert(flat.end(), row.begin(), row.end());
    return Tensor::from(
        flat, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)});
}

Voxels random_rows(std::size_t count, std::vector<std::int32_t> const& range, unsigned seed) {
    std::mt19937 random(seed);
    std::map<Voxel, bool> seen;
    Voxels rows;
    for (std::size_t i = 0; i < count; ++i) {
        Voxel row{static_cast<std::int32_t>(random() % 3)};
        for (std::int32_t const limit : range) {
            // Clusters of neighbours, at any distance from each other.
            std::int32_t const near = static_cast<std::int32_t>(random() % 5) - 2;
            std::int32_t const far = limit == 0 ? 0 : static_cast<std::int32_t>(random() % 3) - 1;
            row.push_back(far * limit + (far > 0   ? -std::abs(near)
                                         : far < 0 ? std::abs(near)
                                                   : near));
        }
        if (seen.emplace(row, true).second) rows.push_back(row);
    }
    return rows;
}

Voxels dense_rows(std::int32_t side, std::size_t axes, unsigned seed) {
    std::mt19937 random(seed);
    Voxels rows;
    Voxel row(axes + 1, 0);
    for (std::size_t axis = 0; axis < row.size();) {
        if (random() % 3 == 0) rows.push_back(row);
        // Advance to the next cell, like a counter with one digit per axis.
        for (axis = 1; axis < row.size() && ++row[axis] == side; ++axis) row[axis] = 0;
    }
    std::shuffle(rows.begin(), rows.end(), random);
    return rows;
}

Pairs brute_force(Voxels const& in, Voxels const& out, Shape const& stride,
                  tensorhash::coords::Kernel const& kernel) {
    std::map<std::vector<std::int64_t>, std::int32_t> where;
    for (std::size_t i = 0; i < in.size(); ++i) {
        where.emplace(std::vector<std::int64_t>(in[i].begin(), in[i].end()),
                      static_cast<std::int32_t>(i));
    }
    Tensor const table = tensorhash::coords::kernel_offsets_from_size(kernel);
    auto const offsets = table.as<std::int32_t>();
    auto const columns = static_cast<std::size_t>(table.shape()[1]);
    Pairs pairs;
    for (std::size_t k = 0; k < offsets.size() / columns; ++k) {
        for (std::size_t o = 0; o < out.size(); ++o) {
            std::vector<std::int64_t> sought(out[o].begin(), out[o].end());
            for (std::size_t c = 1; c < columns; ++c) {
                sought[c] = sought[c] * stride[c - 1] + offsets[k * columns + c];
            }
            if (auto const hit = where.find(sought); hit != where.end()) {
                pairs.in.push_back(hit->second);
                pairs.out.push_back(static_cast<std::int32_t>(o));
            }
        }
        pairs.offsets.push_back(static_cast<std::int64_t>(pairs.in.size()));
    }
    return pairs;
}

std::int64_t extent_of(Voxels const& rows) {
    std::int64_t widest = 0;
    for (std::size_t c = 0; !rows.empty() && c < rows[0].size(); ++c) {
        auto const by_column = [&](Voxel const& a, Voxel const& b) { return a[c] < b[c]; };
        auto const [low, high] = std::minmax_element(rows.begin(), rows.end(), by_column);
        widest = std::max(widest, std::int64_t{(*high)[c]} - (*low)[c]);
    }
    return widest;
}

}  // namespace th_test
