// A table and its oracle: every call goes to both, and any difference is thrown as a sentence. It
// throws instead of using GoogleTest's macros, so that the fuzzer and other threads can use it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/batches.hpp"
#include "support/device.hpp"

namespace th_test {

using tensorhash::Capacity;
using tensorhash::HashMap;
using tensorhash::Located;

class Mismatch : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

void require_equal(std::vector<std::int32_t> const& got, std::vector<std::int32_t> const& want,
                   std::string const& what);
void require_equal(std::vector<std::int64_t> const& got, std::vector<std::int64_t> const& want,
                   std::string const& what);
void require_equal(std::vector<std::uint8_t> const& got, std::vector<std::uint8_t> const& want,
                   std::string const& what);
void require_equal(std::int64_t got, std::int64_t want, std::string const& what);
/// Compares rows as byte strings, so NaNs compare by their bits.
void require_equal(std::string const& got, std::string const& want, std::size_t width,
                   std::string const& what);

class Twin {
public:
    Twin(std::int64_t capacity, Element key, std::vector<Element> values);
    Twin(HashMap map, Oracle model);
    Twin clone() const;

    Located insert(Tensor const& keys, std::vector<Tensor> const& values);
    Located insert(Ids const& ids, std::uint64_t seed = 1);
    Located activate(Tensor const& keys);
    Located activate(Ids const& ids);
    Located insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values);
    Located insert_or_assign(Ids const& ids, std::uint64_t seed = 1);
    Located accumulate(Tensor const& keys, std::vector<Tensor> const& values,
                       std::vector<Reduce> const& how);
    Located accumulate(Ids const& ids, std::vector<Reduce> const& how, std::uint64_t seed = 1);
    Located find(Tensor const& keys) const;
    Located find(Ids const& ids) const;
    Tensor erase(Tensor const& keys);
    Tensor erase(Ids const& ids);
    std::vector<Tensor> get(Ids const& ids, std::vector<Tensor> const& defaults = {}) const;
    Tensor compact();
    void reserve(std::int64_t capacity);
    void shrink_to_fit();
    void clear();

    /// Compares everything visible from outside, and calls validate().
    void check() const;

    Tensor keys(Ids const& ids) const;
    std::vector<Tensor> columns(std::size_t rows, std::uint64_t seed) const;
    Rows key_rows(Tensor const& keys) const;
    std::vector<Rows> value_rows(std::vector<Tensor> const& values) const;

    HashMap table;
    Oracle oracle;

private:
    std::vector<Element> const& elements() const { return oracle.value_elements(); }
};

}  // namespace th_test
