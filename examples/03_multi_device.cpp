// Shows the methods of MultiGpuHashTable: one table over several devices, here CPU devices, called
// from one thread. main() has over 50 lines: it shows the calls in the order of a program.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tensorhash/sharded/multi_device_hash_table.hpp"

namespace nv = tensorhash;

namespace {

using key_type = std::int64_t;
using val_type = float;

void expect(bool holds, char const* what) {
    if (!holds) {
        std::fprintf(stderr, "expected: %s\n", what);
        std::exit(1);
    }
}

/// A user-defined gradient step.
struct Descent {
    float rate;
    void update(val_type& value, val_type gradient) const { value -= rate * gradient; }
};

}  // namespace

int main() {
    std::size_t const len = 100000;
    double const load_factor = 0.75;
    int const num_gpu = 4;
    int const gpu_id[num_gpu] = {0, 1, 2, 3};

    using Table_ = nv::MultiGpuHashTable<key_type, val_type, nv::ModPolicy<key_type>>;
    auto const capacity =
        static_cast<std::size_t>(num_gpu * static_cast<double>(len) / load_factor);
    auto table = std::make_unique<Table_>(capacity, gpu_id, num_gpu);
    auto resource = table->stream_event_resource_create(gpu_id[0]);

    std::vector<key_type> keys(len);
    std::vector<val_type> vals(len);
    for (std::size_t i = 0; i < len; ++i) {
        keys[i] = static_cast<key_type>(i) * 7 - 350000;  // half of the keys are negative
        vals[i] = static_cast<val_type>(i);
    }
    table->insert(keys.data(), vals.data(), len, resource);
    expect(table->get_size() == len, "every key is stored");

    std::vector<val_type> got(len);
    std::vector<char> status(len);
    auto* const there = reinterpret_cast<bool*>(status.data());
    table->get(keys.data(), got.data(), there, len, resource);
    expect(got == vals, "get returns the values in the order of the keys");

    for (val_type& val : vals) val += 1;
    table->set(keys.data(), vals.data(), len, resource);
    Descent descent{0.5f};
    std::vector<val_type> const gradients(len, 2.0f);
    table->update(keys.data(), gradients.data(), len, descent, resource);
    table->get(keys.data(), got.data(), there, len, resource);
    expect(got[0] == 0.0f && got[len - 1] == static_cast<val_type>(len - 1), "set, then update");
    // The library's SGD. One float per key leaves no room for an optimizer's state.
    table->update(keys.data(), gradients.data(), len, nv::Sgd{.lr = 0.5}, resource, there);
    table->get(keys.data(), got.data(), there, len, resource);
    expect(got[0] == -1.0f && there[0], "a step of SGD");

    table->remove(keys.data(), len / 2, resource);
    table->get(keys.data(), got.data(), there, len, resource);
    expect(!there[0] && there[len - 1], "remove removes keys");

    // Dump the shard of one device, clear the table, insert the dump again.
    std::size_t const part = table->get_size(gpu_id[1]);
    std::vector<key_type> part_keys(part);
    std::vector<val_type> part_vals(part);
    table->dump_to_cpu(gpu_id[1], part_keys.data(), part_vals.data(), part, 1024);
    table->clear(resource);
    expect(table->get_size() == 0, "clear leaves nothing");
    table->insert_from_cpu(gpu_id[1], part_keys.data(), part_vals.data(), part, 1024);
    expect(table->get_size(gpu_id[1]) == part && table->get_size() == part, "the dump is back");

    table->stream_event_resource_destroy(resource);
    std::printf("%zu keys on %d devices, %zu of them on cpu:%d\n", len, num_gpu, part, gpu_id[1]);
    return 0;
}
