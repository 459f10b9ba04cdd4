// The contenders. A peer that was not installed at compile time is not defined.
#pragma once

#include <memory>

#include "pool.hpp"
#include "workload.hpp"

namespace bench {

std::unique_ptr<Contender> make_ours(Workload& work, int threads);
/// The memory limits: one cache line per key, two (for wide keys that are found), or one that is
/// written as by an insert.
enum class Limit { Gather, Gather2, Scatter };
std::unique_ptr<Contender> make_gather(Workload& work, int threads, Limit limit);

std::unique_ptr<Contender> make_absl(Workload& work, Pool& pool);
std::unique_ptr<Contender> make_boost(Workload& work, Pool& pool);
std::unique_ptr<Contender> make_std(Workload& work, Pool& pool);
std::unique_ptr<Contender> make_tbb(Workload& work, Pool& pool);

}  // namespace bench
