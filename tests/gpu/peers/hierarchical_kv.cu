// HierarchicalKV with all values in the GPU's memory, three quarters full.
#include "merlin_hashtable.cuh"

#include <memory>

#include "gpu/peers/peer.cuh"

namespace {

using Map = nv::merlin::HashTable<std::int64_t, std::int64_t, std::uint64_t,
                                  nv::merlin::EvictStrategy::kLru>;

struct Table {
    cudaStream_t stream;
    std::unique_ptr<Map> map;
    thrust::device_vector<std::int64_t> values;
    thrust::device_vector<bool> found;

    void clear() { map->clear(stream); }
    void insert(std::int64_t const* keys, std::uint64_t rows) {
        map->insert_or_assign(rows, keys, keys, nullptr, stream);
    }
    void find(std::int64_t const* keys, std::uint64_t rows) {
        map->find(rows, keys, thrust::raw_pointer_cast(values.data()),
                  thrust::raw_pointer_cast(found.data()), nullptr, stream);
    }
};

}  // namespace

int main(int argc, char** argv) {
    th_gpu::PeerClock clock;
    auto const make = [&](std::uint64_t rows) {
        std::uint64_t capacity = 1024;
        while (capacity * 3 / 4 < rows) capacity *= 2;
        nv::merlin::HashTableOptions options;
        options.init_capacity = capacity;
        options.max_capacity = capacity;
        options.max_hbm_for_vectors = capacity * sizeof(std::int64_t);
        options.dim = 1;
        auto map = std::make_unique<Map>();
        map->init(options);
        return Table{clock.stream, std::move(map), thrust::device_vector<std::int64_t>(rows),
                     thrust::device_vector<bool>(rows)};
    };
    th_gpu::measure_peer(clock, "HierarchicalKV", argc, argv, make);
}
