// The C++ interface as a user of the installed package meets it: insert, find, and a clear error.
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "tensorhash/tensorhash.hpp"

namespace th = tensorhash;

namespace {

int failures = 0;

void expect(bool holds, std::string const& what) {
    if (holds) return;
    std::cerr << "not so: " << what << '\n';
    ++failures;
}

}  // namespace

int main() {
    th::HashMap map(th::Capacity{8}, th::Element{th::Dtype::Int32, {3}},
                    {th::Element{th::Dtype::Float32, {}}});

    auto const voxels = th::Tensor::from<std::int32_t>({0, 0, 0, 1, 2, 3, 0, 0, 0}, {3, 3});
    auto const weights = th::Tensor::from<float>({0.5f, 1.5f, 2.5f});
    auto const [indices, inserted] = map.insert(voxels, {weights});

    expect(map.size() == 2, "two distinct keys are stored");
    auto const index = indices.as<std::int32_t>();
    expect(index[0] == 0 && index[1] == 1 && index[2] == 0, "indices are right for every row");
    auto const is_new = inserted.as<bool>();
    expect(is_new[0] && is_new[1] && !is_new[2], "the first of equal rows inserts");

    auto const wanted = th::Tensor::from<std::int32_t>({1, 2, 3, 9, 9, 9}, {2, 3});
    auto const located = map.find(wanted);
    expect(located.indices.as<std::int32_t>()[0] == 1, "a stored key is found at its index");
    expect(located.indices.as<std::int32_t>()[1] == -1, "a missing key gives -1");
    expect(!located.mask.as<bool>()[1], "a missing key is not found");
    expect(map.get(wanted).at(0).as<float>()[0] == 1.5f, "get gives the value");
    map.validate();

    try {
        map.find(th::Tensor::from<std::int64_t>({1, 2, 3}, {1, 3}));
        expect(false, "keys of another dtype are refused");
    } catch (th::Error const& error) {
        expect(std::string(error.what()).find("keys") != std::string::npos,
               "the error names the argument");
    }

    if (failures == 0) std::cout << "tensorhash " TENSORHASH_VERSION " works from C++\n";
    return failures == 0 ? 0 : 1;
}
