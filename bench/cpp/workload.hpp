// What is measured: keys, rows, operations, and the memory all contenders share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pages.hpp"
#include "tensorhash/dtype.hpp"

namespace bench {

enum class Operation : std::uint8_t { Insert, ConstructInsert, FindHit, FindMiss, Erase };

/// "insert", "construct_insert", "find_hit", "find_miss", "erase".
std::string_view name(Operation operation);
/// The inverse; throws std::invalid_argument that lists the names.
Operation operation_from_name(std::string_view name);

constexpr bool is_find(Operation operation) {
    return operation == Operation::FindHit || operation == Operation::FindMiss;
}

/// In which order hits and erasures ask for the keys. In the order of insertion a wide key's own
/// line comes in by itself, as the neighbour of the last one's.
enum class Order : std::uint8_t { Shuffled, Inserted };

struct KeyKind {
    std::string_view name;
    tensorhash::Dtype dtype;
    std::int64_t elements;  // per key
    std::size_t bytes;
};

/// Throws std::invalid_argument that lists the names.
KeyKind key_kind_from_name(std::string_view name);

/// Random rows, the same in every run. Outputs are written anew by each contender and are warm
/// after the first.
struct Workload {
    Workload(KeyKind kind, std::size_t rows, Order order);

    /// What the operation is given.
    unsigned char const* keys_for(Operation operation) const;
    /// The lines of memory that the answer needs, each at a place of its own: two where a wide key
    /// is there, since the index line only leads to it; one where the index alone decides.
    int lines_per_key(Operation operation) const;
    /// Rows whose mask is set, as the last contender left them.
    std::size_t count_mask() const;

    KeyKind kind;
    std::size_t rows;
    Order order;
    Pages keys;
    Pages shuffled;
    Pages others;
    Pages values;  // int64
    Pages out;     // int32, or what a peer stores in 4 bytes
    Pages mask;    // 1 byte
};

/// A table under test. `prepare` is not timed, `run` is; `count` tells how many rows the run said
/// yes to.
class Contender {
public:
    Contender() = default;
    Contender(Contender const&) = delete;
    Contender& operator=(Contender const&) = delete;
    virtual ~Contender() = default;

    virtual std::string_view name() const = 0;
    virtual bool can(Operation operation) const = 0;
    virtual void prepare(Operation operation) = 0;
    virtual void run(Operation operation) = 0;
    virtual std::size_t count() const = 0;
    /// Frees what it holds.
    virtual void drop() = 0;
};

}  // namespace bench
