// The string loops at every instruction-set level: the same queries and numbers as the table's own.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/engine.hpp"
#include "strings/string_loops.hpp"
#include "strings/string_table.hpp"

namespace tensorhash::strings {
#if defined(TH_HAS_LEVEL_v2)
StringLoops const& string_loops_v2();
#endif
#if defined(TH_HAS_LEVEL_v3)
StringLoops const& string_loops_v3();
#endif
#if defined(TH_HAS_LEVEL_generic)
StringLoops const& string_loops_generic();
#endif
}  // namespace tensorhash::strings

namespace {

namespace strings = tensorhash::strings;

std::vector<strings::StringLoops const*> levels() {
    std::vector<strings::StringLoops const*> out;
#if defined(TH_HAS_LEVEL_v2)
    out.push_back(&strings::string_loops_v2());
#endif
#if defined(TH_HAS_LEVEL_v3)
    if (tensorhash::cpu::has_v3()) out.push_back(&strings::string_loops_v3());
#endif
#if defined(TH_HAS_LEVEL_generic)
    out.push_back(&strings::string_loops_generic());
#endif
    return out;
}

TEST(StringLevels, find_what_the_table_has) {
    std::mt19937 random(7);
    strings::StringTable table(strings::string_secret_of(5));
    std::string block(strings::kBefore, '.');  // then all strings, one after the other
    std::vector<std::size_t> ends{block.size()};
    for (int i = 0; i < 2000; ++i) {
        block += std::to_string(random() % 1000) + std::string(random() % 60, 'x');
        ends.push_back(block.size());
        if (i % 2 == 0) {
            table.insert(table.query(std::string_view(block).substr(ends[ends.size() - 2])));
        }
    }
    std::vector<std::string_view> list;
    for (std::size_t i = 1; i < ends.size(); ++i) {
        list.push_back(std::string_view(block).substr(ends[i - 1], ends[i] - ends[i - 1]));
    }
    for (strings::StringLoops const* const loops : levels()) {
        for (bool const is_preceded : {false, true}) {
            std::vector<strings::Head> heads(list.size());
            std::vector<std::uint64_t> hashes(list.size());
            std::vector<std::uint32_t> numbers(list.size());
            loops->find(table.view(), table.secret(),
                        {list.data(), list.size(), is_preceded, heads.data(), hashes.data(),
                         numbers.data()});
            std::size_t known = 0;
            for (std::size_t i = 0; i < list.size(); ++i) {
                strings::Query const query = table.query(list[i]);
                EXPECT_EQ(hashes[i], query.hash);
                EXPECT_TRUE(strings::equals(heads[i], query.head));
                EXPECT_EQ(numbers[i], strings::find(table.view(), query));
                known += numbers[i] != strings::kNoString ? 1 : 0;
            }
            EXPECT_GE(known, list.size() / 2);
            EXPECT_LT(known, list.size());
        }
    }
}

}  // namespace
