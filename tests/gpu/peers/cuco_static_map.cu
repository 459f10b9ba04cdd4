// cuCollections' static_map, half full, with its default probing.
#include <cuco/static_map.cuh>

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cuda/functional>

#include "gpu/peers/peer.cuh"

namespace {

struct Table {
    using Map = decltype(cuco::static_map{std::size_t{1}, cuco::empty_key<std::int64_t>{-1},
                                          cuco::empty_value<std::int64_t>{-1}});
    cudaStream_t stream;
    Map map;
    thrust::device_vector<std::int64_t> found;

    void clear() { map.clear_async({stream}); }
    void insert(std::int64_t const* keys, std::uint64_t rows) {
        auto const pair_of = cuda::proclaim_return_type<cuco::pair<std::int64_t, std::int64_t>>(
            [keys] __device__(std::uint64_t i) {
                return cuco::pair<std::int64_t, std::int64_t>{keys[i], keys[i]};
            });
        auto const pairs =
            thrust::make_transform_iterator(thrust::counting_iterator<std::uint64_t>(0), pair_of);
        map.insert_async(pairs, pairs + rows, {stream});
    }
    void find(std::int64_t const* keys, std::uint64_t rows) {
        map.find_async(keys, keys + rows, found.begin(), {stream});
    }
};

}  // namespace

int main(int argc, char** argv) {
    th_gpu::PeerClock clock;
    auto const make = [&](std::uint64_t rows) {
        return Table{clock.stream,
                     Table::Map{2 * rows, cuco::empty_key<std::int64_t>{-1},
                                cuco::empty_value<std::int64_t>{-1}},
                     thrust::device_vector<std::int64_t>(rows)};
    };
    th_gpu::measure_peer(clock, "cuCollections static_map", argc, argv, make);
}
