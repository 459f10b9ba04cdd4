// Folders and files for tests, and a way to give a changed file a valid checksum again.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "io/checksum.hpp"
#include "tensorhash/tensorhash.hpp"

namespace th_test {

/// A new folder that is removed at the end.
class Folder {
public:
    Folder() {
        std::string name = std::filesystem::temp_directory_path() / "tensorhash-test-XXXXXX";
        if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
        path_ = name;
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(Folder const&) = delete;
    Folder& operator=(Folder const&) = delete;
    std::string operator/(std::string const& name) const { return path_ / name; }
    std::ptrdiff_t files() const {
        return std::distance(std::filesystem::directory_iterator(path_),
                             std::filesystem::directory_iterator());
    }

private:
    std::filesystem::path path_;
};

inline std::string read_file(std::string const& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void write_file(std::string const& path, std::string const& bytes) {
    std::ofstream(path, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline tensorhash::Tensor as_tensor(std::string const& bytes) {
    tensorhash::Tensor out = tensorhash::Tensor::empty({static_cast<std::int64_t>(bytes.size())},
                                                       tensorhash::Dtype::UInt8);
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
}

/// Writes a number into bytes.
template <class T>
void put(std::string& bytes, std::size_t at, T number) {
    std::memcpy(bytes.data() + at, &number, sizeof(number));
}

/// Sets the last eight of the bytes [begin, end) to the checksum of those before.
inline void seal(std::string& bytes, std::size_t begin, std::size_t end) {
    if (end - begin < 8) return;
    tensorhash::io::Checksum checksum;
    checksum.add(bytes.data() + begin, end - begin - 8);
    put(bytes, end - 8, checksum.value());
}
inline void seal(std::string& bytes) { seal(bytes, 0, bytes.size()); }

}  // namespace th_test
