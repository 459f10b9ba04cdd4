// A statement while it is decoded: modifiers, operands, and the instruction that it becomes.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptx/names.hpp"
#include "ptx/program.hpp"
#include "ptx/text.hpp"

namespace th_ptx {

/// The modifiers of an opcode. Each must be taken: one that is left has an unknown meaning.
class Modifiers {
public:
    explicit Modifiers(std::string const& opcode) {
        words_ = split(opcode, '.');
        words_.erase(words_.begin());
        for (std::string& word : words_) word.resize(std::min(word.find("::"), word.size()));
    }

    bool take(std::string_view word) {
        auto const at = std::find(words_.begin(), words_.end(), word);
        if (at == words_.end()) return false;
        words_.erase(at);
        return true;
    }
    void require(std::string_view word) {
        if (!take(word)) throw PtxError("expected the modifier ." + std::string(word));
    }
    /// For modifiers that change nothing here, such as cache hints.
    void ignore(std::initializer_list<std::string_view> words) {
        for (std::string_view const word : words) take(word);
    }
    template <class T>
    bool take_one(std::initializer_list<std::pair<std::string_view, T>> choices, T& value) {
        for (auto const& [word, meaning] : choices) {
            if (take(word)) {
                value = meaning;
                return true;
            }
        }
        return false;
    }
    bool take_type(Type& type) {
        for (std::string const& word : words_) {
            if (read_type(word, type)) return take(word);
        }
        return false;
    }
    void require_none() const {
        if (!words_.empty()) throw PtxError("unknown modifier ." + words_.front());
    }

private:
    std::vector<std::string> words_;
};

/// What a handler of an opcode works on.
struct Statement {
    Names& names;
    Modifiers modifiers;
    std::vector<std::string> arguments;
    Instruction& in;
    std::string& label;

    std::string const& argument(std::size_t i) const {
        if (i >= arguments.size()) throw PtxError("an operand is missing");
        return arguments[i];
    }
    std::uint32_t operand(std::size_t i) { return names.operand(argument(i)); }
    void require_arguments(std::size_t count) const {
        if (arguments.size() != count) {
            throw PtxError("expected " + std::to_string(count) + " operands, got " +
                           std::to_string(arguments.size()));
        }
    }
    /// d, a, b, c, e in this order.
    void take_operands(std::size_t count) {
        require_arguments(count);
        std::uint32_t* const to[] = {&in.d, &in.a, &in.b, &in.c, &in.e};
        for (std::size_t i = 0; i < count; ++i) *to[i] = operand(i);
    }
    bool is_vector(std::size_t i) const { return argument(i)[0] == '{'; }
};

inline bool take_space(Statement& s) {
    return s.modifiers.take_one<Space>({{"global", Space::Global},
                                        {"shared", Space::Shared},
                                        {"param", Space::Param},
                                        {"local", Space::Local}},
                                       s.in.space);
}

// decode_memory.cpp
void decode_load(Statement& s);
void decode_store(Statement& s);
void decode_atomic(Statement& s);
void decode_reduction(Statement& s);
void decode_fence(Statement& s);
void decode_prefetch(Statement& s);

}  // namespace th_ptx
