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

/// A destination for bytes.
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

/// Replaces the file `name` with what `writer` writes, through a FileReplacement.
void replace_file(std::string const& name, std::function<void(Sink&)> const& writer);

/// The whole file, uint8 [n]. Throws SystemError, or FormatError if it is too long or not a regular
/// file. The caller puts `file_name: "<name>" is ` before the message of a FormatError.
Tensor read_file(std::string const& name, std::optional<std::uint64_t> max_bytes);

}  // namespace tensorhash::io
