// A call reads a batch to its last byte and no further: these arrays end at unreadable memory.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "support/fixtures.hpp"

namespace th_test {
namespace {

using tensorhash::BoundedHashMap;
using tensorhash::Eviction;

/// A copy of a tensor that ends at the last readable byte.
class AtTheEnd {
public:
    explicit AtTheEnd(Tensor const& like) {
        auto const page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        std::size_t const bytes = like.bytes();
        std::size_t const readable = (bytes + page - 1) / page * page;
        mapped_ = readable + page;
        memory_ =
            mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        auto* const first = static_cast<unsigned char*>(memory_);
        unsigned char* const at = first + readable - bytes;
        std::memcpy(at, like.data(), bytes);
        mprotect(first + readable, page, PROT_NONE);
        tensor_ = Tensor::borrow(static_cast<void const*>(at), like.shape(), like.dtype());
    }
    ~AtTheEnd() { munmap(memory_, mapped_); }
    AtTheEnd(AtTheEnd const&) = delete;
    AtTheEnd& operator=(AtTheEnd const&) = delete;

    operator Tensor const&() const { return tensor_; }

private:
    void* memory_;
    std::size_t mapped_;
    Tensor tensor_;
};

class ArraysAtTheirEnd : public OverKinds {};

TEST_P(ArraysAtTheirEnd, keys_and_values_are_read_to_their_last_byte_and_no_further) {
    for (std::size_t rows : {std::size_t{1}, few_rows + 1, many_rows + 1}) {
        Ids const ids = random_ids(rows, 2 * rows, rows);
        AtTheEnd const keys(make_keys(key(), ids));
        AtTheEnd const values(make_finite_values({Dtype::Float32, {3}}, rows, 1));
        HashMap map = make_map(Capacity{0}, key(), {{Dtype::Float32, {3}}});
        map.insert(keys, {values});
        map.insert_or_assign(keys, {values});
        map.accumulate(keys, {values}, {Reduce::Sum});
        EXPECT_EQ(map.find(keys).mask.size(), static_cast<std::int64_t>(rows));
        map.get(keys);
        map.erase(keys);
        EXPECT_EQ(map.size(), 0);
        tensorhash::unique(keys);
    }
}

TH_OVER_KINDS(ArraysAtTheirEnd, sample_kinds());

TEST(ScoresAtTheirEnd, scores_are_read_to_their_last_byte_and_no_further) {
    // For 131073 and 261632 rows, the scratch block for the scores is larger than the scores. A
    // copy that fills the whole block would read past the array.
    for (std::size_t rows :
         {std::size_t{1}, std::size_t{1001}, std::size_t{131073}, std::size_t{261632}}) {
        std::vector<std::int64_t> ascending(rows);
        for (std::size_t row = 0; row < rows; ++row)
            ascending[row] = static_cast<std::int64_t>(row);
        AtTheEnd const keys(Tensor::from(ascending));
        AtTheEnd const scores(Tensor::from(ascending));
        BoundedHashMap map(Capacity{static_cast<std::int64_t>(rows)}, {Dtype::Int64, {}}, {},
                           Eviction::Score);
        map.insert(keys, {}, scores);
        map.get_and_touch(keys, {}, scores);
        EXPECT_EQ(to_vector<std::int64_t>(map.scores()), ascending);
    }
}

}  // namespace
}  // namespace th_test
