// DLPack import and export: no copies, strides and read-only flags are kept, deleters run exactly
// once, and the producer keeps a tensor that was refused.
#include "tensorhash/dlpack.hpp"

#include <limits>
#include <string>

#include "support/fixtures.hpp"

namespace th_test {
namespace {

/// A producer of either struct that counts the calls of its deleter.
template <class Managed>
struct Producer {
    std::vector<std::int64_t> memory;
    Shape shape, strides;
    Managed managed{};
    int deleted = 0;

    Producer(std::vector<std::int64_t> numbers, Shape s, Shape element_strides)
        : memory(std::move(numbers)), shape(std::move(s)), strides(std::move(element_strides)) {
        managed.dl_tensor.data = memory.data();
        managed.dl_tensor.device = {kDLCPU, 0};
        managed.dl_tensor.ndim = static_cast<std::int32_t>(shape.size());
        managed.dl_tensor.dtype = {kDLInt, 64, 1};
        managed.dl_tensor.shape = shape.data();
        managed.dl_tensor.strides = strides.empty() ? nullptr : strides.data();
        managed.manager_ctx = this;
        managed.deleter = [](Managed* self) {
            ++static_cast<Producer*>(self->manager_ctx)->deleted;
        };
        if constexpr (requires { managed.version; }) managed.version = {1, 0};
    }
    Producer(Producer const&) = delete;
};

template <class Managed>
class Dlpack : public ::testing::Test {};
using BothKinds = ::testing::Types<DLManagedTensor, DLManagedTensorVersioned>;
TYPED_TEST_SUITE(Dlpack, BothKinds);

TYPED_TEST(Dlpack, import_shares_the_memory_and_deletes_once) {
    Producer<TypeParam> producer({1, 2, 3, 4, 5, 6}, {3, 2}, {});
    {
        Tensor tensor = Tensor::from_dlpack(&producer.managed);
        EXPECT_EQ(tensor.data(), producer.memory.data());
        EXPECT_EQ(tensor.shape(), (Shape{3, 2}));
        Tensor copy = tensor;
        Tensor part = tensor.reshape({6});
        tensor = Tensor();
        EXPECT_EQ(producer.deleted, 0);
        EXPECT_EQ(part.as<std::int64_t>()[5], 6);
    }
    EXPECT_EQ(producer.deleted, 1);
}

TYPED_TEST(Dlpack, an_empty_array_may_have_dimensions_with_an_overflowing_product) {
    Shape const shape{0, std::int64_t{1} << 40, std::int64_t{1} << 40};
    Producer<TypeParam> producer({}, shape, {});
    EXPECT_EQ(Tensor::from_dlpack(&producer.managed).shape(), shape);
}

TYPED_TEST(Dlpack, import_keeps_strides_and_the_byte_offset) {
    Producer<TypeParam> producer({0, 1, 2, 3, 4, 5, 6, 7}, {3, 2}, {-2, 1});
    producer.managed.dl_tensor.byte_offset = 4 * 8;
    Tensor tensor = Tensor::from_dlpack(&producer.managed);
    EXPECT_EQ(tensor.byte_strides(), (Shape{-16, 8}));
    EXPECT_EQ(to_vector<std::int64_t>(tensor.contiguous()),
              (std::vector<std::int64_t>{4, 5, 2, 3, 0, 1}));
    HashMap map = make_map(Capacity{0}, {Dtype::Int64, {2}}, {});
    map.activate(tensor);
    EXPECT_EQ(to_vector<std::int64_t>(map.keys()), (std::vector<std::int64_t>{4, 5, 2, 3, 0, 1}));
}

TYPED_TEST(Dlpack, import_of_empty_and_rank_0) {
    Producer<TypeParam> empty({}, {0, 3}, {});
    EXPECT_EQ(Tensor::from_dlpack(&empty.managed).shape(), (Shape{0, 3}));
    EXPECT_EQ(empty.deleted, 1);
    Producer<TypeParam> scalar({42}, {}, {});
    {
        Tensor one = Tensor::from_dlpack(&scalar.managed);
        EXPECT_EQ(to_vector<std::int64_t>(one), (std::vector<std::int64_t>{42}));
    }
    EXPECT_EQ(scalar.deleted, 1);
}

TYPED_TEST(Dlpack, null_memory_with_elements_is_refused_and_stays_the_producers) {
    for (std::uint64_t const offset : {0U, 8U}) {
        Producer<TypeParam> producer({1, 2, 3}, {3, 1}, {});
        producer.managed.dl_tensor.data = nullptr;
        producer.managed.dl_tensor.byte_offset = offset;
        std::string const message = message_of<tensorhash::ValueError>(
            [&] { (void)Tensor::from_dlpack(&producer.managed); });
        EXPECT_NE(message.find("memory for 3 elements of int64, got a null pointer"),
                  std::string::npos)
            << message;
        EXPECT_EQ(producer.deleted, 0);
    }
    Producer<TypeParam> empty({}, {0, 3}, {});
    empty.managed.dl_tensor.data = nullptr;
    EXPECT_EQ(Tensor::from_dlpack(&empty.managed).size(), 0);
}

TYPED_TEST(Dlpack, impossible_shapes_and_strides_are_refused) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    auto refused = [](auto change) {
        Producer<TypeParam> producer({1, 2, 3, 4}, {2, 2}, {2, 1});
        change(producer.managed.dl_tensor);
        EXPECT_THROW((void)Tensor::from_dlpack(&producer.managed), tensorhash::ValueError);
        EXPECT_EQ(producer.deleted, 0);
    };
    refused([](DLTensor& dl) { dl.ndim = -1; });
    refused([](DLTensor& dl) { dl.shape = nullptr; });
    refused([](DLTensor& dl) { dl.shape[0] = -2; });
    refused([](DLTensor& dl) { dl.shape[0] = dl.shape[1] = kMost; });
    refused([](DLTensor& dl) { dl.strides[0] = kMost; });
    refused([](DLTensor& dl) { dl.strides[1] = -kMost; });
}

TEST(Tensors, null_memory_is_borrowed_only_without_elements) {
    void* const none = nullptr;
    EXPECT_EQ(message_of<tensorhash::ValueError>(
                  [&] { (void)Tensor::borrow(none, {2, 3}, Dtype::Int32); }),
              "data: expected memory for 6 elements of int32, got a null pointer");
    EXPECT_EQ(Tensor::borrow(none, {0, 3}, Dtype::Int32).size(), 0);
}

TYPED_TEST(Dlpack, a_refused_tensor_stays_the_producers) {
    auto refused = [](DLDataType dtype) {
        Producer<TypeParam> producer({1, 2, 3, 4}, {1}, {});
        producer.managed.dl_tensor.dtype = dtype;
        EXPECT_THROW(Tensor::from_dlpack(&producer.managed), tensorhash::TypeError);
        EXPECT_EQ(producer.deleted, 0);
    };
    refused({5, 64, 1});        // complex
    refused({kDLInt, 64, 2});   // two lanes
    refused({kDLInt, 4, 1});    // four bits
    refused({kDLFloat, 8, 1});  // a float8
    Producer<TypeParam> elsewhere({1}, {1}, {});
    elsewhere.managed.dl_tensor.device.device_type = static_cast<DLDeviceType>(7);
    EXPECT_THROW(Tensor::from_dlpack(&elsewhere.managed), tensorhash::DeviceError);
    EXPECT_EQ(elsewhere.deleted, 0);
}

TYPED_TEST(Dlpack, a_producer_without_a_deleter_is_legal) {
    Producer<TypeParam> producer({1}, {1}, {});
    producer.managed.deleter = nullptr;
    EXPECT_EQ(Tensor::from_dlpack(&producer.managed).size(), 1);
}

TEST(DlpackVersions, flags_say_read_only_and_another_major_version_is_refused) {
    Producer<DLManagedTensorVersioned> producer({1}, {1}, {});
    producer.managed.flags = tensorhash::kDlpackReadOnly;
    EXPECT_TRUE(Tensor::from_dlpack(&producer.managed).read_only());
    Producer<DLManagedTensorVersioned> newer({1}, {1}, {});
    newer.managed.version = {2, 0};
    EXPECT_ANY_THROW(Tensor::from_dlpack(&newer.managed));
    EXPECT_EQ(newer.deleted, 0);
}

template <class Managed>
Managed* exported(Tensor const& tensor) {
    if constexpr (std::is_same_v<Managed, DLManagedTensor>)
        return tensor.to_dlpack();
    else
        return tensor.to_dlpack_versioned();
}

TYPED_TEST(Dlpack, export_and_import_round_trip_every_dtype) {
    for (int d = 1; d <= 13; ++d) {
        auto dtype = static_cast<Dtype>(d);
        Tensor tensor = make_values({dtype, {3}}, 5, 1);
        Tensor back = Tensor::from_dlpack(exported<TypeParam>(tensor));
        EXPECT_EQ(back.data(), tensor.data());
        EXPECT_EQ(back.dtype(), dtype);
        EXPECT_EQ(back.shape(), tensor.shape());
        EXPECT_EQ(back.byte_strides(), tensor.byte_strides());
    }
}

TYPED_TEST(Dlpack, an_exported_view_keeps_the_memory_alive) {
    Tensor view;
    {
        HashMap map = int64_map(3);
        map.insert(int64_keys({1, 2, 3}), {int64_keys({4, 5, 6})});
        view = Tensor::from_dlpack(exported<TypeParam>(map.value_tensor()));
        map.insert(int64_keys({9}), {int64_keys({9})});
    }
    EXPECT_EQ(to_vector<std::int64_t>(view), (std::vector<std::int64_t>{4, 5, 6}));
}

TYPED_TEST(Dlpack, strides_that_are_not_whole_elements_cannot_be_exported) {
    char memory[64] = {};
    Tensor odd = Tensor::borrow_strided(memory, {3}, {9}, Dtype::Int64, false);
    EXPECT_THROW(exported<TypeParam>(odd), tensorhash::ValueError);
    EXPECT_THROW(exported<TypeParam>(Tensor()), tensorhash::TypeError);
}

TEST(DlpackVersions, a_read_only_view_is_exported_read_only) {
    HashMap map = int64_map(3);
    DLManagedTensorVersioned* keys = map.key_tensor().to_dlpack_versioned();
    DLManagedTensorVersioned* values = map.value_tensor().to_dlpack_versioned();
    EXPECT_EQ(keys->flags & tensorhash::kDlpackReadOnly, tensorhash::kDlpackReadOnly);
    EXPECT_EQ(values->flags & tensorhash::kDlpackReadOnly, 0u);
    EXPECT_EQ(keys->version.major, 1u);
    keys->deleter(keys);
    values->deleter(values);
}

}  // namespace
}  // namespace th_test
