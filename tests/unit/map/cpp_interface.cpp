// The C++ interface for users: wrong code does not compile, errors give C++ advice, listings copy
// only what was requested.
#include <complex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/address_space.hpp"
#include "support/fixtures.hpp"
#include "tensorhash/bounded_map.hpp"
#include "tensorhash/coords/kernel_map.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/memory.hpp"
#include "tensorhash/sharded/sharded_map.hpp"

namespace th_test {
namespace {

template <class From, class T>
concept readable_as = requires(From&& from) { std::forward<From>(from).template as<T>(); };
template <class From, class T>
concept writable_as = requires(From&& from) { std::forward<From>(from).template as_mutable<T>(); };
template <class T>
concept tensor_from = requires(std::vector<T> const& values) { Tensor::from(values); };

TEST(CppInterface, a_temporary_has_no_span_that_would_outlive_it) {
    static_assert(readable_as<Tensor&, std::int32_t> && readable_as<Tensor const&, std::int32_t>);
    static_assert(writable_as<Tensor&, std::int32_t>);
    static_assert(!readable_as<Tensor, std::int32_t> && !readable_as<Tensor const, std::int32_t>);
    static_assert(!writable_as<Tensor, std::int32_t>);
    static_assert(!readable_as<decltype((std::declval<Located>().indices)), std::int32_t>,
                  "for (auto i : map.find(keys).indices.as<std::int32_t>()) must not compile");
    // The right way to write it.
    HashMap map = int64_map();
    auto const found = map.find(int64_keys({1, 2}));
    for (std::int32_t const index : found.indices.as<std::int32_t>()) EXPECT_EQ(index, -1);
}

TEST(CppInterface, tensors_are_made_of_types_that_have_a_dtype) {
    static_assert(tensor_from<std::int8_t> && tensor_from<std::uint64_t> && tensor_from<double>);
    static_assert(!tensor_from<std::complex<float>> && !tensor_from<std::string>);
    static_assert(!tensor_from<char*> && !tensor_from<long double>);
    static_assert(!readable_as<Tensor&, std::string> && !writable_as<Tensor&, long double>);
    EXPECT_EQ(Tensor::from<float>({1, 2}).dtype(), Dtype::Float32);
}

TEST(CppInterface, errors_do_not_advise_python) {
    using namespace tensorhash;
    HashMap map = make_map(Capacity{0}, {Dtype::Int64, {}}, {{Dtype::Float32, {}}});
    BoundedHashMap bounded(Capacity{4}, {Dtype::Int64, {}}, {{Dtype::Float32, {}}}, Eviction::Lru);
    ShardedHashMap sharded(Capacity{0}, {Dtype::Int64, {}}, {{Dtype::Float32, {}}},
                           {Device{Device::Type::Cpu, 0}});
    Tensor const keys = Tensor::from<std::int64_t>({1});
    Tensor const floats = Tensor::from<float>({1});
    UpdateOptions const strict{.missing = Missing::Error};
    Tensor const twice = Tensor::from<std::int32_t>({0, 1, 1, 1, 0, 1, 1, 1}, {2, 4});
    std::string const messages[] = {
        message_of<tensorhash::Error>([&] { map.find(floats); }),
        message_of<tensorhash::Error>([&] { map.insert(keys, {keys}); }),
        message_of<tensorhash::Error>([&] { map.update(keys, floats, Adam{}); }),
        message_of<tensorhash::Error>([&] { map.update(keys, floats, Sgd{}, strict); }),
        message_of<tensorhash::Error>([&] { bounded.update(keys, floats, Sgd{}, strict); }),
        message_of<tensorhash::Error>([&] { sharded.update(keys, floats, Sgd{}, strict); }),
        message_of<tensorhash::Error>(
            [&] { coords::generate_kernel_map(twice, twice, {1, 1, 1}, {.size = {3, 3, 3}}); }),
    };
    for (std::string const& message : messages)
        for (char const* const python : {"Python", "python", "torch", "numpy", "astype", "=\""})
            EXPECT_EQ(message.find(python), std::string::npos) << message;
    EXPECT_EQ(messages[0], "keys: expected int64, got float32");
    EXPECT_EQ(messages[3],
              "keys: 1 rows are not in the table, the first is row 0; insert them first, or set "
              "missing to skip or insert");
}

TEST(CppInterface, a_dtype_error_names_the_argument_and_the_dtype) {
    HashMap map = int64_map();
    try {
        map.find(Tensor::from<float>({1}));
        FAIL() << "expected an error";
    } catch (tensorhash::DtypeError const& error) {
        EXPECT_EQ(error.argument(), "keys");
        EXPECT_EQ(error.expected(), Dtype::Int64);
    }
}

#if !TH_TEST_SANITIZED
/// 256 keys with values of 256 KiB each: a copy of the values would not fit.
template <class Map>
void expect_keys_without_values(Map const& map) {
    tensorhash::release_memory();
    AddressSpaceLimit const limit(std::size_t{16} << 20);
    EXPECT_THROW(map.items(), std::bad_alloc);
    Tensor const keys = map.keys();
    EXPECT_EQ(keys.shape(), (Shape{256}));
    EXPECT_EQ(keys.as<std::int64_t>()[255], 255);
}

TEST(CppInterface, keys_are_listed_without_copying_values) {
    std::vector<std::int64_t> numbers(256);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
    Tensor const keys = Tensor::from(numbers);
    Element const key{Dtype::Int64, {}}, value{Dtype::Float64, {32768}};
    HashMap map = make_map(Capacity{256}, key, {value});
    map.activate(keys);
    expect_keys_without_values(map);
    tensorhash::BoundedHashMap bounded(Capacity{256}, key, {value}, tensorhash::Eviction::Lru);
    bounded.activate(keys);
    expect_keys_without_values(bounded);
}
#endif

}  // namespace
}  // namespace th_test
