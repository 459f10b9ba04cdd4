// tbb::concurrent_unordered_map: the only peer that several threads may fill at once.
#include <oneapi/tbb/concurrent_unordered_map.h>

#include "peer_map.hpp"

namespace bench {
namespace {

struct Peer {
    static constexpr std::string_view name = "tbb";
    static constexpr bool shared_insert = true;
    using Narrow = tbb::concurrent_unordered_map<std::int64_t, std::int64_t>;
    template <std::size_t Bytes>
    using Wide = tbb::concurrent_unordered_map<WideKey<Bytes>, std::int64_t, WideHash<Bytes>>;

    template <class Map>
    static bool erase(Map& map, typename Map::key_type const& key) {
        return map.unsafe_erase(key) != 0;
    }
};

}  // namespace

std::unique_ptr<Contender> make_tbb(Workload& work, Pool& pool) {
    return make_peer<Peer>(work, pool);
}

}  // namespace bench
