// Converts images of any dtype.
#include "geometry/images.hpp"

#include <cmath>
#include <type_traits>

#include "runtime/parallel.hpp"
#include "tensor/numbers.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::geometry {
namespace {

void check_positive(double value, char const* argument, bool or_zero = false) {
    if (std::isfinite(value) && (value > 0 || (or_zero && value == 0))) return;
    throw ValueError(std::string(argument) + ": expected a positive number, got " +
                     std::to_string(value));
}

void check_numbers(Tensor const& image, std::string const& argument) {
    if (image.dtype() == Dtype::Bool) {
        throw TypeError(argument + ": expected integers or floats, got bool");
    }
}

/// Calls body(i, value, is_float) for each element.
template <class Body>
void for_elements(Tensor const& image, std::string const& argument, Body&& body) {
    visit_number(image.dtype(), argument, [&](auto type) {
        using Type = decltype(type);
        auto const* const data = static_cast<typename Type::Stored const*>(image.data());
        auto const size = static_cast<std::size_t>(image.size());
        runtime::for_ranges(size, 1 << 15, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                auto const value = Type::load(data[i]);
                body(i, static_cast<float>(value), std::is_floating_point_v<decltype(value)>);
            }
        });
    });
}

}  // namespace

void check_range(DepthRange const& range) {
    check_positive(range.scale, "depth_scale");
    check_positive(range.max, "depth_max");
    check_positive(range.truncation, "trunc_voxel_multiplier");
    check_positive(range.min, "depth_min", true);
}

Image to_depth(Tensor const& depth, double scale) {
    bool const flat = depth.rank() == 2 || (depth.rank() == 3 && depth.shape()[2] == 1);
    if (!flat) {
        throw ValueError("depth: expected shape (H, W) or (H, W, 1), got " +
                         to_string(depth.shape()));
    }
    check_numbers(depth, "depth");
    Image image{
        static_cast<std::size_t>(depth.shape()[0]), static_cast<std::size_t>(depth.shape()[1]), {}};
    image.numbers.resize(image.height * image.width);
    float const divisor = static_cast<float>(scale);
    for_elements(depth.contiguous(), "depth", [&](std::size_t i, float value, bool) {
        float const metres = value / divisor;
        image.numbers[i] = metres > 0 && metres < HUGE_VALF ? metres : 0.0f;
    });
    return image;
}

std::vector<float> to_colors(Tensor const& colors, std::string const& argument) {
    check_numbers(colors, argument);
    std::vector<float> out(static_cast<std::size_t>(colors.size()));
    for_elements(colors.contiguous(), argument, [&](std::size_t i, float value, bool is_float) {
        out[i] = is_float ? value * 255.0f : value;
    });
    return out;
}

Image to_color_image(Tensor const& color) {
    if (color.rank() != 3 || color.shape()[2] != 3) {
        throw ValueError("color: expected shape (H, W, 3), got " + to_string(color.shape()));
    }
    return {static_cast<std::size_t>(color.shape()[0]), static_cast<std::size_t>(color.shape()[1]),
            to_colors(color, "color")};
}

}  // namespace tensorhash::geometry
