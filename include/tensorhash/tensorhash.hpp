// Everything a C++ user needs: one include.
#pragma once

#include "tensorhash/bounded_map.hpp"
#include "tensorhash/coords/neighbours.hpp"
#include "tensorhash/coords/ops.hpp"
#include "tensorhash/coords/voxels.hpp"
#include "tensorhash/device.hpp"
#include "tensorhash/dtype.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/hash_map.hpp"
#include "tensorhash/optimizer.hpp"
#include "tensorhash/sharded/multi_device_hash_table.hpp"
#include "tensorhash/sharded/sharded_map.hpp"
#include "tensorhash/tensor.hpp"
#include "tensorhash/threads.hpp"
#include "tensorhash/version.hpp"
