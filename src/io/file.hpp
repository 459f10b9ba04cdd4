// Files: written whole or not at all, read whole or refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
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

/// Replaces `name` by what `writer` writes, as FileReplacement does.
void replace_file(std::string const& name, std::function<void(Sink&)> const& writer);

/// All of a file, uint8 [n]. Throws SystemError, or FormatError for what is no file or too long;
/// such a message goes on from `file_name: "<name>" is `.
Tensor read_file(std::string const& name, std::optional<std::uint64_t> max_bytes);

}  // namespace tensorhash::io
