// Files: written whole or not at all, read whole or refused.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tensorhash/tensor.hpp"

namespace tensorhash::io {

/// Where bytes go.
class Sink {
public:
    virtual ~Sink() = default;
    virtual void write(void const* data, std::size_t bytes) = 0;
};

class MemorySink final : public Sink {
public:
    void write(void const* data, std::size_t bytes) override;
    /// uint8 [n].
    Tensor take();

private:
    std::vector<unsigned char> bytes_;
};

/// Replaces `name` by what `writer` writes: into a nameless file of the same folder, synced, then renamed over `name`.
/// A process killed at any moment leaves the old file or the new one. Throws SystemError.
void replace_file(std::string const& name, std::function<void(Sink&)> const& writer);

/// All of a file, uint8 [n]. Throws SystemError.
Tensor read_file(std::string const& name);

}  // namespace tensorhash::io
