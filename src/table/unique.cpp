// unique(): claims all rows in a temporary index, as insert does. The rows that win their key, in
// row order, are the result. Nothing is published in the index and no key is copied to a table.
#include "table/unique.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "index/bucket_index.hpp"
#include "runtime/parallel.hpp"
#include "runtime/seed.hpp"
#include "table/table.hpp"
#include "tensor/shapes.hpp"
#include "tensorhash/threads.hpp"

namespace tensorhash::table {
namespace {

using backend::KeyRows;
using runtime::Block;
using runtime::Chunks;

// From this many rows on a sample pays off: an index that is larger than needed is slow.
constexpr std::size_t kSampledFrom = std::size_t{1} << 16;
constexpr std::size_t kSample = std::size_t{1} << 13;

std::uint32_t* words(Block& block) { return reinterpret_cast<std::uint32_t*>(block.data()); }

/// Memory for the claims of a batch.
struct Scratch {
    Block positions;
    Block buf_indices;
    Block mask;

    explicit Scratch(std::size_t rows)
        : positions(rows * sizeof(std::uint32_t)), buf_indices(rows * sizeof(std::uint32_t)),
          mask(rows) {}
    step::BatchView batch(Bytes keys) {
        return {keys, 0, words(positions), words(buf_indices), mask.data()};
    }
};

/// Estimates the distinct rows from a sample in which `seen` of `sample` rows were distinct, as if
/// all distinct rows were equally frequent: n draws from D find D * (1 - exp(-n / D)).
double estimate_distinct(double seen, double sample, double rows) {
    if (seen >= sample) {
        return rows;
    }
    auto const found = [](double distinct, double draws) {
        return -distinct * std::expm1(-draws / distinct);
    };
    double low = seen;
    double high = std::max(rows * sample, 2 * seen);
    for (int i = 0; i < 60; ++i) {
        double const middle = std::sqrt(low * high);
        (found(middle, sample) < seen ? low : high) = middle;
    }
    return found(high, rows);
}

/// A first guess at the number of distinct rows, somewhat above the estimate.
std::uint64_t guess_distinct(step::KeyFormat format, Bytes keys, std::size_t rows,
                             std::uint64_t seed) {
    if (rows < kSampledFrom) {
        return rows;
    }
    Block sampled(kSample * format.bytes);
    std::size_t const step = rows / kSample;
    for (std::size_t i = 0; i < kSample; ++i) {
        std::memcpy(sampled.data() + i * format.bytes, keys + i * step * format.bytes,
                    format.bytes);
    }
    Scratch scratch(kSample);
    BucketIndex index(format, BucketIndex::buckets_for(format, kSample), seed);
    auto const seen = index.claim(nullptr, scratch.batch(sampled.data()), 0, kSample).claimed;
    double const distinct = estimate_distinct(
        static_cast<double>(seen), static_cast<double>(kSample), static_cast<double>(rows));
    return std::min<std::uint64_t>(rows, static_cast<std::uint64_t>(distinct * 1.1) + 1024);
}

struct Claims {
    BucketIndex index;
    std::uint64_t distinct = 0;
};

/// Claims all rows. If the index turns out too small, starts again with one four times as large.
Claims claim_rows(step::KeyFormat format, step::BatchView const& batch, std::size_t rows) {
    std::uint64_t const seed = runtime::new_seed();
    std::uint64_t capacity = guess_distinct(format, batch.keys, rows, seed);
    for (;;) {
        Claims claims{BucketIndex(format, BucketIndex::buckets_for(format, capacity), seed)};
        std::size_t done = 0;
        while (done < rows && (capacity >= rows || claims.index.room() > capacity / 8)) {
            std::size_t const left = rows - done;
            std::size_t const step =
                capacity >= rows ? left : std::min<std::size_t>(left, claims.index.room());
            claims.distinct += claims.index.claim(nullptr, batch, done, done + step).claimed;
            done += step;
        }
        if (done == rows) {
            return claims;
        }
        capacity = std::min<std::uint64_t>(4 * capacity, rows);
    }
}

template <class Body>
void for_rows(std::size_t rows, Body&& body) {
    runtime::for_ranges(rows, runtime::kGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            body(row);
        }
    });
}

/// Writes the results that the caller wants.
class ResultWriter {
public:
    ResultWriter(KeyRows batch, Element const& element, UniqueParts parts, std::uint64_t distinct)
        : batch_(batch), row_bytes_(element.bytes()), parts_(parts),
          distinct_(static_cast<std::size_t>(distinct)) {
        auto const list = [](bool wanted, std::size_t rows) {
            return Tensor::empty(with_rows(wanted ? rows : 0, {}), Dtype::Int64);
        };
        out_.rows = Tensor::empty(with_rows(distinct_, element.shape), element.dtype);
        out_.index = list(parts.index, distinct_);
        out_.inverse = list(parts.inverse, batch.rows);
        out_.counts = list(parts.counts, distinct_);
    }

    void fill_all_distinct() {
        runtime::copy_bytes(out_.rows.data(), batch_.data, batch_.rows * row_bytes_);
        for_rows(batch_.rows, [&](std::size_t row) {
            auto const same = static_cast<std::int64_t>(row);
            if (parts_.index) index()[row] = same;
            if (parts_.inverse) inverse()[row] = same;
            if (parts_.counts) counts()[row] = 1;
        });
    }

    void fill(BucketIndex const& settled_by, step::BatchView const& claims) {
        Chunks const chunks = runtime::cut(batch_.rows, runtime::kGrain);
        index::Ranks ranks;
        settled_by.rank_and_follow(nullptr, claims, chunks, ranks);
        runtime::for_chunks(chunks, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
            write_winners(claims, begin, end, ranks[chunk]);
        });
        if (parts_.counts) {
            count_rows(claims);
        } else if (parts_.inverse) {
            for_rows(batch_.rows, [&](std::size_t row) {
                inverse()[row] = static_cast<std::int64_t>(which(claims, row));
            });
        }
    }

    Unique take() { return std::move(out_); }

private:
    std::int64_t* index() { return static_cast<std::int64_t*>(out_.index.data()); }
    std::int64_t* inverse() { return static_cast<std::int64_t*>(out_.inverse.data()); }
    std::int64_t* counts() { return static_cast<std::int64_t*>(out_.counts.data()); }

    void write_winners(step::BatchView const& claims, std::size_t begin, std::size_t end,
                       std::uint64_t rank) {
        auto* const to = static_cast<unsigned char*>(out_.rows.data());
        auto const copy_winners = [&](auto bytes) {
            for (std::size_t row = begin; row < end; ++row) {
                if (claims.mask[row] != 0) {
                    std::memcpy(to + rank * bytes, batch_.data + row * bytes, bytes);
                    claims.buf_indices[row] = static_cast<std::uint32_t>(rank);
                    if (parts_.index) index()[rank] = static_cast<std::int64_t>(row);
                    ++rank;
                }
            }
        };
        switch (row_bytes_) {
            case 4:
                return copy_winners(std::integral_constant<std::size_t, 4>{});
            case 8:
                return copy_winners(std::integral_constant<std::size_t, 8>{});
            case 12:
                return copy_winners(std::integral_constant<std::size_t, 12>{});
            case 16:
                return copy_winners(std::integral_constant<std::size_t, 16>{});
            default:
                return copy_winners(row_bytes_);
        }
    }

    /// The distinct row that equals this row, after write_winners(). The claims have it for a
    /// winner; for any other row they have the winner's row.
    static std::uint32_t which(step::BatchView const& claims, std::size_t row) {
        std::uint32_t const at = claims.buf_indices[row];
        return claims.mask[row] != 0 ? at : claims.buf_indices[at];
    }

    /// Writes counts, and inverse on the way. Each thread counts by itself, because threads would
    /// contend for a frequent row.
    void count_rows(step::BatchView const& claims) {
        std::size_t const most = std::max<std::size_t>(2 * batch_.rows / distinct_, 1);
        std::size_t const parts =
            std::clamp<std::size_t>(batch_.rows / runtime::kGrain, 1, std::min(most, threads()));
        Block partial(parts * distinct_ * sizeof(std::uint32_t), runtime::Fill::Zero);
        runtime::run_tasks(parts, [&](std::size_t part) {
            std::uint32_t* const mine = words(partial) + part * distinct_;
            std::size_t const end = batch_.rows * (part + 1) / parts;
            for (std::size_t row = batch_.rows * part / parts; row < end; ++row) {
                std::uint32_t const unique_row = which(claims, row);
                ++mine[unique_row];
                if (parts_.inverse) inverse()[row] = unique_row;
            }
        });
        for_rows(distinct_, [&](std::size_t unique_row) {
            std::uint64_t sum = 0;
            for (std::size_t part = 0; part < parts; ++part) {
                sum += words(partial)[part * distinct_ + unique_row];
            }
            counts()[unique_row] = static_cast<std::int64_t>(sum);
        });
    }

    static std::size_t threads() { return static_cast<std::size_t>(num_threads()); }

    KeyRows batch_;
    std::size_t row_bytes_;
    UniqueParts parts_;
    std::size_t distinct_;
    Unique out_;
};

}  // namespace

Unique unique_rows(KeyRows rows, Element const& element, UniqueParts parts) {
    Scratch scratch(rows.rows);
    step::BatchView const claims = scratch.batch(rows.data);
    Claims const claimed = claim_rows(format_of(element), claims, rows.rows);
    ResultWriter results(rows, element, parts, claimed.distinct);
    if (claimed.distinct == rows.rows) {
        results.fill_all_distinct();
    } else {
        results.fill(claimed.index, claims);
    }
    return results.take();
}

}  // namespace tensorhash::table
