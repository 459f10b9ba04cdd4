// Back ends register when they load; the loader finds them by device, and tables know their device.
#include "backend/loader.hpp"

#include "backend/table_backend.hpp"
#include "support/emulated.hpp"
#include "support/fixtures.hpp"
#include "tensorhash/bounded_map.hpp"
#include "tensorhash/coords/packed_hash_table.hpp"
#include "tensorhash/sharded/multi_device_hash_table.hpp"

namespace th_test {
namespace {

namespace backend = tensorhash::backend;
using tensorhash::Device;

// Made before main(), and by the order of the link before most global variables of the library.
HashMap const made_before_main(Capacity{8}, {Dtype::Int64, {}}, {});
Tensor const filled_before_main = Tensor::zeros({3}, Dtype::Int32);

TEST(Loader, has_the_cpu_before_global_variables_are_made) {
    EXPECT_EQ(made_before_main.capacity(), 8);
    EXPECT_EQ(filled_before_main.as<std::int32_t>()[2], 0);
}

TEST(Loader, gives_every_cpu_device_the_same_back_end) {
    auto& first = backend::backend_for({Device::Type::Cpu, 0}, "device");
    EXPECT_EQ(&first, &backend::backend_for({Device::Type::Cpu, 3}, "device"));
    EXPECT_EQ(&first, tensorhash::find_allocator(Device::Type::Cpu));
}

TEST(Loader, names_the_argument_if_a_device_has_no_back_end) {
    EXPECT_EQ(message_of<tensorhash::DeviceError>(
                  [] { backend::backend_for({Device::Type::Cuda, 1}, "devices"); }),
              "devices: CUDA needs the package tensorhash-cu13, which is not installed, got "
              "\"cuda:1\"; install it or "
              "use \"cpu\"");
    EXPECT_EQ(device_status(Device::Type::Cuda),
              "CUDA needs the package tensorhash-cu13, which is not installed");
    EXPECT_EQ(device_count(Device::Type::Cuda), 0);
}

TEST(Loader, names_the_devices_that_are_there) {
    EXPECT_EQ(message_of<tensorhash::DeviceError>(
                  [] { tensorhash::require_usable({Device::Type::Cpu, 1}, "device"); }),
              "device: expected \"cpu:0\", got \"cpu:1\": there is no such device");
    EXPECT_EQ(
        message_of<tensorhash::DeviceError>([] { tensorhash::require_usable(emu(2), "device"); }),
        "device: expected \"emu:0\" to \"emu:1\", got \"emu:2\": there is no such device");
    EXPECT_EQ(device_status(Device::Type::Emulated), "\"emu:0\" to \"emu:1\"");
}

TEST(Loader, parses_the_devices_of_a_loaded_plugin) {
    EXPECT_EQ(Device::parse("emu:1"), emu(1));
    EXPECT_EQ(to_string(emu(1)), "emu:1");
    EXPECT_THROW((void)Device::parse("emulated:0"), tensorhash::ValueError);
}

TEST(Loader, what_a_device_does_not_have_is_refused) {
    EXPECT_EQ(message_of<tensorhash::DeviceError>([] {
                  tensorhash::BoundedHashMap(Capacity{1}, {Dtype::Int64, {}}, {},
                                             tensorhash::Eviction::Lru, emu(0));
              }),
              "device: bounded tables are on the CPU only, got \"emu:0\"; use \"cpu\", and copy a "
              "table there with .cpu()");
    EXPECT_EQ(message_of<tensorhash::DeviceError>([] {
                  tensorhash::ShardedHashMap(tensorhash::Bound{Capacity{1}}, {Dtype::Int64, {}}, {},
                                             {emu(0)});
              }),
              "devices: bounded tables are on the CPU only, got \"emu:0\"; use \"cpu\", and copy a "
              "table there with .cpu()");
}

/// The CPU's back end under the name of another device, until the end of the scope.
struct AsCuda {
    AsCuda() {
        backend::register_backend(Device::Type::Cuda, &backend::backend_for(Device{}, "device"));
    }
    ~AsCuda() { backend::register_backend(Device::Type::Cuda, nullptr); }
};

TEST(Loader, an_integer_id_is_a_gpu_if_there_is_one) {
    int const ids[] = {0};
    using Table = tensorhash::MultiGpuHashTable<std::int64_t, float>;
    EXPECT_EQ(Table(4, ids, 1).map().devices()[0], (Device{Device::Type::Cpu, 0}));
    AsCuda const pretended;
    EXPECT_EQ(Table(4, ids, 1).map().devices()[0], (Device{Device::Type::Cuda, 0}));
}

TEST(Loader, a_registered_back_end_serves_its_devices_until_it_is_removed) {
    Device const device{Device::Type::Cuda, 0};
    {
        AsCuda const loaded;
        EXPECT_EQ(&backend::backend_for(device, "device"),
                  &backend::backend_for(Device{}, "device"));
        EXPECT_EQ(Tensor::zeros({2}, Dtype::Int8, device).device(), device);
    }
    EXPECT_THROW(backend::backend_for(device, "device"), tensorhash::DeviceError);
    EXPECT_THROW(Tensor::zeros({2}, Dtype::Int8, device), tensorhash::DeviceError);
}

TEST(Loader, tables_name_the_device_that_they_were_made_on) {
    AsCuda const loaded;
    Device const device{Device::Type::Cuda, 0};
    HashMap const map(Capacity{0}, {Dtype::Int64, {}}, {}, device);
    EXPECT_EQ(map.device(), device);
    EXPECT_EQ(map.clone().device(), device);
    EXPECT_EQ(tensorhash::HashSet(Capacity{0}, {Dtype::Int64, {}}, device).device(), device);
    EXPECT_EQ(tensorhash::coords::CoordTable({}, device).device(), device);
    EXPECT_EQ(tensorhash::BoundedHashMap(Capacity{1}, {Dtype::Int64, {}}, {}).device(), Device{});
}

TEST(Loader, copies_of_a_table_stay_on_its_device) {
    Device const device{Device::Type::Cpu, 3};
    Element const key{Dtype::Int64, {}};
    std::vector<Element> const none;
    auto const table = backend::backend_for(device, "device").make_table({key, none, 4}, device);
    EXPECT_EQ(table->device(), device);
    EXPECT_EQ(table->clone()->device(), device);
    EXPECT_EQ(table->make_empty()->device(), device);
}

}  // namespace
}  // namespace th_test
