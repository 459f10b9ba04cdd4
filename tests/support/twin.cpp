#include "support/twin.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

namespace th_test {
namespace {

template <class T>
void require_equal_rows(std::vector<T> const& got, std::vector<T> const& want,
                        std::string const& what) {
    if (got == want) return;
    std::ostringstream out;
    out << what << ": " << got.size() << " rows, expected " << want.size();
    for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i)
        if (got[i] != want[i]) {
            out << "; first difference at row " << i << ": " << +got[i] << ", expected "
                << +want[i];
            break;
        }
    throw Mismatch(out.str());
}

void compare(Located const& got, OracleLocated const& want, std::string const& what) {
    require_equal(mask_of(got.mask), want.mask, what + " mask");
    require_equal(to_vector<std::int32_t>(got.indices), want.indices, what + " indices");
}

}  // namespace

void require_equal(std::vector<std::int32_t> const& got, std::vector<std::int32_t> const& want,
                   std::string const& what) {
    require_equal_rows(got, want, what);
}
void require_equal(std::vector<std::int64_t> const& got, std::vector<std::int64_t> const& want,
                   std::string const& what) {
    require_equal_rows(got, want, what);
}
void require_equal(std::vector<std::uint8_t> const& got, std::vector<std::uint8_t> const& want,
                   std::string const& what) {
    require_equal_rows(got, want, what);
}

void require_equal(std::int64_t got, std::int64_t want, std::string const& what) {
    if (got == want) return;
    throw Mismatch(what + ": " + std::to_string(got) + ", expected " + std::to_string(want));
}

void require_equal(std::string const& got, std::string const& want, std::size_t width,
                   std::string const& what) {
    if (got == want) return;
    std::size_t at = 0;
    while (at < std::min(got.size(), want.size()) && got[at] == want[at]) ++at;
    throw Mismatch(what + ": " + std::to_string(got.size()) + " bytes, expected " +
                   std::to_string(want.size()) + "; first difference in row " +
                   std::to_string(at / width) + ", byte " + std::to_string(at % width));
}

Twin::Twin(std::int64_t capacity, Element key, std::vector<Element> values)
    : table(make_map(Capacity{capacity}, key, values)), oracle(capacity, key, values) {}
Twin::Twin(HashMap map, Oracle model) : table(std::move(map)), oracle(std::move(model)) {}

Twin Twin::clone() const { return Twin(table.clone(), oracle); }

Located Twin::insert(Tensor const& keys, std::vector<Tensor> const& values) {
    Located got = table.insert(keys, values);
    compare(got, oracle.insert(key_rows(keys), value_rows(values)), "insert");
    return got;
}
Located Twin::insert(Ids const& ids, std::uint64_t seed) {
    return insert(keys(ids), columns(ids.size(), seed));
}

Located Twin::activate(Tensor const& keys) {
    Located got = table.activate(keys);
    compare(got, oracle.activate(key_rows(keys)), "activate");
    return got;
}
Located Twin::activate(Ids const& ids) { return activate(keys(ids)); }

Located Twin::insert_or_assign(Tensor const& keys, std::vector<Tensor> const& values) {
    Located got = table.insert_or_assign(keys, values);
    compare(got, oracle.insert_or_assign(key_rows(keys), value_rows(values)), "insert_or_assign");
    return got;
}
Located Twin::insert_or_assign(Ids const& ids, std::uint64_t seed) {
    return insert_or_assign(keys(ids), columns(ids.size(), seed));
}

Located Twin::accumulate(Tensor const& keys, std::vector<Tensor> const& values,
                         std::vector<Reduce> const& how) {
    Located got = table.accumulate(keys, values, how);
    compare(got, oracle.accumulate(key_rows(keys), value_rows(values), how), "accumulate");
    return got;
}
Located Twin::accumulate(Ids const& ids, std::vector<Reduce> const& how, std::uint64_t seed) {
    return accumulate(keys(ids), columns(ids.size(), seed), how);
}

Located Twin::find(Tensor const& keys) const {
    Located got = table.find(keys);
    OracleLocated want = oracle.find(key_rows(keys));
    compare(got, want, "find");
    require_equal(mask_of(table.contains(keys)), want.mask, "contains");
    return got;
}
Located Twin::find(Ids const& ids) const { return find(keys(ids)); }

Tensor Twin::erase(Tensor const& keys) {
    Tensor got = table.erase(keys);
    require_equal(mask_of(got), oracle.erase(key_rows(keys)), "erase mask");
    return got;
}
Tensor Twin::erase(Ids const& ids) { return erase(keys(ids)); }

std::vector<Tensor> Twin::get(Ids const& ids, std::vector<Tensor> const& defaults) const {
    std::vector<Tensor> got = table.get(keys(ids), defaults);
    auto want = oracle.get(key_rows(keys(ids)), value_rows(defaults));
    require_equal(static_cast<std::int64_t>(got.size()), static_cast<std::int64_t>(want.size()),
                  "get columns");
    for (std::size_t c = 0; c < got.size(); ++c)
        require_equal(bytes_of(got[c]), want[c], elements()[c].bytes(),
                      "get column " + std::to_string(c));
    return got;
}

Tensor Twin::compact() {
    Tensor got = table.compact();
    require_equal(to_vector<std::int32_t>(got), oracle.compact(), "compact");
    return got;
}
void Twin::reserve(std::int64_t capacity) {
    table.reserve(Capacity{capacity});
    oracle.reserve(capacity);
}
void Twin::shrink_to_fit() {
    table.shrink_to_fit();
    oracle.shrink_to_fit();
}
void Twin::clear() {
    table.clear();
    oracle.clear();
}

void Twin::check() const {
    table.validate();
    require_equal(table.size(), oracle.size(), "size");
    require_equal(table.capacity(), oracle.capacity(), "capacity");
    require_equal(to_vector<std::int32_t>(table.active_buf_indices()), oracle.active(),
                  "active_buf_indices");
    std::size_t width = oracle.key_element().bytes();
    require_equal(bytes_of(table.keys()), oracle.keys(), width, "keys");
    tensorhash::Items items = table.items();
    require_equal(bytes_of(items.keys), oracle.keys(), width, "items keys");
    for (std::size_t c = 0; c < elements().size(); ++c)
        require_equal(bytes_of(items.values[c]), oracle.column(c), elements()[c].bytes(),
                      "items column " + std::to_string(c));
}

Tensor Twin::keys(Ids const& ids) const { return make_keys(oracle.key_element(), ids); }
std::vector<Tensor> Twin::columns(std::size_t rows, std::uint64_t seed) const {
    return make_columns(elements(), rows, seed);
}
Rows Twin::key_rows(Tensor const& keys) const { return rows_of(keys, oracle.key_element()); }
std::vector<Rows> Twin::value_rows(std::vector<Tensor> const& values) const {
    return rows_of(values, elements());
}

}  // namespace th_test
