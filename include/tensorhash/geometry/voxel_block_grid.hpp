// Truncated signed distance fields (TSDF) in a HashMap of voxel blocks: depth images and LiDAR
// points in, surfaces and rendered views out. Results are the same on any number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensorhash/export.hpp"
#include "tensorhash/hash_map.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash::geometry {

/// Voxel (x, y, z) is the point (x, y, z) * voxel_size. A block holds resolution^3 voxels, x
/// fastest; its key is the coordinate of its first voxel divided by the resolution.
struct BlockScale {
    double voxel_size = 0.0058;
    std::int64_t resolution = 16;
};

/// A map from int32 [3] to value columns [r, r, r, channels], and the columns to use. -1 is none.
/// The map must outlive the grid. Calls that change voxels need the grid for themselves.
struct VoxelBlockGrid {
    HashMap& map;
    BlockScale scale;
    int tsdf = -1;    ///< float32, one channel: distance / truncation, from -1 to 1
    int weight = -1;  ///< float32 or uint16, one channel: the number of observations
    int color = -1;   ///< float32 or uint16, three channels from 0 to 255
};

/// A pinhole camera: intrinsic [3, 3], and extrinsic [4, 4] from the world to the camera.
struct Camera {
    Tensor intrinsic;
    Tensor extrinsic;
};

/// Depth in metres is the number in the image / scale. Numbers that are not in (0, max] are no
/// measurement. Distances are cut off at `truncation` voxels.
struct DepthRange {
    double scale = 1000.0;
    double max = 3.0;
    double truncation = 8.0;
    double min = 0.1;  ///< only for ray_cast
};

/// int32 [M, 3]: the blocks near the surface that a depth image [H, W] or [H, W, 1] shows, in order
/// of first occurrence. Reads every fourth pixel of every fourth row.
TH_API Tensor touched_blocks(BlockScale scale, Tensor const& depth, Camera const& camera,
                             DepthRange const& range);
/// int32 [M, 3]: the blocks within `truncation` voxels of the points, along each axis.
TH_API Tensor touched_blocks(BlockScale scale, Tensor const& points, double truncation);

/// One depth image, and a colour image [H, W, 3] of its own size and intrinsic.
struct Frame {
    Tensor depth;
    Camera camera;
    std::optional<Tensor> color{};
    std::optional<Tensor> color_intrinsic{};  ///< that of the camera unless given
};

/// Adds the blocks int32 [M, 3] to the grid, and one observation to each of their voxels that the
/// frame sees. Blocks that are given twice count once.
TH_API void integrate(VoxelBlockGrid const& grid, Tensor const& blocks, Frame const& frame,
                      DepthRange const& range);

/// LiDAR points [N, 3], the position of the sensor, and colours [N, 3] like those of an image.
struct Scan {
    Tensor points;
    std::array<double, 3> origin{};
    std::optional<Tensor> colors{};
};

/// Adds one observation to each voxel near the ray of a point, within `truncation` voxels of the
/// point: rays in row order, voxels of a ray from near to far. Adds blocks as needed. With
/// `blocks`, int32 [M, 3], voxels of other blocks do not change.
TH_API void integrate(VoxelBlockGrid const& grid, Scan const& scan, double truncation,
                      std::optional<Tensor> const& blocks = {});

/// Points on the surface, where the distance changes its sign between two neighbouring voxels.
struct SurfacePoints {
    Tensor points;   ///< float32 [N, 3]
    Tensor normals;  ///< float32 [N, 3]
    Tensor colors;   ///< float32 [N, 3] from 0 to 1; no rows if the grid has no colour
};
/// Voxels with a weight above the threshold count.
TH_API SurfacePoints extract_points(VoxelBlockGrid const& grid, double weight_threshold);

struct SurfaceMesh {
    SurfacePoints vertices;
    Tensor triangles;  ///< int32 [T, 3]
};
/// Marching cubes. Voxels with a weight above the threshold count.
TH_API SurfaceMesh extract_mesh(VoxelBlockGrid const& grid, double weight_threshold);

/// The size of a rendered view. The range of depths is computed once per square of `range_step`
/// pixels.
struct View {
    std::int64_t width = 640;
    std::int64_t height = 480;
    std::int64_t range_step = 8;
    double weight_threshold = 3.0;
};

/// A rendered image and its name.
struct Rendering {
    std::string name;
    Tensor image;  ///< [height, width, channels]
};

/// Renders "range" and the named images: "depth", "vertex", "normal", "color", "index", "mask",
/// "interp_ratio", and "interp_ratio_dx", "_dy" and "_dz". `blocks` bound the range of depths.
TH_API std::vector<Rendering> ray_cast(VoxelBlockGrid const& grid, Tensor const& blocks,
                                       Camera const& camera, View const& view,
                                       DepthRange const& range,
                                       std::vector<std::string> const& names);

/// int64 [4, N * r^3]: buffer index, x, y and z of each voxel of the blocks, x fastest.
TH_API Tensor voxel_indices(std::int64_t resolution, Tensor const& buf_indices);

/// int64 [3, N]: the coordinates of voxels that are given as by voxel_indices().
TH_API Tensor voxel_coordinates(VoxelBlockGrid const& grid, Tensor const& indices);

struct VoxelPlaces {
    Tensor points;     ///< float32 [N * r^3, 3]
    Tensor flattened;  ///< int64 [N * r^3]: rows of a value column reshaped to [-1, channels]
};
TH_API VoxelPlaces voxel_places(VoxelBlockGrid const& grid, Tensor const& buf_indices);

/// int64 [N]: the flattened indices of all voxels with a weight above the threshold; without a
/// weight column all voxels.
TH_API Tensor occupied_voxels(VoxelBlockGrid const& grid, double weight_threshold);
/// int64 [N, 3]: the coordinates of voxels, given by flattened indices of blocks in use.
TH_API Tensor voxel_coords(VoxelBlockGrid const& grid, Tensor const& flattened);

}  // namespace tensorhash::geometry
