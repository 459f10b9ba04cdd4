// Reads /proc/self/cgroup for the group and /proc/self/mountinfo for the folder of its files, then
// the limits there.
#include "runtime/cgroup.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace tensorhash::runtime {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

/// A mounted hierarchy of groups: `folder` has the files of group `top`.
struct Mount {
    std::string top;
    std::string folder;
};

bool has_word(std::string_view list, std::string_view word) {
    for (std::size_t begin = 0; begin <= list.size();) {
        std::size_t const end = std::min(list.find(',', begin), list.size());
        if (list.substr(begin, end - begin) == word) {
            return true;
        }
        begin = end + 1;
    }
    return false;
}

/// mountinfo escapes spaces and backslashes in names as \040 and \134.
std::string unescaped(std::string const& name) {
    std::string plain;
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (name[i] == '\\' && i + 3 < name.size()) {
            int code = 0;
            for (std::size_t digit = i + 1; digit < i + 4; ++digit) {
                code = code * 8 + (name[digit] - '0');
            }
            plain += static_cast<char>(code);
            i += 3;
        } else {
            plain += name[i];
        }
    }
    return plain;
}

/// The mount of the version 2 groups, or of the version 1 groups with the memory controller.
std::optional<Mount> find_mount(std::string const& root, bool version2) {
    std::ifstream lines(root + "/proc/self/mountinfo");
    for (std::string line; std::getline(lines, line);) {
        // id parent device top folder options [optional fields] - type source super-options
        std::size_t const dash = line.find(" - ");
        if (dash == std::string::npos) {
            continue;
        }
        std::istringstream left(line.substr(0, dash)), right(line.substr(dash + 3));
        std::string id, parent, device, top, folder, type, source, options;
        left >> id >> parent >> device >> top >> folder;
        right >> type >> source >> options;
        if (version2 ? type == "cgroup2" : type == "cgroup" && has_word(options, "memory")) {
            return Mount{unescaped(top), unescaped(folder)};
        }
    }
    return std::nullopt;
}

/// The process's group, as a path from the top of its hierarchy.
std::optional<std::string> find_group(std::string const& root, bool version2) {
    std::ifstream lines(root + "/proc/self/cgroup");
    for (std::string line; std::getline(lines, line);) {
        // number:controllers:path; version 2 has number 0 and no controllers
        std::size_t const first = line.find(':');
        std::size_t const second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) {
            continue;
        }
        std::string_view const controllers =
            std::string_view(line).substr(first + 1, second - first - 1);
        if (version2 ? controllers.empty() && line.starts_with("0:")
                     : has_word(controllers, "memory")) {
            return line.substr(second + 1);
        }
    }
    return std::nullopt;
}

/// A group's path below the mounted group. A container may see its group's path on the host, or one
/// outside the mount. Then only the mounted group can be read.
std::string below(Mount const& mount, std::string const& group) {
    std::string const top = mount.top == "/" ? "" : mount.top;
    bool const inside = group.starts_with(top) &&
                        (group.size() == top.size() || group[top.size()] == '/') &&
                        group.find("/..") == std::string::npos;
    std::string const path = inside ? group.substr(top.size()) : "";
    return path == "/" ? "" : path;
}

/// Without a limit, the file says "max" or a number larger than any memory.
std::size_t limit_in(std::string const& file) {
    std::size_t limit = 0;
    return std::ifstream(file) >> limit && limit > 0 ? limit : kNoLimit;
}

std::size_t smallest_limit(std::string const& root, bool version2) {
    auto const mount = find_mount(root, version2);
    auto const group = find_group(root, version2);
    if (!mount || !group) {
        return kNoLimit;
    }
    std::vector<char const*> const names =
        version2 ? std::vector<char const*>{"/memory.max", "/memory.high"}
                 : std::vector<char const*>{"/memory.limit_in_bytes"};
    std::size_t limit = kNoLimit;
    // From the process's group upwards: the limits of the groups above apply too.
    for (std::string path = below(*mount, *group);; path.resize(path.rfind('/'))) {
        for (char const* const name : names) {
            limit = std::min(limit, limit_in(root + mount->folder + path + name));
        }
        if (path.empty()) {
            return limit;
        }
    }
}

}  // namespace

std::size_t cgroup_memory_limit(std::string const& root) {
    return std::min(smallest_limit(root, true), smallest_limit(root, false));
}

}  // namespace tensorhash::runtime
