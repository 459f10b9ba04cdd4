// The keys of a workload, and the names of operations and key kinds.
#include "workload.hpp"

#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace bench {
namespace {

constexpr std::array kOperations = {
    std::pair{Operation::Insert, std::string_view("insert")},
    std::pair{Operation::ConstructInsert, std::string_view("construct_insert")},
    std::pair{Operation::FindHit, std::string_view("find_hit")},
    std::pair{Operation::FindMiss, std::string_view("find_miss")},
    std::pair{Operation::Erase, std::string_view("erase")},
};

constexpr std::array kKinds = {
    KeyKind{"int64", tensorhash::Dtype::Int64, 1, 8},
    KeyKind{"int32x3", tensorhash::Dtype::Int32, 3, 12},
    KeyKind{"int32x4", tensorhash::Dtype::Int32, 4, 16},
    KeyKind{"bytes16", tensorhash::Dtype::UInt8, 16, 16},
    KeyKind{"bytes64", tensorhash::Dtype::UInt8, 64, 64},
};

/// splitmix64 as a generator: it gives the same numbers with every standard library.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed * 0xd1342543de82ef95u) {}
    std::uint64_t operator()() {
        std::uint64_t x = state_ += 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return x ^ (x >> 31);
    }
    std::uint64_t below(std::uint64_t end) { return ((*this)() >> 32) * end >> 32; }

private:
    std::uint64_t state_;
};

Pages random_bytes(std::size_t bytes, std::uint64_t seed) {
    Pages pages(bytes + 8);
    Random random(seed);
    for (std::size_t at = 0; at < bytes; at += 8) {
        std::uint64_t const word = random();
        std::memcpy(pages.data() + at, &word, 8);
    }
    return pages;
}

Pages shuffled_rows(Pages const& keys, std::size_t rows, std::size_t width) {
    Pages pages(rows * width + 8);
    unsigned char* const data = pages.data();
    std::memcpy(data, keys.data(), rows * width);
    Random random(3);
    std::array<unsigned char, 64> held;
    for (std::size_t row = rows; row > 1; --row) {
        std::size_t const other = random.below(row);
        std::memcpy(held.data(), data + other * width, width);
        std::memmove(data + other * width, data + (row - 1) * width, width);
        std::memcpy(data + (row - 1) * width, held.data(), width);
    }
    return pages;
}

}  // namespace

std::string_view name(Operation operation) {
    for (auto const& [known, text] : kOperations) {
        if (known == operation) {
            return text;
        }
    }
    return "?";
}

Operation operation_from_name(std::string_view name) {
    for (auto const& [known, text] : kOperations) {
        if (text == name) {
            return known;
        }
    }
    throw std::invalid_argument(
        "--op: expected insert, construct_insert, find_hit, find_miss or erase, got '" +
        std::string(name) + "'");
}

KeyKind key_kind_from_name(std::string_view name) {
    for (auto const& kind : kKinds) {
        if (kind.name == name) {
            return kind;
        }
    }
    throw std::invalid_argument(
        "--key: expected int64, int32x3, int32x4, bytes16 or bytes64, got '" + std::string(name) +
        "'");
}

Workload::Workload(KeyKind kind_, std::size_t rows_, Order order_)
    : kind(kind_), rows(rows_), order(order_), keys(random_bytes(rows * kind.bytes, 1)),
      shuffled(shuffled_rows(keys, rows, kind.bytes)), others(random_bytes(rows * kind.bytes, 2)),
      values(rows * 8), out(rows * 4), mask(rows) {
    for (std::size_t row = 0; row < rows; ++row) {
        values.as<std::int64_t>()[row] = static_cast<std::int64_t>(row);
    }
}

unsigned char const* Workload::keys_for(Operation operation) const {
    switch (operation) {
        case Operation::FindHit:
        case Operation::Erase:
            return order == Order::Shuffled ? shuffled.data() : keys.data();
        case Operation::FindMiss:
            return others.data();
        default:
            return keys.data();
    }
}

int Workload::lines_per_key(Operation operation) const {
    bool const key_is_read = operation == Operation::FindHit || operation == Operation::Erase;
    return kind.bytes > 8 && key_is_read && order == Order::Shuffled ? 2 : 1;
}

std::size_t Workload::count_mask() const {
    std::size_t count = 0;
    for (std::size_t row = 0; row < rows; ++row) {
        count += mask.data()[row];
    }
    return count;
}

}  // namespace bench
