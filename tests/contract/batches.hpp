// Makes batches: keys of any width and dtype from numbers, values from a seed, and their bytes back again.
// No GoogleTest here, so that the fuzzer can use it too.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "oracle.hpp"
#include "tensorhash/tensorhash.hpp"

namespace th_test {

using tensorhash::Shape;
using tensorhash::Tensor;
using Ids = std::vector<std::uint64_t>;

/// Steele, Lea and Flood's generator: enough randomness for tests, the same on every platform.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    std::uint64_t below(std::uint64_t n) { return next() % n; }
    bool one_in(std::uint64_t n) { return below(n) == 0; }

private:
    std::uint64_t state_;
};

/// A dtype and element shape under a name that GoogleTest accepts.
struct KeyKind {
    std::string name;
    Element element;
    std::size_t width() const { return element.bytes(); }
};

inline KeyKind bytes_kind(std::int64_t width) {
    return {"u8x" + std::to_string(width), {Dtype::UInt8, {width}}};
}

inline std::vector<KeyKind> typed_kinds() {
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

/// Every width from 1 to 64 bytes, two wider ones, and the typed keys.
inline std::vector<KeyKind> all_kinds() {
    std::vector<KeyKind> kinds;
    for (std::int64_t width = 1; width <= 64; ++width) {
#if defined(__SANITIZE_THREAD__)
        // Slow there, and beyond 16 bytes all widths share one path: those about each whole word will do.
        if (width > 16 && width % 8 > 1) continue;
#endif
        kinds.push_back(bytes_kind(width));
    }
    kinds.push_back(bytes_kind(100));
    kinds.push_back(bytes_kind(256));
    for (KeyKind& kind : typed_kinds()) kinds.push_back(std::move(kind));
    return kinds;
}

/// One of each way through the engine: in-slot words, the fast wide paths, odd widths, float keys.
inline std::vector<KeyKind> sample_kinds() {
    std::vector<KeyKind> kinds = {bytes_kind(3), bytes_kind(8), bytes_kind(9), bytes_kind(16),
                                  bytes_kind(37)};
    for (KeyKind& kind : typed_kinds())
        if (kind.name == "i64" || kind.name == "i32x3" || kind.name == "f64" ||
            kind.name == "f32x3")
            kinds.push_back(std::move(kind));
    return kinds;
}

/// Half of the keys are random bytes; the others differ in one small number that starts at any byte, so that a
/// comparison or a hash that skips a byte somewhere is caught. Keys of four bytes and more are distinct.
inline void write_key(char* out, std::size_t width, std::uint64_t id) {
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
    number += number / 255 + 1;  // its low byte is never zero: it tells where the number starts
    for (std::size_t byte = 0; byte < 8 && number; ++byte, number >>= 8)
        out[(id / 2 + byte) % width] = static_cast<char>(number);
}

inline Shape rows_shape(std::size_t rows, Element const& element) {
    Shape shape{static_cast<std::int64_t>(rows)};
    shape.insert(shape.end(), element.shape.begin(), element.shape.end());
    return shape;
}

/// Bools hold 0 or 1, whatever byte they were made from.
inline void make_legal(char* bytes, std::size_t count, Dtype dtype) {
    if (dtype != Dtype::Bool) return;
    for (std::size_t i = 0; i < count; ++i) bytes[i] &= 1;
}

inline Tensor make_keys(Element const& key, Ids const& ids) {
    Tensor out = Tensor::empty(rows_shape(ids.size(), key), key.dtype);
    auto* bytes = static_cast<char*>(out.data());
    std::size_t width = key.bytes();
    for (std::size_t row = 0; row < ids.size(); ++row)
        write_key(bytes + row * width, width, ids[row]);
    make_legal(bytes, ids.size() * width, key.dtype);
    return out;
}

/// Any bits at all: values are copied, not understood, by everything but accumulate.
inline Tensor make_values(Element const& value, std::size_t rows, std::uint64_t seed) {
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

/// Floats of very different sizes, so that another order of addition shows in the bits; no NaN, no zero. Other
/// dtypes: any bits.
inline Tensor make_finite_values(Element const& value, std::size_t rows, std::uint64_t seed) {
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

inline std::vector<Tensor> make_columns(std::vector<Element> const& columns, std::size_t rows,
                                        std::uint64_t seed) {
    std::vector<Tensor> out;
    for (Element const& column : columns) out.push_back(make_values(column, rows, seed += 1000003));
    return out;
}

/// `rows` numbers below `universe`: the smaller the universe, the more duplicates.
inline Ids random_ids(std::size_t rows, std::uint64_t universe, std::uint64_t seed) {
    Random random(seed);
    Ids ids(rows);
    for (std::uint64_t& id : ids) id = random.below(universe);
    return ids;
}

inline Ids sequence(std::size_t rows, std::uint64_t first = 0) {
    Ids ids(rows);
    for (std::size_t i = 0; i < rows; ++i) ids[i] = first + i;
    return ids;
}

inline std::string bytes_of(Tensor const& tensor) {
    Tensor packed = tensor.contiguous();
    if (packed.bytes() == 0) return {};
    return {static_cast<char const*>(packed.data()), packed.bytes()};
}

inline Rows rows_of(Tensor const& tensor, Element const& element) {
    Rows rows;
    rows.width = element.bytes();
    rows.bytes = bytes_of(tensor);
    rows.count = rows.bytes.size() / rows.width;
    return rows;
}

inline std::vector<Rows> rows_of(std::vector<Tensor> const& tensors,
                                 std::vector<Element> const& elements) {
    std::vector<Rows> rows;
    for (std::size_t c = 0; c < tensors.size(); ++c)
        rows.push_back(rows_of(tensors[c], elements[c]));
    return rows;
}

template <class T>
std::vector<T> to_vector(Tensor const& tensor) {
    auto span = tensor.as<T>();
    return {span.begin(), span.end()};
}

/// A mask as bytes, so that two of them print and compare plainly.
inline std::vector<std::uint8_t> mask_of(Tensor const& tensor) {
    auto span = tensor.as<bool>();
    return {span.begin(), span.end()};
}

inline Tensor int64_keys(std::vector<std::int64_t> const& values) {
    return Tensor::from(values, {static_cast<std::int64_t>(values.size()), 1});
}

}  // namespace th_test
