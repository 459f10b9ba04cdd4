#include "ptx/names.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "ptx/text.hpp"

namespace th_ptx {
namespace {

std::uint32_t to_count(std::string_view digits) {
    std::uint32_t value = 0;
    auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size()) {
        throw PtxError("expected a number, got \"" + std::string(digits) + "\"");
    }
    return value;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// An integer with or without a sign, or the bits of a float (0f..., 0d...).
std::uint64_t to_constant(std::string const& text) {
    bool const is_float = text.starts_with("0f") || text.starts_with("0d");
    bool const is_negative = text[0] == '-';
    std::string const digits = text.substr(is_float ? 2 : is_negative ? 1 : 0);
    std::size_t used = 0;
    std::uint64_t const value = std::stoull(digits, &used, is_float ? 16 : 0);
    if (used != digits.size() && digits.substr(used) != "U") {
        throw PtxError("expected a constant, got \"" + text + "\"");
    }
    return is_negative ? 0 - value : value;
}

struct Variable {
    std::string name;
    std::uint32_t bytes = 0;
    std::uint32_t align = 1;
};

Variable read_variable(std::string_view declaration) {
    Variable out;
    std::uint32_t element = 0;
    std::uint32_t count = 1;
    std::vector<std::string> const words = words_of(declaration);
    for (std::size_t i = 0; i < words.size(); ++i) {
        std::string const& word = words[i];
        Type type;
        if (word == ".align") {
            out.align = to_count(i + 1 < words.size() ? words[++i] : "");
        } else if (word[0] == '.') {
            if (read_type(std::string_view(word).substr(1), type)) element = type.bits / 8u;
        } else {
            std::size_t const bracket = std::min(word.find('['), word.size());
            out.name = word.substr(0, bracket);
            if (bracket < word.size()) {
                count = to_count(word.substr(bracket + 1, word.size() - bracket - 2));
            }
        }
    }
    out.bytes = element * count;
    out.align = std::max({out.align, element, 1u});
    return out;
}

}  // namespace

bool read_type(std::string_view word, Type& type) {
    if (word == "pred") {
        type = {Kind::Predicate, 1};
        return true;
    }
    static std::unordered_map<char, Kind> const kinds = {
        {'b', Kind::Bits}, {'u', Kind::Unsigned}, {'s', Kind::Signed}, {'f', Kind::Float}};
    auto const kind = word.empty() ? kinds.end() : kinds.find(word[0]);
    if (kind == kinds.end() || word.size() < 2 || word.size() > 3 ||
        !std::all_of(word.begin() + 1, word.end(), is_digit)) {
        return false;
    }
    type = {kind->second, static_cast<std::uint8_t>(to_count(word.substr(1)))};
    return true;
}

std::string declared_name(std::string_view declaration) { return read_variable(declaration).name; }

void Names::declare_registers(std::string_view directive) {
    std::vector<std::string> const words = words_of(directive);
    Type type;
    if (words.size() < 3 || !read_type(std::string_view(words[1]).substr(1), type)) {
        throw PtxError("expected \".reg .type name\", got \"" + std::string(directive) + "\"");
    }
    std::size_t const names_begin = directive.find(words[1]) + words[1].size();
    for (std::string const& name : split(directive.substr(names_begin), ',')) {
        std::size_t const bracket = name.find('<');
        if (bracket == std::string::npos) {
            scopes_.back()[name] = kernel_.registers++;
            continue;
        }
        std::uint32_t const count =
            to_count(name.substr(bracket + 1, name.find('>') - bracket - 1));
        for (std::uint32_t i = 0; i < count; ++i) {
            scopes_.back()[name.substr(0, bracket) + std::to_string(i)] = kernel_.registers++;
        }
    }
}

void Names::declare_variable(std::string_view declaration, std::uint32_t& top) {
    Variable const variable = read_variable(declaration);
    top = (top + variable.align - 1) / variable.align * variable.align;
    variables_[variable.name] = top;
    top += variable.bytes;
}

std::uint32_t Names::constant(std::uint64_t value) {
    auto const [at, is_new] = constants_.try_emplace(value, kernel_.registers);
    if (is_new) kernel_.constants.push_back({kernel_.registers++, value});
    return at->second;
}

std::uint32_t Names::special(Special which) {
    std::uint32_t& known = kernel_.specials[which];
    if (known == kNoRegister) known = kernel_.registers++;
    return known;
}

std::uint32_t Names::named(std::string const& name) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
        if (auto const found = scope->find(name); found != scope->end()) return found->second;
    }
    if (auto const found = variables_.find(name); found != variables_.end()) {
        return constant(found->second);
    }
    if (auto const found = module_shared_.find(name); found != module_shared_.end()) {
        declare_variable(found->second, kernel_.shared_bytes);
        return constant(variables_.at(name));
    }
    throw PtxError("unknown operand \"" + name + "\"");
}

std::uint32_t Names::operand(std::string const& text) {
    static std::unordered_map<std::string, Special> const specials = {
        {"%tid.x", kThread},    {"%ntid.x", kBlockSize}, {"%ctaid.x", kBlock},
        {"%nctaid.x", kBlocks}, {"%laneid", kLane},
    };
    if (text.empty()) throw PtxError("an operand is missing");
    if (text == "_") return kNoRegister;
    if (text == "WARP_SZ") return constant(32);
    if (auto const found = specials.find(text); found != specials.end()) {
        return special(found->second);
    }
    if (is_digit(text[0]) || text[0] == '-') return constant(to_constant(text));
    return named(text);
}

std::vector<std::uint32_t> Names::vector(std::string const& text) {
    if (text.size() < 2 || text.front() != '{' || text.back() != '}') {
        throw PtxError("expected a vector in braces, got \"" + text + "\"");
    }
    std::vector<std::uint32_t> parts;
    for (std::string const& part : split(std::string_view(text).substr(1, text.size() - 2), ',')) {
        parts.push_back(operand(part));
    }
    return parts;
}

std::uint32_t Names::address(std::string const& text, std::uint64_t& offset) {
    if (text.size() < 3 || text.front() != '[' || text.back() != ']') {
        throw PtxError("expected an address in brackets, got \"" + text + "\"");
    }
    std::string const inside(trimmed(std::string_view(text).substr(1, text.size() - 2)));
    std::size_t const plus = std::min(inside.find('+'), inside.size());
    offset = plus < inside.size() ? to_constant(std::string(trimmed(inside.substr(plus + 1)))) : 0;
    return operand(std::string(trimmed(inside.substr(0, plus))));
}

}  // namespace th_ptx
