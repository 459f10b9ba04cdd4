// C++: counts voxels and looks one up.
#include <cstdio>
#include <tensorhash/tensorhash.hpp>
using namespace tensorhash;

int main() {
    Tensor const voxels = Tensor::from(std::vector<int>{1, 2, 3, 4, 5, 6, 1, 2, 3}, {3, 3});
    Tensor const ones = Tensor::from(std::vector<std::int64_t>{1, 1, 1});
    HashMap counts(Capacity{0}, {Dtype::Int32, {3}}, {{Dtype::Int64, {}}});
    counts.accumulate(voxels, {ones}, {Reduce::Sum});
    int const first = int(counts.get(voxels)[0].as<std::int64_t>()[0]);
    std::printf("%d voxels, the first occurs %d times\n", int(counts.size()), first);
}
