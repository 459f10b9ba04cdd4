// Picks the reader of a key format, as src/cpu does for the CPU.
#pragma once

#include <cstdint>

#include "device/grid.hpp"
#include "tensorhash/step/key.hpp"

namespace tensorhash::device {

template <class Reader>
struct ReaderTag {
    using type = Reader;
};

/// Calls visit(ReaderTag<Reader>) with the reader for this format.
template <class Visit>
void with_reader(step::KeyFormat format, Visit const& visit) {
    if (format.float_bytes == 0) {
        switch (format.bytes) {
            case 4:
                return visit(ReaderTag<step::Narrow4>{});
            case 8:
                return visit(ReaderTag<step::Narrow8>{});
            case 12:
                return visit(ReaderTag<step::Wide12>{});
            case 16:
                return visit(ReaderTag<step::Wide16>{});
            default:
                break;
        }
    }
    if (format.bytes <= 8) {
        return visit(ReaderTag<step::NarrowAny>{});
    }
    return visit(ReaderTag<step::WideAny>{});
}

/// The alignment that a batch and the key buffer need.
inline std::uint32_t key_align(step::KeyFormat format) {
    std::size_t align = 1;
    with_reader(format, [&](auto tag) { align = decltype(tag)::type::kAlign; });
    return static_cast<std::uint32_t>(align);
}

}  // namespace tensorhash::device
