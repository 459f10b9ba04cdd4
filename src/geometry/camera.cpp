// Reads the matrices of a camera.
#include "geometry/camera.hpp"

#include "coords/api/arguments.hpp"
#include "coords/neighbours/points.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::geometry {
namespace {

coords::Points to_matrix(Tensor const& matrix, std::int64_t size, std::string const& argument) {
    if (matrix.shape() != Shape{size, size}) {
        throw ValueError(argument + ": expected shape " + to_string(Shape{size, size}) + ", got " +
                         to_string(matrix.shape()));
    }
    coords::check_points(matrix, argument);
    return coords::to_points(matrix, argument);
}

}  // namespace

Pinhole to_pinhole(Tensor const& intrinsic, std::string const& argument) {
    coords::Points const rows = to_matrix(intrinsic, 3, argument);
    if (rows.row(0)[0] == 0 || rows.row(1)[1] == 0) {
        throw ValueError(argument + ": expected focal lengths that are not 0, got " +
                         std::to_string(rows.row(0)[0]) + " and " + std::to_string(rows.row(1)[1]));
    }
    return {static_cast<float>(rows.row(0)[0]), static_cast<float>(rows.row(1)[1]),
            static_cast<float>(rows.row(0)[2]), static_cast<float>(rows.row(1)[2])};
}

Rigid to_rigid(Tensor const& extrinsic, std::string const& argument) {
    coords::Points const matrix = to_matrix(extrinsic, 4, argument);
    Rigid rigid;
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 4; ++j) rigid.rows[i][j] = static_cast<float>(matrix.row(i)[j]);
    }
    return rigid;
}

// The inverse of a rotation is its transpose.
Rigid to_inverse(Tensor const& extrinsic, std::string const& argument) {
    coords::Points const matrix = to_matrix(extrinsic, 4, argument);
    Rigid rigid;
    for (std::size_t i = 0; i < 3; ++i) {
        double shift = 0;
        for (std::size_t j = 0; j < 3; ++j) {
            rigid.rows[i][j] = static_cast<float>(matrix.row(j)[i]);
            shift += matrix.row(j)[i] * matrix.row(j)[3];
        }
        rigid.rows[i][3] = static_cast<float>(-shift);
    }
    return rigid;
}

}  // namespace tensorhash::geometry
