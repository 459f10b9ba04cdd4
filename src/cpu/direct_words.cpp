// Places words in a DirectTable.
#include "cpu/direct_words.hpp"

#include <algorithm>
#include <bit>

namespace tensorhash::cpu {
namespace {

constexpr std::size_t kFewestSlots = 256;
constexpr std::size_t kSlotsPerWord = 4;  // at first; at least 3 later
constexpr std::uint32_t kTries = 256;

std::size_t slots_for(std::size_t words) {
    return std::bit_ceil(std::max(kSlotsPerWord * words, kFewestSlots));
}

}  // namespace

DirectWords::DirectWords(std::size_t expected, std::size_t most)
    : most_slots_(slots_for(most)), memory_((most_slots_ + most) * sizeof(std::uint64_t) +
                                            (kShifts + 2 * most) * sizeof(std::uint32_t)) {
    table_.slots = reinterpret_cast<std::uint64_t*>(memory_.data());
    words_ = table_.slots + most_slots_;
    table_.shifts = reinterpret_cast<std::uint32_t*>(words_ + most);
    numbers_ = table_.shifts + kShifts;
    next_ = numbers_ + most;
    clear(slots_for(std::min(expected, most)));
}

void DirectWords::clear(std::size_t slots) noexcept {
    table_.mask = slots - 1;
    for (std::uint64_t slot = 0; slot < slots; ++slot) table_.slots[slot] = table_.empty(slot);
    std::fill_n(table_.shifts, kShifts, 0);
    first_.fill(kNone);
}

void DirectWords::add(std::uint64_t word, std::uint32_t number) {
    words_[count_] = word;
    numbers_[count_] = number;
    ++count_;
    std::size_t const slots = table_.mask + 1;
    if (3 * count_ <= slots || slots == most_slots_) {
        return place(static_cast<std::uint32_t>(count_ - 1));
    }
    clear(2 * slots);
    for (std::uint32_t i = 0; i < count_; ++i) place(i);
}

void DirectWords::renumber(std::size_t i, std::uint32_t number) noexcept {
    auto const at = static_cast<std::uint32_t>(i);
    bool const is_placed = holds(at);
    numbers_[i] = number;
    if (!is_placed) return;
    std::uint64_t const slot = table_.slot_of(words_[i]);
    table_.slots[slot] =
        number < table_.mask ? table_.entry(words_[i], number) : table_.empty(slot);
}

/// Is word i in its slot?
bool DirectWords::holds(std::uint32_t i) const noexcept {
    return table_.slots[table_.slot_of(words_[i])] == table_.entry(words_[i], numbers_[i]);
}

/// Puts word i in its slot if that is empty.
bool DirectWords::write(std::uint32_t i) noexcept {
    std::uint64_t const slot = table_.slot_of(words_[i]);
    if (table_.slots[slot] != table_.empty(slot) || numbers_[i] >= table_.mask) return false;
    table_.slots[slot] = table_.entry(words_[i], numbers_[i]);
    return true;
}

/// Puts a list of words in their slots, or none of them. Leaves out words with large numbers.
bool DirectWords::write_group(std::uint32_t first) noexcept {
    for (std::uint32_t i = first; i != kNone; i = next_[i]) {
        if (numbers_[i] >= table_.mask || write(i)) continue;
        empty_group(first, i);
        return false;
    }
    return true;
}

/// Empties the slots of a list of words, up to word `end`.
void DirectWords::empty_group(std::uint32_t first, std::uint32_t end) noexcept {
    for (std::uint32_t i = first; i != end; i = next_[i]) {
        if (holds(i)) {
            std::uint64_t const slot = table_.slot_of(words_[i]);
            table_.slots[slot] = table_.empty(slot);
        }
    }
}

/// Puts word i in its slot. If that is taken, shifts the words of the group to other slots.
void DirectWords::place(std::uint32_t i) noexcept {
    std::size_t const group = DirectTable::group_of(words_[i]);
    next_[i] = first_[group];
    if (write(i)) {
        first_[group] = i;
        return;
    }
    if (group == kUnshifted || numbers_[i] >= table_.mask) return;
    empty_group(first_[group], kNone);
    std::uint32_t const before = table_.shifts[group];
    for (std::uint32_t tried = 0; tried < kTries; ++tried) {
        ++table_.shifts[group];
        if (write_group(i)) {
            first_[group] = i;
            return;
        }
    }
    table_.shifts[group] = before;
    write_group(first_[group]);
}

}  // namespace tensorhash::cpu
