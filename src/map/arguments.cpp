// The checks of arguments.hpp. Messages are built here, off the hot paths.
#include "map/arguments.hpp"

#include <algorithm>
#include <string>

#include "table/limits.hpp"
#include "tensor/allocators.hpp"
#include "tensor/bools.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/elements.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::map {

using table::kMaxEntries;

namespace {

std::string text(std::string_view view) { return std::string(view); }

[[noreturn]] void fail_dtype(std::string_view argument, Dtype want, Dtype got) {
    throw DtypeError(text(argument) + ": expected " + text(name(want)) + ", got " + text(name(got)),
                     text(argument), want);
}

[[noreturn]] void fail_shape(std::string_view argument, Shape const& want, Shape const& got) {
    std::string rows = "(N";
    for (std::int64_t const size : want) {
        rows += ", " + std::to_string(size);
    }
    rows += want.empty() ? ",)" : ")";
    throw ValueError(text(argument) + ": expected shape " + rows +
                     ", or N rows with the same number of elements, got " + to_string(got));
}

Tensor with_true_bools(Tensor const& tensor) {
    if (tensor.dtype() == Dtype::Bool && !tensor.device().is_cpu()) {
        return cast(tensor, Dtype::Bool);  // the host does not wait to look at the bytes
    }
    if (tensor.dtype() != Dtype::Bool ||
        are_canonical_bools(static_cast<unsigned char const*>(tensor.data()), tensor.bytes())) {
        return tensor;
    }
    Tensor truth = tensor.clone();
    canonicalize_bools(static_cast<unsigned char*>(truth.data()), truth.bytes());
    return truth;
}

}  // namespace

void check_device(Device got, Device device, std::string_view argument) {
    if (device.is_cpu()) {
        require_host(got, argument);
    } else if (!got.is_cpu() && got != device) {
        throw DeviceError(text(argument) + ": expected memory of the CPU or of \"" +
                          to_string(device) + "\", the table's device, got memory of \"" +
                          to_string(got) + "\"; copy it with .cpu(), in C++ to()");
    }
}

void require_table_on_cpu(Device device, std::string_view call, std::string_view copy) {
    if (!device.is_cpu()) {
        throw DeviceError(text(call) + ": expected a table on the CPU, this one is on \"" +
                          to_string(device) + "\"; copy it with " + text(copy));
    }
}

Tensor on_device(Tensor const& tensor, Device device) {
    Tensor const there = tensor.to(device);
    there.wait_on(current_stream(device));
    return there;
}

CheckedBatch check_batch(Tensor const& tensor, Element const& element, std::string_view argument,
                         Device device) {
    if (tensor.dtype() != element.dtype) {
        fail_dtype(argument, element.dtype, tensor.dtype());
    }
    check_device(tensor.device(), device, argument);
    Shape const& shape = tensor.shape();
    if (shape.empty()) {
        fail_shape(argument, element.shape, shape);
    }
    std::int64_t const rows = shape[0];
    bool const nothing = rows == 0 && shape.size() == 1;  // the shape of an empty list
    if (!nothing &&
        num_elements(Shape(shape.begin() + 1, shape.end())) != num_elements(element.shape)) {
        fail_shape(argument, element.shape, shape);
    }
    if (rows > static_cast<std::int64_t>(kMaxEntries)) {
        throw ValueError(text(argument) + ": a batch has at most " + std::to_string(kMaxEntries) +
                         " rows, got " + std::to_string(rows) + "; split it");
    }
    Tensor checked = tensor.contiguous();
    if (!device.is_cpu()) {
        checked = on_device(checked, device);
    }
    // On the copy: another thread may write to the caller's array.
    checked = with_true_bools(checked);
    return {std::move(checked), static_cast<std::size_t>(rows), tensor.device()};
}

CheckedBatch check_batch(Tensor const& tensor, Element const& element, std::string_view argument,
                         std::size_t rows, Device device) {
    CheckedBatch batch = check_batch(tensor, element, argument, device);
    if (batch.rows != rows) {
        throw ValueError(text(argument) + ": expected " + std::to_string(rows) +
                         " rows, as many as keys, got " + std::to_string(batch.rows));
    }
    return batch;
}

std::vector<CheckedBatch> check_values(std::vector<Tensor> const& values,
                                       std::vector<Element> const& elements, std::size_t rows,
                                       Device device) {
    if (values.size() != elements.size()) {
        throw ValueError("values: expected " + std::to_string(elements.size()) +
                         " arrays, one per value column, got " + std::to_string(values.size()));
    }
    std::vector<CheckedBatch> batches;
    for (std::size_t i = 0; i < values.size(); ++i) {
        std::string const argument =
            values.size() == 1 ? "values" : "values[" + std::to_string(i) + "]";
        batches.push_back(check_batch(values[i], elements[i], argument, rows, device));
    }
    return batches;
}

KeysAndValues check_keys_and_values(Tensor const& keys, Element const& key,
                                    std::vector<Tensor> const& values,
                                    std::vector<Element> const& elements, Device device) {
    CheckedBatch batch = check_batch(keys, key, "keys", device);
    std::size_t const rows = batch.rows;
    return {std::move(batch), check_values(values, elements, rows, device)};
}

Tensor check_bytes(Tensor const& bytes) {
    if (bytes.dtype() != Dtype::UInt8 || bytes.rank() != 1) {
        throw TypeError("bytes: expected uint8 [n], got " + std::string(name(bytes.dtype())) + " " +
                        to_string(bytes.shape()));
    }
    return bytes.contiguous();
}

FillRows check_fill(Tensor const& tensor, Element const& element, std::size_t rows,
                    std::string_view argument, Device device) {
    if (tensor.shape() == element.shape) {
        Shape const one = with_rows(1, element.shape);
        return {check_batch(tensor.contiguous().reshape(one), element, argument, device), 0};
    }
    CheckedBatch batch = check_batch(tensor, element, argument, device);
    if (batch.rows != rows) {
        throw ValueError(text(argument) + ": expected one row, " + to_string(element.shape) +
                         ", or " + std::to_string(rows) + " rows, as many as keys, got " +
                         to_string(tensor.shape()));
    }
    return {std::move(batch), element.bytes()};
}

namespace {

/// At least one element and less than 2^31 bytes: with 2^31 entries, offsets stay within 64 bits.
void check_element_shape(Element const& element, std::string const& argument) {
    constexpr std::int64_t kLimit = std::int64_t{1} << 31;
    constexpr std::size_t kMaxRank = 63;  // plus the row dimension: NumPy's limit of 64
    if (element.shape.size() > kMaxRank) {
        throw ValueError(argument + ": expected at most " + std::to_string(kMaxRank) +
                         " dimensions, got " + std::to_string(element.shape.size()));
    }
    auto bytes = static_cast<std::int64_t>(byte_size(element.dtype));
    for (std::int64_t const size : element.shape) {
        if (size < 1 || size >= kLimit || bytes * size >= kLimit) {
            throw ValueError(argument +
                             ": expected at least one element and less than 2^31 bytes, got " +
                             to_string(element.shape) + " of " + text(name(element.dtype)));
        }
        bytes *= size;
    }
}

}  // namespace

void check_key_element(Element const& element) {
    if (!is_key_dtype(element.dtype)) {
        throw TypeError("key_dtype: expected bool, an integer, float32 or float64, got " +
                        text(name(element.dtype)));
    }
    check_element_shape(element, "key_element_shape");
}

void check_value_element(Element const& element, std::size_t column) {
    std::string const at = std::string(1, '[') + std::to_string(column) + "]";
    if (byte_size(element.dtype) == 0) {
        throw TypeError("value_dtypes" + at + ": the dtype is undefined");
    }
    check_element_shape(element, "value_element_shapes" + at);
}

void check_elements(Element const& key, std::vector<Element> const& values) {
    check_key_element(key);
    for (std::size_t i = 0; i < values.size(); ++i) {
        check_value_element(values[i], i);
    }
}

std::uint64_t check_capacity(Capacity capacity, std::string_view argument, std::size_t tables,
                             std::size_t least_per_table) {
    std::uint64_t const least = tables * least_per_table;
    std::uint64_t const most = tables * kMaxEntries;
    auto const rows = static_cast<std::uint64_t>(capacity.rows);
    if (capacity.rows < 0 || rows < least || rows > most) {
        throw ValueError(text(argument) + ": expected " + std::to_string(least) + " to " +
                         std::to_string(most) + " entries" +
                         (least > 1 ? ", at least one per shard" : "") + ", got " +
                         std::to_string(capacity.rows));
    }
    return rows;
}

namespace {

void check_reduce(std::vector<Reduce> const& reduce, std::size_t columns) {
    for (Reduce const one : reduce) {
        if (one > Reduce::Count) {
            throw ValueError(
                "reduce: expected First, Last, Sum, Min, Max, Prod, Any, All or "
                "Count, got " +
                std::to_string(static_cast<int>(one)));
        }
    }
    if (reduce.size() != 1 && reduce.size() != columns) {
        throw ValueError("reduce: expected one, or one for each of " + std::to_string(columns) +
                         " columns, got " + std::to_string(reduce.size()));
    }
}

bool is_integer(Dtype dtype) { return dtype >= Dtype::Int8 && dtype <= Dtype::UInt64; }

[[noreturn]] void fail_reduce(char const* word, char const* expected, Element const& element,
                              std::size_t column) {
    throw TypeError("reduce: " + std::string(word) + " expects " + expected + ", got " +
                    text(name(element.dtype)) + " in value column " + std::to_string(column));
}

/// Rows of ones of an integer type.
Tensor ones(Element const& element, std::size_t rows) {
    Tensor out = Tensor::zeros(with_rows(rows, element.shape), element.dtype);
    auto* const bytes = static_cast<unsigned char*>(out.data());
    // Little-endian, like the whole library.
    for (std::size_t at = 0; at < out.bytes(); at += byte_size(element.dtype)) bytes[at] = 1;
    return out;
}

}  // namespace

std::vector<Reduce> resolve_reduce(std::vector<Reduce> const& reduce,
                                   std::vector<Element> const& elements, KeysAndValues& batch) {
    check_reduce(reduce, elements.size());
    bool const is_plain =
        std::all_of(reduce.begin(), reduce.end(), [](Reduce one) { return one <= Reduce::Prod; });
    if (is_plain) return reduce;
    std::vector<Reduce> plain;
    for (std::size_t i = 0; i < elements.size(); ++i) {
        plain.push_back(reduce.size() == 1 ? reduce[0] : reduce[i]);
        Reduce& one = plain.back();
        bool const is_logic = one == Reduce::Any || one == Reduce::All;
        if (is_logic && elements[i].dtype != Dtype::Bool) {
            fail_reduce(one == Reduce::Any ? "any" : "all", "a bool column", elements[i], i);
        }
        if (one == Reduce::Count && !is_integer(elements[i].dtype)) {
            fail_reduce("count", "an integer column", elements[i], i);
        }
    }
    for (std::size_t i = 0; i < plain.size(); ++i) {
        if (plain[i] == Reduce::Any) plain[i] = Reduce::Max;
        if (plain[i] == Reduce::All) plain[i] = Reduce::Min;
        if (plain[i] != Reduce::Count) continue;
        plain[i] = Reduce::Sum;
        batch.values[i].tensor = ones(elements[i], batch.keys.rows).to(batch.keys.tensor.device());
    }
    return plain;
}

void check_column(std::size_t column, std::size_t columns, char const* argument) {
    if (column >= columns) {
        throw IndexError(std::string(argument) + ": expected less than " + std::to_string(columns) +
                         ", the number of value columns, got " + std::to_string(column));
    }
}

std::optional<CheckedBatch> check_scores(Tensor const& scores, Eviction eviction, std::size_t rows,
                                         bool required) {
    bool const given = scores.dtype() != Dtype::Undefined;
    if (given && eviction == Eviction::Lru) {
        throw ValueError(
            "scores: this table evicts the least recently used entry and takes no scores");
    }
    if (!given && required && eviction == Eviction::Score) {
        throw ValueError("scores: this table evicts by score: expected int64, one per key");
    }
    if (!given) {
        return std::nullopt;
    }
    return check_batch(scores, {Dtype::Int64, {}}, "scores", rows);
}

std::vector<Element> elements_of(std::vector<Tensor> const& values) {
    std::vector<Element> elements;
    for (std::size_t i = 0; i < values.size(); ++i) {
        elements.push_back(element_of(values[i], "values[" + std::to_string(i) + "]"));
    }
    return elements;
}

Element element_of(Tensor const& tensor, std::string_view argument) {
    if (tensor.rank() == 0) {
        throw ValueError(text(argument) +
                         ": expected at least one dimension, the rows, got a scalar");
    }
    return {tensor.dtype(), Shape(tensor.shape().begin() + 1, tensor.shape().end())};
}

}  // namespace tensorhash::map
