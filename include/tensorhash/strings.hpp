// StringIndex: numbers distinct byte strings from 0 on, in order of first occurrence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tensorhash/export.hpp"
#include "tensorhash/tensor.hpp"

namespace tensorhash {

/// A batch of strings in any layout. One instance is read by several threads at once.
class TH_API StringSource {
public:
    virtual ~StringSource() = default;
    virtual std::size_t rows() const noexcept = 0;
    /// Rows that read() takes at most.
    static constexpr std::size_t kMostRead = 256;
    /// strings[i] = row begin + i. A string that has to be converted may be put at the end of
    /// `room`, which then must not move: strings are valid until the next call with this room.
    virtual void read(std::size_t begin, std::size_t count, std::string_view* strings,
                      std::string& room) const = 0;
    /// Whether the 16 bytes before the end of each string can be read, although some may lie before
    /// its begin. Such strings are hashed faster. append_preceded() helps with the others.
    virtual bool is_preceded() const noexcept { return false; }
    static constexpr std::size_t kBefore = 16;

protected:
    /// Copies a string of fewer than 16 bytes into a room that holds only such copies.
    static std::string_view append_preceded(std::string_view string, std::string& room) {
        if (room.empty()) {
            room.reserve(kBefore * (kMostRead + 1));
            room.resize(kBefore);
        }
        room.append(string);
        return {room.data() + room.size() - string.size(), string.size()};
    }
};

/// Arrow's layout: string i is bytes[offsets[i]] up to bytes[offsets[i + 1]].
struct StringRows {
    Tensor offsets;  ///< int64 [N + 1]
    Tensor bytes;    ///< uint8
};

/// Maps byte strings to dense numbers. Bytes are compared, not only hashes, and the hash has a
/// secret seed. A batch gives the same numbers as its rows one by one, on any number of threads. A
/// call that throws changes nothing. Many threads may read at once; a writer runs alone.
class TH_API StringIndex {
public:
    /// The seed decides where strings lie; no result depends on it.
    explicit StringIndex(std::optional<std::uint64_t> seed = {});
    StringIndex(StringIndex&&) noexcept;
    StringIndex& operator=(StringIndex&&) noexcept;
    ~StringIndex();

    /// int64 [N]: the number of each string. New strings get the next numbers, in row order.
    Tensor insert(StringSource const& strings);
    Tensor insert(StringRows const& strings);
    /// int64 [N]: the number of each string, or -1.
    Tensor find(StringSource const& strings) const;
    Tensor find(StringRows const& strings) const;
    /// The strings with these numbers, int64 [N]. Throws IndexError if one was not given out.
    StringRows decode(Tensor const& numbers) const;
    /// All strings, in order of their numbers.
    StringRows strings() const;

    std::int64_t size() const;
    /// Bytes of memory in use.
    std::uint64_t memory() const;
    StringIndex clone() const;

    /// Writes the file of docs/file-format.md and replaces an old one atomically.
    void save(std::string const& file_name) const;
    /// Safe for untrusted files: takes at most load_limit() bytes, or throws FormatError.
    static StringIndex load(std::string const& file_name,
                            std::optional<std::uint64_t> max_bytes = {});
    /// The bytes of the file, uint8 [n].
    Tensor to_bytes() const;
    static StringIndex from_bytes(Tensor const& bytes, std::optional<std::uint64_t> max_bytes = {});

private:
    struct Impl;
    explicit StringIndex(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace tensorhash
