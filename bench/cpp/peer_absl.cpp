// absl::flat_hash_map.
#include <absl/container/flat_hash_map.h>

#include "peer_map.hpp"

namespace bench {
namespace {

struct Peer {
    static constexpr std::string_view name = "absl";
    static constexpr bool shared_insert = false;
    using Narrow = absl::flat_hash_map<std::int64_t, std::int64_t>;
    template <std::size_t Bytes>
    using Wide = absl::flat_hash_map<WideKey<Bytes>, std::int64_t, WideHash<Bytes>>;

    template <class Map>
    static bool erase(Map& map, typename Map::key_type const& key) {
        return map.erase(key) != 0;
    }
};

}  // namespace

std::unique_ptr<Contender> make_absl(Workload& work, Pool& pool) {
    return make_peer<Peer>(work, pool);
}

}  // namespace bench
