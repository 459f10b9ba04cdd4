// Words with a slot of their own against a map.
#include "cpu/direct_words.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace {

namespace cpu = tensorhash::cpu;

/// Adds the distinct words. Word i has number numbers[i].
void add_all(cpu::DirectWords& direct, std::vector<std::uint64_t> const& words,
             std::vector<std::uint32_t> const& numbers) {
    for (std::size_t i = 0; i < words.size(); ++i) direct.add(words[i], numbers[i]);
}

/// Every word has its number or is left out. Returns how many are left out.
std::size_t check_all(cpu::DirectWords const& direct, std::vector<std::uint64_t> const& words,
                      std::vector<std::uint32_t> const& numbers) {
    std::size_t missing = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
        std::uint32_t found = 0;
        if (direct.recall(&words[i], 1, &found) == 0) {
            ++missing;
        } else {
            EXPECT_EQ(found, numbers[i]) << words[i];
        }
        EXPECT_EQ(direct.number(i), numbers[i]);
    }
    return missing;
}

std::vector<std::uint64_t> distinct_words(std::size_t count) {
    std::mt19937_64 random(count);
    std::vector<std::uint64_t> words(count);
    for (std::uint64_t& word : words) word = random();
    return words;
}

// A number may become larger than the slots can hold. That word alone is left out.
TEST(DirectWords, a_word_with_a_large_number_takes_no_slot_from_others) {
    std::vector<std::uint64_t> words = distinct_words(60);
    std::vector<std::uint32_t> numbers(words.size(), 0);
    cpu::DirectWords direct(8, 8192);
    for (std::size_t i = 0; i < words.size(); ++i) {
        // Words of few groups, so that groups are shifted.
        words[i] = (words[i] & 0x003fffffffffffff) | (1 + i % 3) << 54;
        direct.add(words[i], 0);
        if (i % 4 == 0) {
            numbers[i] = 1u << 20;
            direct.renumber(i, numbers[i]);
        }
    }
    EXPECT_EQ(check_all(direct, words, numbers), 15u);
}

TEST(DirectWords, have_their_numbers_also_after_growth_and_renumbering) {
    for (std::size_t const count : {1u, 100u, 1000u, 8192u}) {
        std::vector<std::uint64_t> const words = distinct_words(count);
        std::vector<std::uint32_t> numbers(count);
        for (std::size_t const expected : {std::size_t{1}, count}) {
            cpu::DirectWords direct(expected, count);
            std::fill(numbers.begin(), numbers.end(), 0);
            add_all(direct, words, numbers);
            EXPECT_LE(check_all(direct, words, numbers), 1 + count / 200);
            for (std::size_t i = 0; i < count; ++i) {
                numbers[i] = static_cast<std::uint32_t>(count - 1 - i);
                direct.renumber(i, numbers[i]);
            }
            EXPECT_LE(check_all(direct, words, numbers), 1 + count / 200);
        }
    }
}

TEST(DirectWords, does_not_know_other_words) {
    std::vector<std::uint64_t> const words = distinct_words(500);
    std::vector<std::uint32_t> const numbers(500, 7);
    cpu::DirectWords direct(500, 500);
    std::uint32_t found = 0;
    for (std::uint64_t const low : {0u, 1u, 255u, 2047u, 70000u}) {  // as empty slots look
        EXPECT_EQ(direct.recall(&low, 1, &found), 0u);
    }
    add_all(direct, words, numbers);
    for (std::uint64_t low = 0; low < 10000; ++low) EXPECT_EQ(direct.recall(&low, 1, &found), 0u);
    for (std::uint64_t const word : words) {
        for (std::size_t bit = 0; bit < 64; ++bit) {
            std::uint64_t const other = word ^ std::uint64_t{1} << bit;
            EXPECT_EQ(direct.recall(&other, 1, &found), 0u);
        }
    }
}

TEST(DirectWords, that_no_shift_can_separate_are_left_out) {
    constexpr std::uint64_t kTop = std::uint64_t{5} << 54;
    std::vector<std::uint64_t> words;
    for (std::uint64_t i = 0; i < 40; ++i) words.push_back(kTop | i << 30 | 3);  // one slot
    for (std::uint64_t i = 0; i < 40; ++i) words.push_back(i << 1);       // look like empty slots
    for (std::uint64_t i = 1; i < 40; ++i) words.push_back(i << 30 | 3);  // one slot
    for (std::uint64_t i = 0; i < 40; ++i) words.push_back(kTop | i << 40 | (i * 5 + 1));
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < words.size(); ++i) numbers.push_back(i);
    cpu::DirectWords direct(words.size(), words.size());
    add_all(direct, words, numbers);
    std::size_t const missing = check_all(direct, words, numbers);
    EXPECT_GE(missing, 2 * 39u);
    EXPECT_LE(missing, 120u);
    for (std::uint64_t low = 1; low < 10000; low += low < 80 ? 2 : 1) {
        std::uint32_t found = 0;
        EXPECT_EQ(direct.recall(&low, 1, &found), 0u);
    }
}

TEST(DirectWords, counts_the_words_before_the_first_that_is_not_here) {
    cpu::DirectWords direct(10, 10);
    direct.add(std::uint64_t{1} << 60, 3);
    std::vector<std::uint64_t> const words{std::uint64_t{1} << 60, std::uint64_t{1} << 60, 9};
    std::vector<std::uint32_t> numbers(3, 99);
    EXPECT_EQ(direct.recall(words.data(), 3, numbers.data()), 2u);
    EXPECT_EQ(numbers, (std::vector<std::uint32_t>{3, 3, 99}));
}

}  // namespace
