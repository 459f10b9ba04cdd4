#include "ptx/text.hpp"

#include <algorithm>
#include <cctype>

#include "ptx/program.hpp"

namespace th_ptx {
namespace {

constexpr char const* kSpace = " \t\r\n";

bool is_name_character(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}

}  // namespace

std::string_view trimmed(std::string_view text) {
    std::size_t const first = text.find_first_not_of(kSpace);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        char const c = text[i];
        if (c == '{' || c == '[') ++depth;
        if (c == '}' || c == ']') --depth;
        if (c == separator && depth == 0) {
            parts.emplace_back(trimmed(text.substr(begin, i - begin)));
            begin = i + 1;
        }
    }
    std::string_view const last = trimmed(text.substr(begin));
    if (!last.empty()) parts.emplace_back(last);
    return parts;
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    std::size_t end = 0;
    for (;;) {
        std::size_t const begin = text.find_first_not_of(kSpace, end);
        if (begin == std::string_view::npos) return words;
        end = std::min(text.find_first_of(kSpace, begin), text.size());
        words.emplace_back(text.substr(begin, end - begin));
    }
}

std::string without_comments(std::string_view text) {
    std::string out(text);
    for (std::size_t at = out.find("//"); at != std::string::npos; at = out.find("//", at)) {
        std::size_t const end = std::min(out.find('\n', at), out.size());
        std::fill(out.begin() + static_cast<std::ptrdiff_t>(at),
                  out.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    }
    return out;
}

void Cursor::take(std::size_t count) {
    std::string_view const taken = text_.substr(at_, count);
    line_ += static_cast<std::uint32_t>(std::count(taken.begin(), taken.end(), '\n'));
    at_ += taken.size();
}

void Cursor::skip_space() {
    std::size_t const next = rest().find_first_not_of(kSpace);
    take(next == std::string_view::npos ? rest().size() : next);
}

std::string_view Cursor::take_until(char const* characters) {
    std::size_t const end = rest().find_first_of(characters);
    if (end == std::string_view::npos) {
        throw PtxError("PTX line " + std::to_string(line_) + ": expected one of \"" + characters +
                       "\", got the end of the text");
    }
    std::string_view const taken = rest().substr(0, end);
    take(end + 1);
    return taken;
}

std::string_view Cursor::take_label() {
    std::string_view const text = rest();
    std::size_t const end = static_cast<std::size_t>(
        std::find_if_not(text.begin(), text.end(), is_name_character) - text.begin());
    if (end == 0 || end == text.size() || text[end] != ':') return {};
    take(end + 1);
    return text.substr(0, end);
}

}  // namespace th_ptx
