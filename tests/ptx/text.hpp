// Cuts PTX into statements and statements into words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace th_ptx {

std::string_view trimmed(std::string_view text);

/// The parts between separators that are not inside brackets or braces.
std::vector<std::string> split(std::string_view text, char separator);

/// Words between white space.
std::vector<std::string> words_of(std::string_view text);

/// Comments become spaces; line breaks stay, so that lines can be counted.
std::string without_comments(std::string_view text);

/// A position in PTX text that knows its line.
class Cursor {
public:
    explicit Cursor(std::string_view text) : text_(text) {}

    void skip_space();
    bool at_end() const { return at_ == text_.size(); }
    char peek() const { return text_[at_]; }
    std::uint32_t line() const { return line_; }
    std::string_view rest() const { return text_.substr(at_); }

    /// What comes before the first of these characters, which is taken too. Throws PtxError if none
    /// follows.
    std::string_view take_until(char const* characters);
    void take(std::size_t count);
    /// Takes "name:" and returns the name; empty if no label comes next.
    std::string_view take_label();

private:
    std::string_view text_;
    std::size_t at_ = 0;
    std::uint32_t line_ = 1;
};

}  // namespace th_ptx
