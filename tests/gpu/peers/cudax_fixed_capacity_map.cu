// The fixed_capacity_map of CCCL's cudax, half full, with one thread per key.
#include <cuda/functional>
#include <cuda/iterator>
#include <cuda/memory_pool>
#include <cuda/std/functional>
#include <cuda/std/span>
#include <cuda/stream>

#include <cuda/experimental/__cuco/fixed_capacity_map.cuh>

#include <memory>

#include "gpu/peers/peer.cuh"

namespace {

namespace cuco = cuda::experimental::cuco;

using Map = cuco::fixed_capacity_map<std::int64_t, std::int64_t, cuda::std::dynamic_extent,
                                     cuda::thread_scope_device, cuda::std::equal_to<std::int64_t>,
                                     cuco::linear_probing<1, cuda::hash<std::int64_t>>, 1>;

struct ToPair {
    std::int64_t const* keys;
    __host__ __device__ Map::value_type operator()(std::uint64_t i) const {
        return Map::value_type{keys[i], keys[i]};
    }
};

struct Table {
    cuda::stream_ref stream;
    std::unique_ptr<Map> map;
    thrust::device_vector<std::int64_t> found;

    void clear() { map->clear(stream); }
    void insert(std::int64_t const* keys, std::uint64_t rows) {
        auto const pairs =
            cuda::transform_iterator(cuda::counting_iterator<std::uint64_t>{0}, ToPair{keys});
        map->insert_async(stream, pairs, pairs + rows);
    }
    void find(std::int64_t const* keys, std::uint64_t rows) {
        map->find_async(stream, keys, keys + rows, thrust::raw_pointer_cast(found.data()));
    }
};

}  // namespace

int main(int argc, char** argv) {
    th_gpu::PeerClock clock;
    cuda::stream_ref const stream{clock.stream};
    auto const make = [&](std::uint64_t rows) {
        auto pool = cuda::device_default_memory_pool(cuda::device_ref{0});
        return Table{stream,
                     std::make_unique<Map>(stream, pool, static_cast<cuda::std::size_t>(2 * rows),
                                           cuco::empty_key{std::int64_t{-1}},
                                           cuco::empty_value{std::int64_t{-1}}),
                     thrust::device_vector<std::int64_t>(rows)};
    };
    th_gpu::measure_peer(clock, "cudax fixed_capacity_map", argc, argv, make);
}
