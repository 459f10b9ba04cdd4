// Files of any origin: how much memory reading one may take, and replacing one as a whole.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tensorhash/export.hpp"

namespace tensorhash {

/// The most bytes that `load` makes of a file: `max_bytes`, by default 64 MiB and 32 for each byte
/// of the file. No longer file is read and no larger table is made.
TH_API std::uint64_t load_limit(std::uint64_t file_bytes, std::optional<std::uint64_t> max_bytes);

/// A new file that takes the place of `file_name` when commit() is called, and vanishes otherwise.
///
/// A process killed at any moment leaves the old file or the new one; what else it may leave, the
/// next replacement of the same name removes. Links are followed, and the mode of the old file is
/// kept.
class TH_API FileReplacement {
public:
    /// Throws ValueError for a name that cannot be a file's, SystemError if the system refuses.
    explicit FileReplacement(std::string const& file_name);
    ~FileReplacement();
    FileReplacement(FileReplacement const&) = delete;
    FileReplacement& operator=(FileReplacement const&) = delete;

    /// Where to write, until commit() or discard(). It stays this object's.
    int descriptor() const noexcept;
    /// Syncs the file, renames it and syncs the folder. Throws SystemError; only if it is the
    /// folder that cannot be synced has the new file taken its place already.
    void commit();
    /// Does now what the destructor would: the new file vanishes unless it was committed.
    void discard() noexcept;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace tensorhash
