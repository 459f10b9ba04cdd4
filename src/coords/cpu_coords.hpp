// The CPU implementation of backend::CoordsBackend.
#pragma once

#include <memory>

#include "backend/coords_backend.hpp"

namespace tensorhash::coords {

std::unique_ptr<backend::CoordsBackend> make_cpu_coords();

}  // namespace tensorhash::coords
