"""Planted bugs in the bodies of voxels, neighbours, vectors and elements (on interpreted PTX)."""

from __future__ import annotations

from device import body, host

ELEMENTS = "src/device/elements.hpp"
NEIGHBOURS = "src/device/neighbours.hpp"
PICKS = "src/device/picks.hpp"
POINTS = "src/device/points.hpp"
VALUES = "src/device/values.hpp"
VECTORS = "src/device/vectors.hpp"
VOXELS = "src/device/voxels.hpp"

COORD_MUTANTS = [
    body(
        "infinite points are not noticed",
        "DeviceVoxels*",
        POINTS,
        "if (is_nan || is_infinite || is_inexact) {",
        "if (is_nan || is_inexact) {",
    ),
    body(
        "batches of uint64 wrap",
        "DeviceVoxels*:DeviceRadius*",
        POINTS,
        "if (dtype == Dtype::UInt64 && to[row] < 0 && row < first) {",
        "if (false) {",
    ),
    body(
        "voxels round towards zero",
        "DeviceVoxels*",
        POINTS,
        "double const voxel = round_down((points[at] - origin[axis]) / size[axis]);",
        "double const voxel = (points[at] - origin[axis]) / size[axis];",
    ),
    body(
        "any coordinate outside is named as the first",
        "DeviceVoxels*",
        POINTS,
        "first = !fits && at < first ? at : first;",
        "first = !fits ? at : first;",
    ),
    body(
        "a voxel number that is too large is not reported",
        "DeviceVoxels*",
        VOXELS,
        "} else { first = row < first ? row : first; }",
        "}",
    ),
    body(
        "empty voxels are not reported",
        "DeviceVoxels*",
        VOXELS,
        "first = starts[voxel] == starts[voxel + 1] && voxel < first ? voxel : first;",
        "",
    ),
    body(
        "a mean is the sum over the count",
        "DeviceVoxels*",
        VOXELS,
        "if (mean - mean == 0) {",
        "if (false) {",
    ),
    body(
        "sums of integers lose their carry",
        "DeviceVoxels*",
        "src/device/wide_sum.hpp",
        "high += sign + (low < bits ? 1 : 0);",
        "high += sign;",
    ),
    body(
        "every channel of a voxel is its first one",
        "DeviceVoxels*",
        VOXELS,
        "write(i, {values + i % width, width, grouped.order + begin, size});",
        "write(i, {values, width, grouped.order + begin, size});",
    ),
    body(
        "the last row of a voxel is its second",
        "DeviceVoxels*",
        VOXELS,
        "grouped.order[last ? end - 1 : begin];",
        "grouped.order[last && begin + 1 < end ? begin + 1 : begin];",
    ),
    body(
        "a voxel has its centre at its lower end",
        "DeviceVoxels*",
        PICKS,
        "(voxel + 0.5) * size[axis] + origin[axis];",
        "voxel * size[axis] + origin[axis];",
    ),
    body(
        "the last of equally near rows is picked",
        "DeviceVoxels*",
        PICKS,
        "if (found < 0 || squared < best) {",
        "if (found < 0 || squared <= best) {",
    ),
    body(
        "labels are sorted by their lower half",
        "DeviceVoxels*",
        PICKS,
        "static_cast<std::uint32_t>(bits >> shift);",
        "static_cast<std::uint32_t>(bits);",
    ),
    body(
        "the last of equally frequent labels wins",
        "DeviceVoxels*",
        PICKS,
        "(votes == most && votes != 0 && row < found)",
        "(votes == most && votes != 0 && row > found)",
    ),
    body(
        "queries of a batch without points find batch 0",
        "DeviceRadius*",
        NEIGHBOURS,
        "cells[i] = batch != nullptr ? static_cast<std::int32_t>(batch[row]) : 0;",
        "cells[i] = batch != nullptr && batch[row] < 100"
        " ? static_cast<std::int32_t>(batch[row]) : 0;",
    ),
    host(
        "queries keep their own scale",
        "DeviceRadius*",
        "src/device/radius.hpp",
        "for (ReadCloud<Queue> const* const cloud : {&points_, &queries_}) {",
        "for (ReadCloud<Queue> const* const cloud : {&points_}) {",
    ),
    body(
        "points are scaled the other way",
        "DeviceRadius*",
        NEIGHBOURS,
        "numbers[i] *= scale;",
        "numbers[i] /= scale;",
    ),
    body(
        "neighbours come in the order of a heap",
        "DeviceRadius*",
        NEIGHBOURS,
        "heap.sort();",
        "",
    ),
    body(
        "only the query's own column of cells is searched",
        "DeviceRadius*",
        NEIGHBOURS,
        "around *= axis < axes ? 3 : 1;",
        "around *= axis < axes && axis < 2 ? 3 : 1;",
    ),
    body(
        "points on the radius are left out",
        "DeviceRadius*",
        NEIGHBOURS,
        "square_root(squared) <= radius) {",
        "square_root(squared) < radius) {",
    ),
    body(
        "more neighbours are counted than wanted",
        "DeviceRadius*",
        NEIGHBOURS,
        "counts[query] = count < most ? count : most;",
        "counts[query] = count;",
    ),
    body(
        "neighbours at one distance come in any order",
        "DeviceRadius*",
        NEIGHBOURS,
        "(squared == squares[other] && row < rows[other]);",
        "(squared == squares[other] && row > rows[other]);",
    ),
    body(
        "the claims of vectors are not counted",
        "DeviceVectors*",
        VECTORS,
        "claims.add_to(state);",
        "",
    ),
    body(
        "a full table keeps the vectors of a failed batch",
        "DeviceVectors*",
        VECTORS,
        "table.slots[at] = step::kEmptyVectorSlot;",
        "",
    ),
    body(
        "vectors outside int32 are cut",
        "DeviceVectors*",
        VECTORS,
        "bool const fits = outside == nullptr || outside[row] == 0;",
        "bool const fits = true;",
    ),
    body(
        "unsigned numbers are converted as signed ones",
        "DeviceElements*",
        ELEMENTS,
        "with_number(from, from_dtype, i, [&](auto one) { number = AnyNumber::of(one); });",
        "with_number(from, from_dtype, i, [&](auto one) { number = AnyNumber::of(one);"
        " if (number.kind == AnyNumber::Kind::Unsigned) {"
        " number.kind = AnyNumber::Kind::Signed; } });",
    ),
    body(
        "row numbers do not count from the end",
        "DeviceElements*",
        ELEMENTS,
        "std::int64_t const number = given < 0 ? given + rows : given;",
        "std::int64_t const number = given < 0 ? given + rows - 1 : given;",
    ),
    body(
        "any row that does not exist is named",
        "DeviceElements*",
        ELEMENTS,
        "first = !exists && i < first ? i : first;",
        "first = !exists ? i : first;",
    ),
    body(
        "the last row is out of range",
        "DeviceElements*",
        ELEMENTS,
        "bool const exists = number >= 0 && number < rows;",
        "bool const exists = number >= 0 && number < rows - 1;",
    ),
    body(
        "elements are never written to strides",
        "DeviceElements*",
        VALUES,
        "to + (into_strides ? offset : dense)",
        "to + dense",
    ),
]
