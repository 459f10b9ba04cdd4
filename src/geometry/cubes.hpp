// The table of marching cubes: for each of the 256 ways in which the corners of a cube can be
// negative, the triangles that separate them from the others.
//
// The table is computed from the cube's geometry. Corner i has the coordinates (i & 1, i >> 1 & 1,
// i >> 2 & 1). Edge 4 * axis + k runs along `axis`, from the k-th corner that has 0 on that axis.
// On each face, a walk around the corners enters and leaves runs of negative corners; each run is
// cut off by a segment from the edge where the walk enters to the edge where it leaves. So two
// negative corners across a face are always cut off one by one, and the two cubes of a face agree.
// An edge is entered on one of its two faces and left on the other, so the segments form loops.
// Each loop is cut into a fan of triangles, if possible without a diagonal inside a face.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tensorhash::geometry {

inline constexpr std::size_t kCubeEdges = 12;
inline constexpr std::size_t kMostTriangles = 8;

struct CubeEdge {
    std::uint8_t axis;
    std::uint8_t first;   // its corner with 0 on the axis
    std::uint8_t second;  // the other corner

    constexpr int offset(std::size_t of_axis) const noexcept { return first >> of_axis & 1; }
};

constexpr std::array<CubeEdge, kCubeEdges> cube_edges() noexcept {
    std::array<CubeEdge, kCubeEdges> edges{};
    std::size_t edge = 0;
    for (std::uint8_t axis = 0; axis < 3; ++axis) {
        for (std::uint8_t corner = 0; corner < 8; ++corner) {
            if (corner >> axis & 1) continue;
            edges[edge++] = {axis, corner, static_cast<std::uint8_t>(corner | 1 << axis)};
        }
    }
    return edges;
}
inline constexpr auto kEdges = cube_edges();

/// The edge between two corners.
constexpr std::size_t edge_between(int a, int b) noexcept {
    std::size_t edge = 0;
    while (!((kEdges[edge].first == a && kEdges[edge].second == b) ||
             (kEdges[edge].first == b && kEdges[edge].second == a))) {
        ++edge;
    }
    return edge;
}

/// Whether two edges lie on one face.
constexpr bool on_one_face(std::size_t a, std::size_t b) noexcept {
    for (std::size_t axis = 0; axis < 3; ++axis) {
        if (kEdges[a].axis == axis || kEdges[b].axis == axis) continue;
        if (kEdges[a].offset(axis) == kEdges[b].offset(axis)) return true;
    }
    return false;
}

/// The corners of a face, counterclockwise for an observer outside of the cube.
constexpr std::array<int, 4> face_corners(int axis, int side) noexcept {
    int const b = 1 << (axis + 1) % 3;
    int const c = 1 << (axis + 2) % 3;
    int const base = side << axis;
    if (side == 1) return {base, base | b, base | b | c, base | c};
    return {base, base | c, base | b | c, base | b};
}

struct CubeCase {
    std::uint16_t edges = 0;  // one bit per edge with a vertex
    std::uint8_t triangles = 0;
    std::array<std::array<std::uint8_t, 3>, kMostTriangles> corners{};  // edges of each triangle
};

/// The next vertex of the loop after each edge; kCubeEdges where the edge has no vertex.
constexpr std::array<std::size_t, kCubeEdges> loop_steps(int negative) noexcept {
    std::array<std::size_t, kCubeEdges> next{};
    next.fill(kCubeEdges);
    auto const is_negative = [&](int corner) { return (negative >> corner & 1) != 0; };
    for (int face = 0; face < 6; ++face) {
        auto const corners = face_corners(face / 2, face % 2);
        for (std::size_t i = 0; i < 4; ++i) {
            std::size_t at = (i + 1) % 4;
            if (is_negative(corners[i]) || !is_negative(corners[at])) continue;
            std::size_t const entered = edge_between(corners[i], corners[at]);
            while (is_negative(corners[(at + 1) % 4])) at = (at + 1) % 4;
            next[entered] = edge_between(corners[at], corners[(at + 1) % 4]);
        }
    }
    return next;
}

struct Loop {
    std::array<std::size_t, kCubeEdges> edges{};
    std::size_t size = 0;

    /// The diagonals of the fan around vertex `apex` that lie inside a face of the cube.
    constexpr std::size_t flat_diagonals(std::size_t apex) const noexcept {
        std::size_t flat = 0;
        for (std::size_t i = 2; i + 1 < size; ++i) {
            flat += on_one_face(edges[apex], edges[(apex + i) % size]);
        }
        return flat;
    }
    constexpr std::size_t best_apex() const noexcept {
        std::size_t best = 0;
        for (std::size_t apex = 1; apex < size; ++apex) {
            if (flat_diagonals(apex) < flat_diagonals(best)) best = apex;
        }
        return best;
    }
};

constexpr void add_fan(CubeCase& out, Loop const& loop) noexcept {
    std::size_t const apex = loop.best_apex();
    auto const edge = [&](std::size_t i) {
        return static_cast<std::uint8_t>(loop.edges[(apex + i) % loop.size]);
    };
    for (std::size_t i = 1; i + 1 < loop.size; ++i) {
        out.corners[out.triangles++] = {edge(0), edge(i), edge(i + 1)};
    }
}

constexpr CubeCase cube_case(int negative) noexcept {
    CubeCase out;
    auto next = loop_steps(negative);
    for (std::size_t first = 0; first < kCubeEdges; ++first) {
        Loop loop;
        for (std::size_t edge = first; next[edge] != kCubeEdges;) {
            loop.edges[loop.size++] = edge;
            out.edges = static_cast<std::uint16_t>(out.edges | 1 << edge);
            std::size_t const after = next[edge];
            next[edge] = kCubeEdges;  // visited
            edge = after;
        }
        if (loop.size > 0) add_fan(out, loop);
    }
    return out;
}

constexpr std::array<CubeCase, 256> cube_cases() noexcept {
    std::array<CubeCase, 256> cases{};
    for (int negative = 0; negative < 256; ++negative) {
        cases[static_cast<std::size_t>(negative)] = cube_case(negative);
    }
    return cases;
}
inline constexpr auto kCubeCases = cube_cases();

}  // namespace tensorhash::geometry
