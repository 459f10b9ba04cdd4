// One statement of PTX to one instruction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ptx/names.hpp"
#include "ptx/program.hpp"

namespace th_ptx {

struct Decoded {
    Instruction instruction;
    std::string label;  // of a branch or of its table: resolved when the whole kernel is read
};

/// Throws PtxError, which names the opcode and the line.
Decoded decode(std::string_view statement, std::uint32_t line, Names& names);

}  // namespace th_ptx
