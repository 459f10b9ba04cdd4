// Files: the memory limit for loading untrusted files, and atomic replacement.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tensorhash/export.hpp"

namespace tensorhash {

/// The memory limit of `load`: `max_bytes`, by default 64 MiB plus 32 bytes per byte of the file.
/// `load` refuses longer files and larger tables.
TH_API std::uint64_t load_limit(std::uint64_t file_bytes, std::optional<std::uint64_t> max_bytes);

/// A new file that replaces `file_name` on commit() and disappears without it.
///
/// A process killed at any moment leaves the old file or the new one. If it also leaves a temporary
/// file, the next replacement of the same name removes that. Links are followed, the mode is kept.
class TH_API FileReplacement {
public:
    /// Throws ValueError if the name cannot be a regular file, SystemError if the system refuses.
    explicit FileReplacement(std::string const& file_name);
    ~FileReplacement();
    FileReplacement(FileReplacement const&) = delete;
    FileReplacement& operator=(FileReplacement const&) = delete;

    /// Write here before commit(). This object owns and closes the descriptor.
    int descriptor() const noexcept;
    /// Syncs the file, renames it and syncs the folder. Throws SystemError and keeps the old file,
    /// unless only the last step failed: then the new file is in place.
    void commit();
    /// Closes the new file and removes it unless it was committed, as the destructor does.
    void discard() noexcept;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace tensorhash
