// Reads the memory limit of a process's control group from the file trees of Linux, containers and
// systemd.
#include "runtime/cgroup.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace th_test {
namespace {

constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
constexpr std::size_t gib = std::size_t{1} << 30;

/// A folder with the files of one machine.
class CgroupTree : public ::testing::Test {
protected:
    CgroupTree() {
        std::string name = (std::filesystem::temp_directory_path() / "cgroup.XXXXXX").string();
        root_ = mkdtemp(name.data());
    }
    ~CgroupTree() override { std::filesystem::remove_all(root_); }
    void put(std::string const& file, std::string const& text) {
        std::filesystem::path const path = root_ + file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text << '\n';
    }
    void limit(std::string const& folder, std::size_t bytes) {
        put(folder + "/memory.max", std::to_string(bytes));
    }
    void limit_v1(std::string const& folder, std::size_t bytes) {
        put(folder + "/memory.limit_in_bytes", std::to_string(bytes));
    }
    std::size_t found() const { return tensorhash::runtime::cgroup_memory_limit(root_); }

    std::string root_;
    std::string const v2_mount = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
    std::string const v1_mounts =
        "31 23 0:27 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n"
        "32 31 0:28 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n"
        "33 31 0:29 / /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory";
};

TEST_F(CgroupTree, a_machine_without_groups_has_no_limit) { EXPECT_EQ(found(), none); }

TEST_F(CgroupTree, version_2_reads_the_group_of_the_process_not_the_top) {
    put("/proc/self/mountinfo", v2_mount);
    put("/proc/self/cgroup", "0::/user.slice/job.scope");
    limit("/sys/fs/cgroup/user.slice/job.scope", 2 * gib);
    put("/sys/fs/cgroup/user.slice/memory.max", "max");
    EXPECT_EQ(found(), 2 * gib);
}

TEST_F(CgroupTree, a_group_above_may_allow_less) {
    put("/proc/self/mountinfo", v2_mount);
    put("/proc/self/cgroup", "0::/user.slice/job.scope");
    limit("/sys/fs/cgroup/user.slice/job.scope", 2 * gib);
    limit("/sys/fs/cgroup/user.slice", gib);
    EXPECT_EQ(found(), gib);
    put("/sys/fs/cgroup/user.slice/job.scope/memory.high", std::to_string(gib / 2));
    EXPECT_EQ(found(), gib / 2);
}

TEST_F(CgroupTree, a_container_may_see_itself_as_the_root) {
    put("/proc/self/mountinfo", v2_mount);
    put("/proc/self/cgroup", "0::/");
    limit("/sys/fs/cgroup", 3 * gib);
    EXPECT_EQ(found(), 3 * gib);
}

TEST_F(CgroupTree, no_limit_reads_as_max_or_as_a_huge_number) {
    put("/proc/self/mountinfo", v2_mount + "\n" + v1_mounts);
    put("/proc/self/cgroup", "4:memory:/\n0::/job");
    put("/sys/fs/cgroup/job/memory.max", "max");
    EXPECT_EQ(found(), none);
    limit_v1("/sys/fs/cgroup/memory", 9223372036854771712u);
    EXPECT_EQ(found(), 9223372036854771712u);
}

TEST_F(CgroupTree, version_1_reads_the_group_of_the_memory_controller) {
    put("/proc/self/mountinfo", v1_mounts);
    put("/proc/self/cgroup", "5:cpu,cpuacct:/other\n4:memory:/batch/job7\n1:name=systemd:/");
    limit_v1("/sys/fs/cgroup/memory/batch/job7", gib);
    limit_v1("/sys/fs/cgroup/memory", 64 * gib);
    limit_v1("/sys/fs/cgroup/memory/other", 1);
    EXPECT_EQ(found(), gib);
    limit_v1("/sys/fs/cgroup/memory/batch", gib / 4);
    EXPECT_EQ(found(), gib / 4);
}

TEST_F(CgroupTree, a_container_may_see_its_path_on_the_host) {
    put("/proc/self/mountinfo",
        "33 31 0:29 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory");
    put("/proc/self/cgroup", "4:memory:/docker/abc");
    limit_v1("/sys/fs/cgroup/memory", 5 * gib);
    EXPECT_EQ(found(), 5 * gib);
    put("/proc/self/cgroup", "4:memory:/docker/abc/inner");
    limit_v1("/sys/fs/cgroup/memory/inner", gib);
    EXPECT_EQ(found(), gib);
    put("/proc/self/cgroup",
        "4:memory:/docker/abcdef");  // another group: only the mounted one is visible
    EXPECT_EQ(found(), 5 * gib);
    put("/proc/self/cgroup", "4:memory:/../outside");
    EXPECT_EQ(found(), 5 * gib);
}

TEST_F(CgroupTree, mixed_hierarchies_have_memory_in_one_of_them) {
    put("/proc/self/mountinfo",
        v1_mounts + "\n41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw");
    put("/proc/self/cgroup", "4:memory:/api/run\n0::/");
    limit_v1("/sys/fs/cgroup/memory/api/run", gib);
    EXPECT_EQ(found(), gib);
}

TEST_F(CgroupTree, names_with_spaces_and_malformed_lines_are_handled) {
    put("/proc/self/mountinfo", "\nodd\n1 2 3 - \n30 23 0:26 / /my\\040groups rw - cgroup2 x rw");
    put("/proc/self/cgroup", "\n:\nodd\n0::/a b");
    limit("/my groups/a b", gib);
    EXPECT_EQ(found(), gib);
    put("/my groups/a b/memory.max", "");
    EXPECT_EQ(found(), none);
}

TEST(Cgroup, the_limit_of_this_process_can_be_read) {
    EXPECT_GT(tensorhash::runtime::cgroup_memory_limit(), 0u);
}

}  // namespace
}  // namespace th_test
