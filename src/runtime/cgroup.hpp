// How much memory the control group of this process allows: in a container, under systemd, in a
// batch system.
#pragma once

#include <cstddef>
#include <string>

namespace tensorhash::runtime {

/// The smallest memory limit of the process's control group and of the groups above it, versions 1
/// and 2 of cgroups; the largest size_t if there is none. Files are read below `root`: "" is the
/// machine, tests have trees of their own.
std::size_t cgroup_memory_limit(std::string const& root = "");

}  // namespace tensorhash::runtime
