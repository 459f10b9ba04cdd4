#include "support/batches.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "support/reduce_oracle.hpp"
#include "support/sanitized.hpp"

namespace th_test {

bool runs_in_full() { return !is_sanitized() || std::getenv("TENSORHASH_TEST_IN_FULL") != nullptr; }

namespace {

/// Widths around each change of code path (in-slot keys, whole words, tails), and types that are
/// not compared byte by byte.
bool is_sampled(KeyKind const& kind) {
    static std::set<std::string> const names = {
        "u8x1",  "u8x2",  "u8x3",  "u8x4",  "u8x5",  "u8x7",  "u8x8",  "u8x9",
        "u8x12", "u8x13", "u8x16", "u8x17", "u8x24", "u8x37", "u8x64", "u8x256",
        "bool",  "i64",   "f32",   "f64",   "i32x3", "f32x3", "f64x2"};
    return names.contains(kind.name);
}

}  // namespace

KeyKind bytes_kind(std::int64_t width) {
    return {"u8x" + std::to_string(width), {Dtype::UInt8, {width}}};
}

std::vector<KeyKind> typed_kinds() {
    return {
        {"bool", {Dtype::Bool, {}}},        {"i8", {Dtype::Int8, {1}}},
        {"i16", {Dtype::Int16, {1}}},       {"u16", {Dtype::UInt16, {}}},
        {"i32", {Dtype::Int32, {1}}},       {"u32", {Dtype::UInt32, {1}}},
        {"i64", {Dtype::Int64, {1}}},       {"i64scalar", {Dtype::Int64, {}}},
        {"u64", {Dtype::UInt64, {1}}},      {"f32", {Dtype::Float32, {1}}},
        {"f64", {Dtype::Float64, {}}},      {"i32x3", {Dtype::Int32, {3}}},
        {"f32x3", {Dtype::Float32, {3}}},   {"f64x2", {Dtype::Float64, {2}}},
        {"bool5x2", {Dtype::Bool, {5, 2}}}, {"i64_2x3", {Dtype::Int64, {2, 3}}},
        {"i16_7d", {Dtype::Int16, {7}}},
    };
}

std::vector<KeyKind> all_kinds() {
    std::vector<KeyKind> kinds;
    for (std::int64_t width = 1; width <= 64; ++width) kinds.push_back(bytes_kind(width));
    kinds.push_back(bytes_kind(100));
    kinds.push_back(bytes_kind(256));
    for (KeyKind& kind : typed_kinds()) kinds.push_back(std::move(kind));
    if (runs_in_full()) return kinds;
    std::erase_if(kinds, [](KeyKind const& kind) { return !is_sampled(kind); });
    return kinds;
}

std::vector<KeyKind> sample_kinds() {
    std::vector<KeyKind> kinds = {bytes_kind(3), bytes_kind(8), bytes_kind(9), bytes_kind(16),
                                  bytes_kind(37)};
    for (KeyKind& kind : typed_kinds())
        if (kind.name == "i64" || kind.name == "i32x3" || kind.name == "f64" ||
            kind.name == "f32x3")
            kinds.push_back(std::move(kind));
    return kinds;
}

void write_key(char* out, std::size_t width, std::uint64_t id) {
    if (id % 2 == 0) {
        Random random(id);
        for (std::size_t at = 0; at < width; at += 8) {
            std::uint64_t word = random.next();
            std::memcpy(out + at, &word, std::min<std::size_t>(8, width - at));
        }
        return;
    }
    std::memset(out, 0, width);
    std::uint64_t number = id / 2 / width;
    number += number / 255 + 1;  // its low byte is never zero and marks where the number starts
    for (std::size_t byte = 0; byte < 8 && number; ++byte, number >>= 8)
        out[(id / 2 + byte) % width] = static_cast<char>(number);
}

Shape rows_shape(std::size_t rows, Element const& element) {
    Shape shape{static_cast<std::int64_t>(rows)};
    shape.insert(shape.end(), element.shape.begin(), element.shape.end());
    return shape;
}

void make_legal(char* bytes, std::size_t count, Dtype dtype) {
    if (dtype != Dtype::Bool) return;
    for (std::size_t i = 0; i < count; ++i) bytes[i] &= 1;
}

Tensor make_keys(Element const& key, Ids const& ids) {
    Tensor out = Tensor::empty(rows_shape(ids.size(), key), key.dtype);
    auto* bytes = static_cast<char*>(out.data());
    std::size_t width = key.bytes();
    for (std::size_t row = 0; row < ids.size(); ++row)
        write_key(bytes + row * width, width, ids[row]);
    make_legal(bytes, ids.size() * width, key.dtype);
    return out;
}

Tensor make_values(Element const& value, std::size_t rows, std::uint64_t seed) {
    Tensor out = Tensor::empty(rows_shape(rows, value), value.dtype);
    Random random(seed);
    auto* bytes = static_cast<char*>(out.data());
    for (std::size_t at = 0; at < out.bytes(); at += 8) {
        std::uint64_t word = random.next();
        std::memcpy(bytes + at, &word, std::min<std::size_t>(8, out.bytes() - at));
    }
    make_legal(bytes, out.bytes(), value.dtype);
    return out;
}

Tensor make_finite_values(Element const& value, std::size_t rows, std::uint64_t seed) {
    Tensor out = make_values(value, rows, seed);
    auto count = static_cast<std::size_t>(out.size());
    auto each = [&]<class T>(T, auto convert) {
        auto* at = static_cast<T*>(out.data());
        Random random(seed);
        for (std::size_t i = 0; i < count; ++i) {
            float sign = random.one_in(2) ? -1.0f : 1.0f;
            float size = 1.0f + static_cast<float>(random.below(1u << 20)) / (1u << 20);
            at[i] = convert(sign * std::ldexp(size, static_cast<int>(random.below(16)) - 8));
        }
    };
    if (value.dtype == Dtype::Float16) each(std::uint16_t{}, to_float16);
    if (value.dtype == Dtype::BFloat16) each(std::uint16_t{}, to_bfloat16);
    if (value.dtype == Dtype::Float32) each(float{}, [](float x) { return x; });
    if (value.dtype == Dtype::Float64)
        each(double{}, [](float x) { return 1.0 / static_cast<double>(x); });
    return out;
}

std::vector<Tensor> make_columns(std::vector<Element> const& columns, std::size_t rows,
                                 std::uint64_t seed) {
    std::vector<Tensor> out;
    for (Element const& column : columns) out.push_back(make_values(column, rows, seed += 1000003));
    return out;
}

Ids random_ids(std::size_t rows, std::uint64_t universe, std::uint64_t seed) {
    Random random(seed);
    Ids ids(rows);
    for (std::uint64_t& id : ids) id = random.below(universe);
    return ids;
}

Ids sequence(std::size_t rows, std::uint64_t first) {
    Ids ids(rows);
    for (std::size_t i = 0; i < rows; ++i) ids[i] = first + i;
    return ids;
}

std::string bytes_of(Tensor const& tensor) {
    Tensor packed = tensor.to(tensorhash::Device{}).contiguous();
    if (packed.bytes() == 0) return {};
    return {static_cast<char const*>(packed.data()), packed.bytes()};
}

Rows rows_of(Tensor const& tensor, Element const& element) {
    Rows rows;
    rows.width = element.bytes();
    rows.bytes = bytes_of(tensor);
    rows.count = rows.bytes.size() / rows.width;
    return rows;
}

std::vector<Rows> rows_of(std::vector<Tensor> const& tensors,
                          std::vector<Element> const& elements) {
    std::vector<Rows> rows;
    for (std::size_t c = 0; c < tensors.size(); ++c)
        rows.push_back(rows_of(tensors[c], elements[c]));
    return rows;
}

std::vector<std::uint8_t> mask_of(Tensor const& tensor) {
    Tensor const here = tensor.to(tensorhash::Device{});
    auto span = here.as<bool>();
    return {span.begin(), span.end()};
}

Tensor int64_keys(std::vector<std::int64_t> const& values) {
    return Tensor::from(values, {static_cast<std::int64_t>(values.size()), 1});
}

}  // namespace th_test
