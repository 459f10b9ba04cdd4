// TableView: lookups in a table from the caller's own code, one key at a time. In CUDA kernels it
// reads tables on a GPU; on the host, tables on the CPU. Only this header and those that it
// includes are needed in device code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tensorhash/step/find.hpp"

namespace tensorhash {

/// A trivially copyable view of a table: pass it to a kernel by value. HashMap::view() makes it.
///
/// It is valid until the next call that changes the table: insert, erase, reserve, clear, and so
/// on. The table must live as long. On a device, view() makes the thread's current stream wait for
/// earlier changes, so launch the kernel on that stream (current_stream() in stream.hpp), and make
/// the next change on it too, or after the kernel.
template <class Key>
class TableView {
    template <class T>
    struct ItemOf {
        using type = T;
    };
    template <class T, std::size_t N>
    struct ItemOf<std::array<T, N>> {
        using type = T;
    };

public:
    /// What a key consists of: the element type of a std::array; any other type is its own.
    using Item = typename ItemOf<Key>::type;
    static_assert(std::is_trivially_copyable_v<Key>, "keys are compared as bytes");
    static_assert(std::is_floating_point_v<Item> || std::has_unique_object_representations_v<Key>,
                  "a key with padding has bytes that mean nothing");

    explicit TableView(step::IndexView const& index) : index_(index) {}

    /// The key's buffer index, or -1. Its values are in that row of value_tensor().
    TH_STEP std::int32_t find(Key const& key) const {
        using Index = typename step::IndexOf<Reader, step::Exclusive>::type;
        alignas(16) unsigned char bytes[sizeof(Key)];
        __builtin_memcpy(bytes, &key, sizeof(Key));
        step::BatchView const batch{bytes, kAboveAllEntries, nullptr, nullptr, nullptr};
        Index const index(with_known_width());
        std::uint32_t const at = step::find_one(index, index.hash(bytes, 0), batch, 0).buf_index;
        // A probe without an end means a corrupt index. The table's next call reports it.
        return at < kAboveAllEntries ? static_cast<std::int32_t>(at) : -1;
    }
    TH_STEP bool contains(Key const& key) const { return find(key) >= 0; }

private:
    static constexpr std::uint32_t kAboveAllEntries = 0x7fffffffu;
    static constexpr std::uint32_t kFloatBytes =
        std::is_floating_point_v<Item> ? static_cast<std::uint32_t>(sizeof(Item)) : 0;

    template <class Exact, class Any>
    using Unless = std::conditional_t<std::is_floating_point_v<Item>, Any, Exact>;
    template <std::size_t Bytes, class = void>
    struct ReaderOf {
        using type = std::conditional_t<(Bytes <= 8), step::NarrowAny, step::WideAny>;
    };
    template <class None>
    struct ReaderOf<4, None> {
        using type = Unless<step::Narrow4, step::NarrowAny>;
    };
    template <class None>
    struct ReaderOf<8, None> {
        using type = Unless<step::Narrow8, step::NarrowAny>;
    };
    template <class None>
    struct ReaderOf<12, None> {
        using type = Unless<step::Wide12, step::WideAny>;
    };
    template <class None>
    struct ReaderOf<16, None> {
        using type = Unless<step::Wide16, step::WideAny>;
    };
    using Reader = typename ReaderOf<sizeof(Key)>::type;

    /// Constants let the compiler unroll the loops over a key.
    TH_STEP step::IndexView with_known_width() const {
        step::IndexView view = index_;
        view.key_bytes = sizeof(Key);
        view.float_bytes = kFloatBytes;
        return view;
    }

    step::IndexView index_;
};

}  // namespace tensorhash
