// SharedMemory: rows and messages reach who opens it by name; everything else is refused.
#include <unistd.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/fixtures.hpp"
#include "tensorhash/error.hpp"
#include "tensorhash/ranks.hpp"

namespace th_test {
namespace {

using tensorhash::SharedMemory;
using tensorhash::ValueError;
using Message = SharedMemory::Message;

Element const kInt64{Dtype::Int64, {}};
std::int64_t const kProcess = getpid();

TEST(SharedMemory, rows_are_read_where_they_were_written) {
    SharedMemory const memory(1 << 16, "th-test-rows");
    Tensor written = memory.rows(64, 3, kInt64);
    tensorhash::copy_rows(Tensor::from<std::int64_t>({1, 2, 3, 4}), 1, 4, written, 0);
    Tensor read;
    {
        SharedMemory const other(kProcess, memory.file(), "th-test-rows");
        EXPECT_EQ(other.bytes(), 1 << 16);
        EXPECT_EQ(other.file(), -1);  // a process has few descriptors
        read = other.rows(64, 3, kInt64);
    }
    EXPECT_EQ(to_vector<std::int64_t>(read), (std::vector<std::int64_t>{2, 3, 4}));
    EXPECT_EQ(to_vector<std::int64_t>(memory.rows(0, 1, kInt64))[0], 0);
}

TEST(SharedMemory, rows_outlive_the_object) {
    auto memory = std::make_optional<SharedMemory>(1 << 16, "th-test-lives");
    Tensor rows = memory->rows(0, 2, kInt64);
    memory.reset();
    rows.as_mutable<std::int64_t>()[1] = 7;
    EXPECT_EQ(to_vector<std::int64_t>(rows)[1], 7);
}

TEST(SharedMemory, what_does_not_have_the_name_is_not_opened) {
    auto memory = std::make_optional<SharedMemory>(4096, "th-test-name");
    std::int64_t const file = memory->file();
    EXPECT_THROW(SharedMemory(kProcess, file, "th-test-nam"), tensorhash::SystemError);
    EXPECT_THROW(SharedMemory(kProcess, 0, "th-test-name"), tensorhash::SystemError);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);  // opening one would wait
    EXPECT_THROW(SharedMemory(kProcess, ends[0], "th-test-name"), tensorhash::SystemError);
    close(ends[0]);
    close(ends[1]);
    memory.reset();
    EXPECT_THROW(SharedMemory(kProcess, file, "th-test-name"), tensorhash::SystemError);
    EXPECT_THROW(SharedMemory(0, "th-test-name"), std::bad_alloc);
}

TEST(SharedMemory, rows_beyond_the_end_are_refused) {
    SharedMemory const memory(4096, "th-test-end");
    EXPECT_EQ(memory.rows(4096, 0, kInt64).shape(), (Shape{0}));
    EXPECT_EQ(memory.rows(8, 511, kInt64).shape(), (Shape{511}));
    EXPECT_THROW(memory.rows(8, 512, kInt64), ValueError);
    EXPECT_THROW(memory.rows(-8, 1, kInt64), ValueError);
    EXPECT_THROW(memory.rows(0, -1, kInt64), ValueError);
    EXPECT_THROW(memory.rows(0, std::int64_t{1} << 61, kInt64), ValueError);
}

TEST(SharedMemory, messages_are_taken_in_order_while_another_thread_posts) {
    SharedMemory memory(2 * SharedMemory::kBoxBytes, "th-test-order");
    SharedMemory answers(SharedMemory::kBoxBytes, "th-test-answers");
    SharedMemory const reader(kProcess, memory.file(), "th-test-order");
    constexpr std::uint32_t kMessages = 5000;
    std::thread poster([&] {
        for (std::int64_t number = 0; number < kMessages; ++number) {
            memory.post(1, {number, -number, number * number, 5});
            // A box keeps eight messages: wait for an answer now and then.
            if (number % 4 == 3) {
                ASSERT_TRUE(answers.take(0, static_cast<std::uint32_t>(number / 4), 60));
            }
        }
    });
    for (std::uint32_t number = 0; number < kMessages; ++number) {
        std::int64_t const wanted = number;
        EXPECT_EQ(reader.take(1, number, 60), (Message{wanted, -wanted, wanted * wanted, 5}));
        if (number % 4 == 3) answers.post(0, {});
    }
    poster.join();
    EXPECT_EQ(reader.take(1, kMessages, 0), std::nullopt);
    EXPECT_EQ(reader.take(0, 0, 0.02), std::nullopt);  // nothing came into the other box
    EXPECT_THROW(reader.take(2, 0, 0), tensorhash::IndexError);
    EXPECT_THROW(memory.post(-1, {}), tensorhash::IndexError);
}

TEST(SharedMemory, a_box_tells_how_many_messages_were_taken) {
    SharedMemory memory(2 * SharedMemory::kBoxBytes, "th-test-taken");
    SharedMemory const reader(kProcess, memory.file(), "th-test-taken");
    memory.post(1, {1, 2, 3, 4});
    EXPECT_EQ(reader.taken(1), 0U);
    memory.set_taken(1, 0xFFFFFFFF);
    EXPECT_EQ(reader.taken(1), 0xFFFFFFFF);
    EXPECT_EQ(reader.taken(0), 0U);
    EXPECT_EQ(reader.take(1, 0, 0), (Message{1, 2, 3, 4}));
    EXPECT_EQ(reader.take(1, 1, 0), std::nullopt);
    EXPECT_THROW(memory.set_taken(2, 1), tensorhash::IndexError);
    EXPECT_THROW(reader.taken(-1), tensorhash::IndexError);
}

TEST(CopyRows, copies_the_rows_that_were_asked_for) {
    Tensor const from = Tensor::from<std::int64_t>({1, 2, 3, 4, 5});
    Tensor to = Tensor::zeros({4}, Dtype::Int64);
    tensorhash::copy_rows(from, 3, 5, to, 1);
    EXPECT_EQ(to_vector<std::int64_t>(to), (std::vector<std::int64_t>{0, 4, 5, 0}));
    tensorhash::copy_rows(from, 5, 5, to, 4);
    EXPECT_THROW(tensorhash::copy_rows(from, 3, 6, to, 0), ValueError);
    EXPECT_THROW(tensorhash::copy_rows(from, 3, 2, to, 0), ValueError);
    EXPECT_THROW(tensorhash::copy_rows(from, -1, 2, to, 0), ValueError);
    EXPECT_THROW(tensorhash::copy_rows(from, 0, 2, to, 3), ValueError);
    Tensor narrow = Tensor::zeros({9}, Dtype::Int32);
    EXPECT_THROW(tensorhash::copy_rows(from, 0, 2, narrow, 0), ValueError);
}

}  // namespace
}  // namespace th_test
