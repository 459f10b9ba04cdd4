// Fills a table on a GPU, then looks its keys up in a kernel of its own. From an installed package:
//   nvcc -std=c++20 -Iinclude main.cu -Llib -ltensorhash -o device_view
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "neighbours.cuh"
#include "tensorhash/hash_map.hpp"
#include "tensorhash/stream.hpp"

namespace th = tensorhash;

namespace {

void require_success(cudaError_t status, char const* what) {
    if (status != cudaSuccess) {
        throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
    }
}

/// Counts the neighbours of `count` voxels in a row, on the device.
std::int64_t count_neighbours(std::int32_t count, th::Device gpu) {
    std::vector<Voxel> voxels;
    for (std::int32_t x = 0; x < count; ++x) voxels.push_back({x, 0, 0});
    th::Tensor const keys = th::Tensor::borrow(voxels.data(), {count, 3}, th::Dtype::Int32).to(gpu);
    std::vector<float> const weights(voxels.size(), 0.5f);

    th::HashMap table(th::Capacity{count}, {th::Dtype::Int32, {3}}, {{th::Dtype::Float32, {}}},
                      gpu);
    // An array on the CPU is copied to the table's device.
    table.insert(keys, {th::Tensor::borrow(weights.data(), {count}, th::Dtype::Float32)});

    th::Tensor counts = th::Tensor::zeros({count}, th::Dtype::Int32, gpu);
    th::Tensor sums = th::Tensor::zeros({count}, th::Dtype::Float32, gpu);
    Neighbours const work{table.view<Voxel>(),
                          static_cast<float const*>(table.value_tensor().data()),
                          static_cast<Voxel const*>(keys.data()),
                          static_cast<std::int32_t*>(counts.data()),
                          static_cast<float*>(sums.data()),
                          static_cast<std::uint32_t>(count)};
    // The stream of the calls above: the kernel runs after them, and before those below.
    auto const stream = reinterpret_cast<cudaStream_t>(th::current_stream(gpu).handle);
    require_success(cudaSetDevice(gpu.id), "cudaSetDevice");
    sum_neighbours<<<(work.rows + 255) / 256, 256, 0, stream>>>(work);
    require_success(cudaGetLastError(), "sum_neighbours");

    std::int64_t total = 0;
    th::Tensor const on_host = counts.to(th::Device{});
    for (std::int32_t const neighbours : on_host.as<std::int32_t>()) total += neighbours;
    return total;
}

}  // namespace

int main() try {
    std::int32_t const count = 1000;
    std::int64_t const total = count_neighbours(count, th::Device::parse("cuda:0"));
    std::printf("%d voxels have %lld neighbours\n", count, static_cast<long long>(total));
    return total == 2 * (count - 1) ? 0 : 1;
} catch (std::exception const& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
