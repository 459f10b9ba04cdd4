// Loads, stores and atomics: bounds, alignment, unwritten memory, races.
#include <algorithm>
#include <cstring>
#include <string>

#include "ptx/arithmetic.hpp"
#include "ptx/launch.hpp"

namespace th_ptx {
namespace {

std::uint8_t* within(std::vector<std::uint8_t>& memory, std::uint64_t offset, std::uint32_t bytes,
                     char const* name) {
    if (offset > memory.size() || bytes > memory.size() - offset) {
        throw PtxError("out of bounds: " + std::to_string(bytes) + " bytes at offset " +
                       std::to_string(offset) + " of " + std::to_string(memory.size()) +
                       " bytes of " + name);
    }
    return memory.data() + offset;
}

/// The offset of a generic address in `memory`, if it lies there.
bool lies_in(std::vector<std::uint8_t> const& memory, std::uint64_t address,
             std::uint64_t& offset) {
    offset = address - reinterpret_cast<std::uint64_t>(memory.data());
    return offset < memory.size();
}

std::uint64_t read_value(std::uint8_t const* at, Type type) {
    std::uint64_t value = 0;
    std::memcpy(&value, at, type.bits / 8);
    return type.kind == Kind::Signed ? static_cast<std::uint64_t>(sign_extended(value, type.bits))
                                     : value;
}

}  // namespace

Launch::Place Launch::place_in_shared(Block& block, std::uint64_t offset, std::uint32_t bytes,
                                      Use use) {
    std::uint8_t* const at = within(block.shared, offset, bytes, "shared memory");
    auto const written = block.shared_written.begin() + static_cast<std::ptrdiff_t>(offset);
    if (use != Use::Write && std::find(written, written + bytes, 0) != written + bytes) {
        throw PtxError("unwritten read: shared memory at offset " + std::to_string(offset));
    }
    if (use != Use::Read) std::fill_n(written, bytes, std::uint8_t{1});
    return {at, races_ != nullptr ? races_->shared_offset(block.number) + offset : 0, true};
}

Launch::Place Launch::place(Block& block, Thread& thread, Instruction const& in,
                            std::uint32_t bytes, Use use) {
    std::uint64_t const address = thread.registers[in.a] + in.offset;
    if (address % bytes != 0) {
        throw PtxError("misaligned: " + std::to_string(bytes) + " bytes at an address that is " +
                       std::to_string(address % bytes) + " too large");
    }
    std::uint64_t offset = address;
    bool const is_generic = in.space == Space::Generic;
    if (in.space == Space::Param) {
        return {within(parameters_, offset, bytes, "parameters"), 0, false};
    }
    if (in.space == Space::Shared || (is_generic && lies_in(block.shared, address, offset))) {
        return place_in_shared(block, offset, bytes, use);
    }
    offset = address;
    if (in.space == Space::Local || (is_generic && lies_in(thread.local, address, offset))) {
        return {within(thread.local, offset, bytes, "local memory"), 0, false};
    }
    if (use != Use::Write) arena_.check_read(address, bytes, "a kernel");
    if (use != Use::Read) {
        arena_.check_write(address, bytes, "a kernel");
        arena_.mark_written(address, bytes);
    }
    return {reinterpret_cast<std::uint8_t*>(address), arena_.offset(address), true};
}

void Launch::load(Block& block, Thread& thread, Instruction const& in) {
    std::uint32_t const each = in.type.bits / 8u;
    auto const count = static_cast<std::uint32_t>(in.parts.size());
    Place const from = place(block, thread, in, each * count, Use::Read);
    for (std::uint32_t i = 0; i < count; ++i) {
        if (races_ != nullptr && from.is_watched) {
            Races::Access const access{thread.in_grid, from.race_offset + i * each,
                                       static_cast<std::uint8_t>(each), &in};
            races_->synchronize_read(access);
            races_->read(access);
        }
        if (in.parts[i] != kNoRegister) {
            thread.registers[in.parts[i]] = read_value(from.bytes + i * each, in.type);
        }
    }
}

void Launch::store(Block& block, Thread& thread, Instruction const& in) {
    std::uint32_t const each = in.type.bits / 8u;
    auto const count = static_cast<std::uint32_t>(in.parts.size());
    Place const to = place(block, thread, in, each * count, Use::Write);
    for (std::uint32_t i = 0; i < count; ++i) {
        if (races_ != nullptr && to.is_watched) {
            Races::Access const access{thread.in_grid, to.race_offset + i * each,
                                       static_cast<std::uint8_t>(each), &in};
            races_->write(access);
            races_->synchronize_write(access, false);
        }
        std::memcpy(to.bytes + i * each, &thread.registers[in.parts[i]], each);
    }
}

void Launch::exchange(Block& block, Thread& thread, Instruction const& in) {
    std::uint32_t const bytes = in.type.bits / 8u;
    Place const at = place(block, thread, in, bytes, Use::ReadWrite);
    std::uint64_t const old = low_bits(read_value(at.bytes, in.type), in.type.bits);
    std::uint64_t const expected = low_bits(thread.registers[in.b], in.type.bits);
    bool const writes = in.change != Change::CompareAndSwap || old == expected;
    std::uint64_t const other = in.c == kNoRegister ? 0 : thread.registers[in.c];
    std::uint64_t const now = changed(in, old, thread.registers[in.b], other);
    if (races_ != nullptr && at.is_watched) {
        Races::Access const access{thread.in_grid, at.race_offset, static_cast<std::uint8_t>(bytes),
                                   &in};
        races_->synchronize_read(access);
        races_->read(access);
        if (writes) {
            races_->write(access);
            races_->synchronize_write(access, true);
        }
    }
    std::memcpy(at.bytes, &now, bytes);
    if (in.d != kNoRegister) thread.registers[in.d] = old;
}

}  // namespace th_ptx
