// Who takes part. Peers that were not there when this was compiled are null.
#pragma once

#include <memory>

#include "pool.hpp"
#include "workload.hpp"

namespace bench {

std::unique_ptr<Contender> make_ours(Workload& work, int threads);
/// What memory alone allows: one line a key, two (for wide keys that are there), or one that is
/// written, as by an insert.
enum class Limit { Gather, Gather2, Scatter };
std::unique_ptr<Contender> make_gather(Workload& work, int threads, Limit limit);

std::unique_ptr<Contender> make_absl(Workload& work, Pool& pool);
std::unique_ptr<Contender> make_boost(Workload& work, Pool& pool);
std::unique_ptr<Contender> make_std(Workload& work, Pool& pool);
std::unique_ptr<Contender> make_tbb(Workload& work, Pool& pool);

}  // namespace bench
