// Argument and result types that the public functions and the CoordsBackend interface share.
#pragma once

#include <cstdint>
#include <optional>

#include "tensorhash/tensor.hpp"

namespace tensorhash::coords {

/// The range of the columns of PackedHashTable128.
inline constexpr std::int64_t kPacked128Min = -65536;
inline constexpr std::int64_t kPacked128Max = 65535;

/// How `search` reads slots. Every mode gives the same result on every table, because a table is
/// always probed the way it was filled. WarpCoop reads sixteen slots at a time.
enum class SearchMode : int { Linear = 0, DoubleHash = 1, WarpCoop = 2 };

/// The key that stands for a coordinate in a table's index.
enum class CoordKey : unsigned char {
    Packed64,   ///< up to 4 columns within the packed key's range
    Packed128,  ///< 4 columns over all of int32
    Wide,       ///< 5 to 7 columns, or fewer than 4 that leave the packed key's range
};

/// How kernel map pairs are found. Every strategy gives the same map.
enum class Strategy : std::uint8_t {
    Fastest,       ///< Blocks where they apply, else Merge
    Flat,          ///< one probe per out row and offset
    Hierarchical,  ///< probes coarse cells first; odd kernels over three axes, dilation 1
    Merge,         ///< merges the sorted coordinates with shifted ones
    WarpConvNet,   ///< Hierarchical from 125 offsets on where it applies, else Flat
    Blocks,        ///< bits in blocks of 8^3; two or three axes, up to 16 wide, dilation 1
};

/// What a kernel map does with repeated rows of in_coords.
enum class Duplicates : std::uint8_t {
    Refuse,  ///< ValueError
    First,   ///< the first of equal rows stands for all
};

/// How the values of one voxel become one value.
enum class VoxelReduce : std::uint8_t { First, Last, Sum, Mean, Min, Max };

/// Distinct rows, batches in ascending order: batch b is rows offsets[b] to offsets[b + 1]. Inside
/// a batch the rows are in order of first occurrence. A batch may be any integer. If one is
/// negative or at least 2^24, `offsets` lists only the batches that occur, and the first column
/// says which they are.
struct BatchedCoords {
    Tensor coords;   ///< [M, 1 + D], of the input's dtype
    Tensor offsets;  ///< int64 [B + 1]
};

/// The neighbours of query q are entries offsets[q] to offsets[q + 1] of the other two, nearest
/// first. Of equally near points the lower row comes first.
struct Neighbors {
    Tensor indices;    ///< int64 [P]: rows of the points
    Tensor distances;  ///< float64 [P]
    Tensor offsets;    ///< int64 [M + 1]
};

/// Points [N, D] of any float or integer dtype. With `batch`, integers [N], points and queries of
/// different batches are never neighbours.
struct Cloud {
    Tensor points;
    std::optional<Tensor> batch = {};
};

}  // namespace tensorhash::coords
