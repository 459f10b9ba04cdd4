// The memory limit of this process's control group: in a container, under systemd or in a batch
// system.
#pragma once

#include <cstddef>
#include <string>

namespace tensorhash::runtime {

/// The smallest memory limit of the process's control group and of the groups above it, for cgroup
/// versions 1 and 2. The largest size_t if there is none. Reads files below `root`: "" is the
/// machine; tests use trees of their own.
std::size_t cgroup_memory_limit(std::string const& root = "");

}  // namespace tensorhash::runtime
