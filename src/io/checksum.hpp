// A 64-bit checksum of a byte stream. Every word goes through a bijection, so a change in any
// single word is always detected. Four lanes keep it near memory speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensorhash/step/hash.hpp"

namespace tensorhash::io {

class Checksum {
public:
    void add(void const* data, std::size_t bytes) noexcept {
        auto const* at = static_cast<unsigned char const*>(data);
        total_ += bytes;
        while (bytes > 0) {
            if (held_ == 0 && bytes >= sizeof(block_)) {
                mix_block(at);
                at += sizeof(block_);
                bytes -= sizeof(block_);
                continue;
            }
            std::size_t const room = sizeof(block_) - held_;
            std::size_t const step = bytes < room ? bytes : room;
            std::memcpy(block_ + held_, at, step);
            at += step;
            bytes -= step;
            held_ += step;
            if (held_ == sizeof(block_)) {
                mix_block(block_);
                held_ = 0;
            }
        }
    }

    std::uint64_t value() const noexcept {
        Checksum last = *this;
        std::memset(last.block_ + last.held_, 0, sizeof(block_) - last.held_);
        last.mix_block(last.block_);
        std::uint64_t sum = total_;
        for (std::uint64_t const lane : last.lanes_) {
            sum = step::mix_in(sum, lane);
        }
        return sum;
    }

private:
    void mix_block(unsigned char const* block) noexcept {
        for (std::size_t lane = 0; lane < 4; ++lane) {
            std::uint64_t word;
            std::memcpy(&word, block + lane * 8, 8);
            lanes_[lane] = step::mix_in(lanes_[lane], word);
        }
    }

    std::uint64_t lanes_[4] = {1, 2, 3, 4};
    unsigned char block_[32] = {};
    std::size_t held_ = 0;
    std::uint64_t total_ = 0;
};

}  // namespace tensorhash::io
