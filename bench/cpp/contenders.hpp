// Who takes part. Peers that were not there when this was compiled are null.
#pragma once

#include <memory>

#include "pool.hpp"
#include "workload.hpp"

namespace bench {

std::unique_ptr<Contender> make_ours(Workload& work, int threads);
/// `lines_per_key` 1 is called gather, 2 gather2.
std::unique_ptr<Contender> make_gather(Workload& work, int threads, int lines_per_key);

std::unique_ptr<Contender> make_absl(Workload& work, Pool& pool);
std::unique_ptr<Contender> make_boost(Workload& work, Pool& pool);
std::unique_ptr<Contender> make_std(Workload& work, Pool& pool);
std::unique_ptr<Contender> make_tbb(Workload& work, Pool& pool);

}  // namespace bench
