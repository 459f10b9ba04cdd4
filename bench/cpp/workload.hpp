// The work to measure: keys, rows, operations, and the memory that all contenders share.
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
/// The inverse. Throws std::invalid_argument that lists the names.
Operation operation_from_name(std::string_view name);

constexpr bool is_find(Operation operation) {
    return operation == Operation::FindHit || operation == Operation::FindMiss;
}

/// The order of keys in hits and erasures. In insertion order, the cache line of a wide key often
/// comes with its neighbour's.
enum class Order : std::uint8_t { Shuffled, Inserted };

struct KeyKind {
    std::string_view name;
    tensorhash::Dtype dtype;
    std::int64_t elements;  // per key
    std::size_t bytes;
};

/// Throws std::invalid_argument that lists the names.
KeyKind key_kind_from_name(std::string_view name);

/// Random rows, the same in every run. Each contender overwrites the outputs, which are warm after
/// the first.
struct Workload {
    Workload(KeyKind kind, std::size_t rows, Order order);

    /// The keys of the operation.
    unsigned char const* keys_for(Operation operation) const;
    /// The cache lines that an answer needs: two for a wide key that is found, which is read from
    /// the key buffer after its bucket; one if the bucket alone decides.
    int lines_per_key(Operation operation) const;
    /// The number of rows with a set mask after the last contender.
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

/// A table under test. `run` is timed, `prepare` is not. `count` returns how many rows have a set
/// mask after the run.
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
    /// Frees its memory.
    virtual void drop() = 0;
};

}  // namespace bench
