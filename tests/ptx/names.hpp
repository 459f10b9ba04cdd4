// What operands of a kernel refer to: registers, constants, parameters, variables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx/program.hpp"

namespace th_ptx {

/// The words that describe a type, such as "u32" or "pred". Returns false if it is none.
bool read_type(std::string_view word, Type& type);

/// Declarations of shared memory outside of kernels, by name. Each kernel that uses one has its
/// own.
using ModuleShared = std::unordered_map<std::string, std::string>;

/// The name in a declaration such as ".shared .align 8 .b8 name[88]".
std::string declared_name(std::string_view declaration);

/// One kernel's names. Throws PtxError, without a line, for names that it does not know.
class Names {
public:
    Names(Kernel& kernel, ModuleShared const& module_shared)
        : kernel_(kernel), module_shared_(module_shared) {
        open_scope();
    }

    void open_scope() { scopes_.emplace_back(); }
    void close_scope() { scopes_.pop_back(); }

    /// ".reg .b32 %r<5>" or ".reg .u64 t, u".
    void declare_registers(std::string_view directive);
    /// ".shared .align 8 .b8 name[88]" and the like. `top` is the size of that space so far.
    void declare_variable(std::string_view declaration, std::uint32_t& top);

    std::uint32_t operand(std::string const& text);
    /// "{%r1, _, 3}"
    std::vector<std::uint32_t> vector(std::string const& text);
    /// "[%rd1+16]": the register, and the offset in the instruction.
    std::uint32_t address(std::string const& text, std::uint64_t& offset);

private:
    std::uint32_t constant(std::uint64_t value);
    std::uint32_t special(Special which);
    std::uint32_t named(std::string const& name);

    Kernel& kernel_;
    ModuleShared const& module_shared_;
    std::vector<std::unordered_map<std::string, std::uint32_t>> scopes_;
    std::unordered_map<std::string, std::uint32_t> variables_;  // offsets in their spaces
    std::unordered_map<std::uint64_t, std::uint32_t> constants_;
};

}  // namespace th_ptx
