// Reads columns through Arrow's C data interface, as capsules of `__arrow_c_array__` and
// `__arrow_c_stream__` carry it. No Arrow library is needed.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tensorhash/strings.hpp"
#include "tensorhash/tensor.hpp"

// The structs of the specification: https://arrow.apache.org/docs/format/CDataInterface.html
struct ArrowSchema {
    char const* format;
    char const* name;
    char const* metadata;
    std::int64_t flags;
    std::int64_t n_children;
    ArrowSchema** children;
    ArrowSchema* dictionary;
    void (*release)(ArrowSchema*);
    void* private_data;
};

struct ArrowArray {
    std::int64_t length;
    std::int64_t null_count;
    std::int64_t offset;
    std::int64_t n_buffers;
    std::int64_t n_children;
    void const** buffers;
    ArrowArray** children;
    ArrowArray* dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
    int (*get_next)(ArrowArrayStream*, ArrowArray* out);
    char const* (*get_last_error)(ArrowArrayStream*);
    void (*release)(ArrowArrayStream*);
    void* private_data;
};

namespace tensorhash::bindings {

/// One column of imported data: pieces of arrays, with their type. Owns the memory it came from.
class ArrowColumn final : public StringSource {
public:
    struct Piece {
        ArrowArray const* array;
        std::size_t first;  // row of the array that is the piece's row 0
        std::size_t rows;
        std::size_t before;  // rows of earlier pieces
    };

    ArrowColumn(std::shared_ptr<void const> owner, ArrowSchema const* schema,
                std::vector<Piece> pieces);

    std::size_t rows() const noexcept override { return rows_; }
    /// The format of the values; for a dictionary, that of its values.
    std::string format() const { return values_->format; }
    bool is_text() const noexcept;
    /// (how many nulls, the row of the first).
    std::pair<std::size_t, std::size_t> nulls() const;
    /// The numbers, [N]. Throws TypeError that names `argument` if they are no numbers.
    Tensor numbers(std::string const& argument) const;
    void read(std::size_t begin, std::size_t count, std::string_view* strings,
              std::string& room) const override;
    bool is_preceded() const noexcept override { return true; }

private:
    bool is_null(Piece const& piece, std::size_t row) const;
    Piece const& piece_of(std::size_t row) const;

    std::shared_ptr<void const> owner_;
    ArrowSchema const* schema_;
    ArrowSchema const* values_;  // of the dictionary, or `schema_`
    std::vector<Piece> pieces_;
    std::size_t rows_ = 0;
};

/// A column without a name, or the named columns of a frame.
struct ArrowData {
    bool is_frame = false;
    std::vector<std::string> names;
    std::vector<std::shared_ptr<ArrowColumn>> columns;
};

/// Imports an object with `__arrow_c_stream__` or `__arrow_c_array__`.
ArrowData import_arrow(nanobind::handle object, char const* argument);

}  // namespace tensorhash::bindings
