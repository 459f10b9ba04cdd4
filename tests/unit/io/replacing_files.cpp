// Saving over files: invalid names, links, modes, leftovers of a killed save, and disks that report
// errors.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <string_view>

#include "support/files.hpp"
#include "support/fixtures.hpp"

namespace th_test {
namespace {

/// If not 0, fsync of a folder fails with this error.
std::atomic<int> folder_error{0};
/// Pretends that /proc is missing: then files need temporary names, as on many network file
/// systems.
std::atomic<bool> no_proc{false};

struct FailingFolders {
    explicit FailingFolders(int error) { folder_error = error; }
    ~FailingFolders() { folder_error = 0; }
};

}  // namespace
}  // namespace th_test

// These replace the C library's functions: the tests link the library's objects.
extern "C" int fsync(int fd) {
    struct stat info{};
    if (int error = th_test::folder_error;
        error && fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
        errno = error;
        return -1;
    }
    return static_cast<int>(syscall(SYS_fsync, fd));
}
extern "C" int access(char const* name, int mode) noexcept {
    if (th_test::no_proc && std::string_view(name).starts_with("/proc/")) return -1;
    return faccessat(AT_FDCWD, name, mode, 0);
}

namespace th_test {
namespace {

using tensorhash::FileReplacement;
using tensorhash::FormatError;
using tensorhash::SystemError;
using tensorhash::ValueError;

/// Runs with files that have no name until they are complete, and with temporary names.
class ReplacingFiles : public ::testing::TestWithParam<bool> {
protected:
    ReplacingFiles() { no_proc = GetParam(); }
    ~ReplacingFiles() override { no_proc = false; }
};
INSTANTIATE_TEST_SUITE_P(Ways, ReplacingFiles, ::testing::Bool(),
                         [](auto const& test) { return test.param ? "named" : "nameless"; });

HashMap one_key(std::int64_t key = 1) {
    HashMap map = int64_map();
    map.activate(int64_keys({key}));
    return map;
}

mode_t mode_of(std::string const& path) {
    struct stat info{};
    EXPECT_EQ(lstat(path.c_str(), &info), 0);
    return info.st_mode;
}

TEST_P(ReplacingFiles, names_that_no_file_can_have_are_refused_and_nothing_is_written) {
    Folder folder;
    for (std::string const& name : {std::string(), folder / "", folder / "new/", folder / ".",
                                    folder / "..", folder / std::string("a\0b", 3)})
        message_of<ValueError>([&] { one_key().save(name); });
    ASSERT_TRUE(std::filesystem::create_directory(folder / "is"));
    EXPECT_THROW(one_key().save(folder / "is"), SystemError);
    EXPECT_THROW(one_key().save(folder / "is/"), ValueError);
    EXPECT_EQ(folder.files(), 1);
    EXPECT_TRUE(std::filesystem::is_empty(folder / "is"));
}

TEST_P(ReplacingFiles, a_pipe_is_neither_read_nor_replaced) {
    Folder folder;
    ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
    std::string text = message_of<FormatError>([&] { HashMap::load(folder / "pipe"); });
    EXPECT_NE(text.find("not a regular file"), std::string::npos) << text;
    message_of<ValueError>([&] { one_key().save(folder / "pipe"); });
    EXPECT_TRUE(S_ISFIFO(mode_of(folder / "pipe")));
}

TEST_P(ReplacingFiles, the_mode_of_the_old_file_is_kept) {
    Folder folder;
    one_key().save(folder / "t");
    mode_t const fresh = mode_of(folder / "t") & 0777;
    mode_t const mask = umask(0);
    umask(mask);
    EXPECT_EQ(fresh, 0666 & ~mask);
    for (mode_t mode : {0600u, 0640u, 0444u, 0666u}) {
        ASSERT_EQ(chmod((folder / "t").c_str(), mode), 0);
        one_key().save(folder / "t");
        EXPECT_EQ(mode_of(folder / "t") & 07777, mode);
    }
    EXPECT_EQ(folder.files(), 1);
}

TEST_P(ReplacingFiles, links_are_followed_and_stay) {
    Folder folder;
    ASSERT_TRUE(std::filesystem::create_directory(folder / "real"));
    one_key(1).save(folder / "real/t");
    std::filesystem::create_symlink("real/t", folder / "relative");
    std::filesystem::create_symlink(folder / "relative", folder / "twice");
    std::filesystem::create_symlink("real/new", folder / "dangling");
    one_key(2).save(folder / "twice");
    one_key(3).save(folder / "dangling");
    EXPECT_TRUE(S_ISLNK(mode_of(folder / "twice")) && S_ISLNK(mode_of(folder / "relative")));
    EXPECT_TRUE(S_ISREG(mode_of(folder / "real/t")) && S_ISREG(mode_of(folder / "real/new")));
    EXPECT_EQ(to_vector<std::int64_t>(HashMap::load(folder / "real/t").keys())[0], 2);
    EXPECT_EQ(to_vector<std::int64_t>(HashMap::load(folder / "dangling").keys())[0], 3);
    std::filesystem::create_symlink("loop", folder / "loop");
    EXPECT_THROW(one_key().save(folder / "loop"), SystemError);
}

TEST_P(ReplacingFiles, a_save_removes_what_a_killed_save_left_but_not_what_a_running_save_writes) {
    Folder folder;
    std::string const stale = folder / ".t.0123456789abcdef.tmp";
    std::string const running = folder / ".t.fedcba9876543210.tmp";
    std::vector<std::string> const others = {folder / ".u.0123456789abcdef.tmp",
                                             folder / ".t.0123456789abcdeg.tmp",
                                             folder / ".t.0123.tmp", folder / "t.tmp"};
    for (std::string const& other : others) write_file(other, "another program's");
    write_file(stale, "half a file");
    write_file(running, "soon a file");
    int const writer = open(running.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(flock(writer, LOCK_EX), 0);
    one_key().save(folder / "t");
    EXPECT_FALSE(std::filesystem::exists(stale));
    EXPECT_TRUE(std::filesystem::exists(running));
    for (std::string const& other : others) EXPECT_TRUE(std::filesystem::exists(other)) << other;
    close(writer);
    one_key().save(folder / "t");
    EXPECT_FALSE(std::filesystem::exists(running));
}

TEST_P(ReplacingFiles, two_replacements_of_one_file_do_not_disturb_each_other) {
    Folder folder;
    FileReplacement first(folder / "t"), second(folder / "t");
    if (GetParam()) {
        EXPECT_EQ(folder.files(), 2);
    }
    ASSERT_EQ(write(first.descriptor(), "first", 5), 5);
    ASSERT_EQ(write(second.descriptor(), "second", 6), 6);
    second.commit();
    EXPECT_EQ(read_file(folder / "t"), "second");
    first.commit();
    EXPECT_EQ(read_file(folder / "t"), "first");
    EXPECT_EQ(folder.files(), 1);
}

TEST_P(ReplacingFiles, an_uncommitted_file_vanishes) {
    Folder folder;
    write_file(folder / "t", "old");
    {
        FileReplacement gone(folder / "t");
        ASSERT_EQ(write(gone.descriptor(), "new", 3), 3);
    }
    FileReplacement discarded(folder / "t");
    discarded.discard();
    discarded.discard();
    EXPECT_EQ(read_file(folder / "t"), "old");
    EXPECT_EQ(folder.files(), 1);
}

TEST_P(ReplacingFiles, a_folder_that_cannot_be_synced_is_an_error) {
    Folder folder;
    {
        FailingFolders failing(EIO);
        try {
            one_key().save(folder / "t");
            ADD_FAILURE() << "no error";
        } catch (SystemError const& error) {
            EXPECT_EQ(error.code(), EIO);
            EXPECT_NE(std::string(error.what()).find("the folder of"), std::string::npos);
        }
    }
    EXPECT_EQ(folder.files(), 1) << "the new file, and nothing temporary";
    FailingFolders none(EINVAL);  // a file system that does not support it
    one_key().save(folder / "t");
}

TEST_P(ReplacingFiles, the_longest_names_can_be_saved) {
    Folder folder;
    std::string const name = folder / std::string(255, 'x');
    one_key().save(name);
    one_key().save(name);
    EXPECT_EQ(HashMap::load(name).size(), 1);
}

}  // namespace
}  // namespace th_test
