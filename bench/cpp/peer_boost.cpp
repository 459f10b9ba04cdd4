// boost::unordered_flat_map, since Boost 1.81.
#include <boost/unordered/unordered_flat_map.hpp>

#include "peer_map.hpp"

namespace bench {
namespace {

struct Peer {
    static constexpr std::string_view name = "boost";
    static constexpr bool shared_insert = false;
    using Narrow = boost::unordered_flat_map<std::int64_t, std::int64_t>;
    template <std::size_t Bytes>
    using Wide = boost::unordered_flat_map<WideKey<Bytes>, std::int64_t, WideHash<Bytes>>;

    template <class Map>
    static bool erase(Map& map, typename Map::key_type const& key) {
        return map.erase(key) != 0;
    }
};

}  // namespace

std::unique_ptr<Contender> make_boost(Workload& work, Pool& pool) {
    return make_peer<Peer>(work, pool);
}

}  // namespace bench
