// Kernel maps on a device: launches and one wait, for the offsets of the groups and for what the
// device learned about the rows.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "backend/coord_errors.hpp"
#include "backend/kernel_map_request.hpp"
#include "device/coord_index.hpp"
#include "device/kernel_map.hpp"
#include "device/transfers.hpp"
#include "runtime/seed.hpp"

namespace tensorhash::device {

using backend::CoordRows;
using backend::KernelMapPairs;
using backend::KernelMapRequest;

inline RowsView view_of(CoordRows const& rows) {
    return {rows.tensor.data(), rows.columns, rows.wide()};
}

/// What the device says about a map, before its offsets. Words only.
struct MapReport {
    std::uint64_t in_outside = kNoElement;   // the first number that does not fit int32
    std::uint64_t out_outside = kNoElement;  // the same
    std::uint64_t coarse_probes = 0;
    std::uint64_t fine_probes = 0;
    std::uint64_t total = 0;  // pairs
    std::uint32_t differ = 0;
    std::uint32_t unused = 0;
    FlatState fine[2] = {};    // of the in rows: packed, wide
    FlatState coarse[2] = {};  // of their cells
};
static_assert(sizeof(MapReport) % sizeof(std::uint64_t) == 0);

/// Reads one number of rows on the device, for a message.
template <class Queue>
backend::RowNumber read_number(Queue& queue, CoordRows const& rows, std::uint64_t at) {
    backend::RowNumber number{at / rows.columns, static_cast<std::uint32_t>(at % rows.columns), 0};
    number.value = rows.wide()
                       ? read_one(queue, static_cast<std::int64_t const*>(rows.tensor.data()) + at)
                       : read_one(queue, rows.data() + at);
    return number;
}

/// int32 rows on the device: the caller's own, or a cast copy.
template <class Queue>
struct Int32Rows {
    std::int32_t const* data = nullptr;
    Array<Queue, std::int32_t> copy{};

    Int32Rows() = default;
    /// `first` and `outside` as in NarrowRows.
    Int32Rows(Queue& queue, CoordRows const& rows, std::uint64_t* first, unsigned char* outside)
        : data(rows.data()) {
        if (rows.wide()) {
            copy = {queue, rows.rows * rows.columns};
            data = copy.data();
            queue.launch(rows.rows,
                         NarrowRows{view_of(rows), copy.data(), first, outside, rows.rows});
        }
    }
};

/// One kernel map. `limit` bytes bound the memory of its lookups: a map with more of them takes its
/// offsets in chunks, counts the pairs of all chunks first, and then looks everything up again.
template <class Queue>
class MapMaker {
public:
    MapMaker(Queue& queue, Device device, KernelMapRequest const& request, std::uint64_t limit)
        : queue_(&queue), device_(device), request_(request),
          grid_{static_cast<std::uint32_t>(request.out.rows),
                static_cast<std::uint32_t>(request.groups)},
          secret_(step::secret_of(runtime::new_seed())), limit_(limit),
          words_(queue, kReportWords + request.groups + 1) {
        MapReport const empty;
        queue.copy(words_.data(), &empty, sizeof empty, Copy::In);
    }

    /// The map of request.in, which gets an index of its own.
    KernelMapPairs make() {
        CoordRows const& in = request_.in;
        CoordRows const& out = request_.out;
        bool const one_array =
            in.tensor.data() == out.tensor.data() && in.rows == out.rows && in.wide() == out.wide();
        Int32Rows<Queue> const own_in(*queue_, in, &report()->in_outside, nullptr);
        Int32Rows<Queue> own_out;
        if (one_array) {
            own_out.data = own_in.data;
        } else {
            own_out = {*queue_, out, &report()->out_outside, nullptr};
        }
        compare(own_in.data, in.rows, own_out.data);
        ScratchIndex<Queue> const index(*queue_, own_in.data, in.columns, rows_of(in),
                                        report()->fine, secret_);
        Lookups lookups = find(index.view(), rows_of(in), queries(own_out.data, nullptr));
        check_rows(index.view());
        return finish(std::move(lookups));
    }

    /// The map from the rows of an index. Of equal rows the first counts; out rows outside int32
    /// have no pairs.
    KernelMapPairs make_from(RowIndexView const& index, std::uint64_t entries, bool repeated) {
        CoordRows const& out = request_.out;
        Array<Queue, unsigned char> outside;
        if (out.wide()) {
            outside = {*queue_, out.rows};
        }
        Int32Rows<Queue> const own_out(*queue_, out, &report()->out_outside, outside.data());
        compare(index.rows, entries, own_out.data);
        Lookups lookups =
            find(index, static_cast<std::uint32_t>(entries), queries(own_out.data, outside.data()));
        repeated_ = repeated;
        equal_ = equal_ && now_.out_outside == kNoElement;
        return finish(std::move(lookups));
    }

private:
    static constexpr std::uint64_t kReportWords = sizeof(MapReport) / sizeof(std::uint64_t);

    /// All launches before the wait, and what the launches after it need.
    struct Lookups {
        ProbeOffsets body{};
        std::uint32_t chunk = 0;  // offsets at a time
        Array<Queue, std::int32_t> offsets{};
        Array<Queue, std::uint32_t> found{};
        std::optional<Tensor> table{};  // instead of `found`, if it is wanted
        Array<Queue, std::uint64_t> counts{};
        Array<Queue, std::int32_t> cells{};
        std::optional<ScratchIndex<Queue>> coarse{};
        Array<Queue, std::uint32_t> masks{};
        std::vector<std::int64_t> begins{};  // on the host, after the wait
    };

    MapReport* report() const { return reinterpret_cast<MapReport*>(words_.data()); }
    std::int64_t* begins() const {
        return reinterpret_cast<std::int64_t*>(words_.data() + kReportWords);
    }
    static std::uint32_t rows_of(CoordRows const& rows) {
        return static_cast<std::uint32_t>(rows.rows);
    }

    std::uint64_t segments_before(std::uint32_t offset) const {
        return std::uint64_t{offset} * grid_.segments_each();
    }

    void compare(std::int32_t const* in, std::uint64_t in_rows, std::int32_t const* out) {
        equal_ = in_rows == request_.out.rows;
        if (equal_ && in != out) {
            std::uint64_t const numbers = in_rows * request_.out.columns;
            queue_->launch(numbers, CompareRows{in, out, numbers, &report()->differ});
        }
    }

    MapQueries queries(std::int32_t const* rows, unsigned char const* outside) const {
        MapQueries queries{rows, outside, {}, request_.out.columns};
        std::fill(std::begin(queries.scale), std::end(queries.scale), 1);
        for (std::size_t axis = 0; axis < request_.axes; ++axis) {
            queries.scale[axis + 1] = static_cast<std::int32_t>(request_.stride[axis]);
        }
        return queries;
    }

    /// Probes and counts, then waits.
    Lookups find(RowIndexView const& index, std::uint32_t in_rows, MapQueries const& queries) {
        Lookups lookups;
        lookups.offsets = upload_offsets();
        lookups.counts = {*queue_, grid_.segments()};
        std::uint64_t const most = limit_ / sizeof(std::uint32_t);
        lookups.chunk = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
            most / std::max(1u, grid_.rows), 1, std::max(1u, grid_.offsets)));
        std::uint32_t* const found = room_for_lookups(lookups);
        lookups.body = {index, queries, lookups.offsets.data(), nullptr,
                        {},    found,   lookups.counts.data(),  &report()->fine_probes,
                        grid_};
        if (request_.strategy == coords::Strategy::Hierarchical) {
            prune(lookups, index, in_rows);
        }
        for (std::uint32_t first = 0; first < grid_.offsets; first += lookups.chunk) {
            probe(lookups, first, lookups.counts.data() + segments_before(first));
        }
        queue_->scan(lookups.counts.data(), grid_.segments(), &report()->total);
        queue_->launch(grid_.offsets + 1,
                       WriteOffsets{lookups.counts.data(), &report()->total, begins(), grid_});
        wait(lookups);
        return lookups;
    }

    /// The pair table is the lookups of all offsets: its memory is not bounded.
    std::uint32_t* room_for_lookups(Lookups& lookups) const {
        if (request_.table) {
            lookups.chunk = std::max(1u, grid_.offsets);
            lookups.table = Tensor::empty({std::int64_t{grid_.offsets}, std::int64_t{grid_.rows}},
                                          Dtype::Int32, device_);
            return static_cast<std::uint32_t*>(lookups.table->data());
        }
        lookups.found = {*queue_, std::uint64_t{lookups.chunk} * grid_.rows};
        return lookups.found.data();
    }

    /// The offsets with a column for the batch.
    Array<Queue, std::int32_t> upload_offsets() const {
        std::size_t const columns = request_.axes + 1;
        std::vector<std::int32_t> rows(request_.groups * columns, 0);
        for (std::size_t k = 0; k < request_.groups; ++k) {
            std::copy_n(request_.offset(k), request_.axes, rows.data() + k * columns + 1);
        }
        Array<Queue, std::int32_t> offsets(*queue_, rows.size());
        queue_->copy(offsets.data(), rows.data(), offsets.bytes(), Copy::In);
        return offsets;
    }

    /// Marks the coarse cells around every query, unless that takes more memory than it is worth.
    void prune(Lookups& lookups, RowIndexView const& index, std::uint32_t in_rows) {
        CoarseBox box{};
        box.bits = static_cast<std::uint32_t>(
            std::countr_zero(static_cast<std::uint64_t>(request_.coarse_stride)));
        std::uint64_t cells = 1;
        for (std::size_t axis = 0; axis < kCoarseAxes; ++axis) {
            std::int64_t const half = request_.size[axis] / 2;
            std::int64_t const reach = (half + request_.coarse_stride - 1) / request_.coarse_stride;
            box.half[axis] = static_cast<std::int32_t>(half);
            box.reach[axis] = static_cast<std::int32_t>(reach);
            cells *= static_cast<std::uint64_t>(2 * reach + 1);
        }
        box.cells = static_cast<std::uint32_t>(cells);
        if (std::uint64_t{box.words()} * grid_.rows * sizeof(std::uint32_t) > limit_) {
            return;
        }
        lookups.cells = {*queue_, std::uint64_t{in_rows} * 4};
        queue_->launch(std::uint64_t{in_rows} * 4,
                       ToCells{index.rows, lookups.cells.data(), box.bits, in_rows});
        lookups.coarse.emplace(*queue_, lookups.cells.data(), kCoarseAxes + 1, in_rows,
                               report()->coarse, secret_);
        lookups.masks = {*queue_, std::uint64_t{box.words()} * grid_.rows};
        queue_->launch(lookups.masks.size(),
                       CoarseMasks{lookups.coarse->view(), lookups.body.queries, box,
                                   lookups.masks.data(), &report()->coarse_probes, grid_.rows});
        lookups.body.masks = lookups.masks.data();
        lookups.body.box = box;
    }

    /// Looks up the offsets of one chunk, from `first` on. Writes the counts of its segments.
    PairGrid probe(Lookups const& lookups, std::uint32_t first, std::uint64_t* counts) {
        ProbeOffsets body = lookups.body;
        body.grid.offsets = std::min(lookups.chunk, grid_.offsets - first);
        body.offsets += std::uint64_t{first} * request_.out.columns;
        body.counts = counts;
        queue_->launch(body.grid.size(), body);
        return body.grid;
    }

    void wait(Lookups& lookups) {
        std::vector<std::uint64_t> words(kReportWords + grid_.offsets + 1);
        queue_->read_back(words.data(), words_.data(), words_.bytes());
        std::memcpy(static_cast<void*>(&now_), words.data(), sizeof now_);
        lookups.begins.resize(grid_.offsets + 1);
        std::memcpy(lookups.begins.data(), words.data() + kReportWords,
                    lookups.begins.size() * sizeof(std::int64_t));
        equal_ = equal_ && now_.differ == 0;
    }

    /// Throws what the CPU throws, in its order.
    void check_rows(RowIndexView const& index) {
        if (now_.in_outside != kNoElement) {
            backend::fail_not_int32("in_coords",
                                    read_number(*queue_, request_.in, now_.in_outside));
        }
        if (now_.out_outside != kNoElement) {
            backend::fail_not_int32(request_.out_name,
                                    read_number(*queue_, request_.out, now_.out_outside));
        }
        if (request_.groups < request_.all) {
            KernelMapRequest checked = request_;
            checked.equal = equal_;
            backend::check_skip_symmetric(checked);
        }
        bool const is_packed = index.packed.slots != nullptr && now_.fine[0].out_of_range == 0;
        repeated_ = now_.fine[is_packed ? 0 : 1].claimed < request_.in.rows;
        if (repeated_ && request_.duplicates == coords::Duplicates::Refuse) {
            fail_repeated(index);
        }
    }
    [[noreturn]] void fail_repeated(RowIndexView const& index) {
        FirstFound<Queue> const repeat(*queue_);
        queue_->launch(request_.in.rows, FindRepeat{index, repeat.data(), request_.in.rows});
        std::uint64_t const row = repeat.read();
        Array<Queue, std::uint32_t> const found(*queue_, 1);
        RowsView const one{index.rows + row * index.columns, index.columns, false};
        queue_->launch(1, SearchRows{index, one, found.data(), 1});
        backend::fail_repeated(row, read_one(*queue_, found.data()));
    }

    /// Writes the pairs. One chunk is still there; several are looked up again.
    KernelMapPairs finish(Lookups&& lookups) {
        KernelMapPairs pairs;
        auto const total = static_cast<std::int64_t>(now_.total);
        pairs.in_maps = Tensor::empty({total}, Dtype::Int32, device_);
        pairs.out_maps = Tensor::empty({total}, Dtype::Int32, device_);
        pairs.offsets =
            Tensor::empty({static_cast<std::int64_t>(grid_.offsets) + 1}, Dtype::Int64, device_);
        queue_->copy(pairs.offsets.data(), begins(), pairs.offsets.bytes(), Copy::Within);
        write(lookups, pairs);
        pairs.bounds =
            Tensor::from(lookups.begins, {static_cast<std::int64_t>(lookups.begins.size())});
        pairs.table = std::move(lookups.table);
        pairs.equal = equal_;
        pairs.repeated = repeated_;
        bool const is_pruned = lookups.body.masks != nullptr;
        pairs.strategy = is_pruned ? coords::Strategy::Hierarchical : coords::Strategy::Flat;
        pairs.coarse_probes = static_cast<std::int64_t>(now_.coarse_probes);
        pairs.fine_probes = static_cast<std::int64_t>(
            is_pruned ? now_.fine_probes : std::uint64_t{grid_.rows} * grid_.offsets);
        return pairs;
    }

    void write(Lookups const& lookups, KernelMapPairs& pairs) {
        bool const is_whole = lookups.chunk >= grid_.offsets;
        Array<Queue, std::uint64_t> counts;  // of a chunk that is looked up again; not used
        if (!is_whole) {
            counts = {*queue_, segments_before(lookups.chunk)};
        }
        for (std::uint32_t first = 0; first < grid_.offsets; first += lookups.chunk) {
            std::uint32_t const end = std::min(grid_.offsets, first + lookups.chunk);
            if (lookups.begins[first] == lookups.begins[end]) {
                continue;
            }
            PairGrid const grid = is_whole ? grid_ : probe(lookups, first, counts.data());
            queue_->launch(
                grid.size(),
                WritePairs{lookups.body.found, lookups.counts.data() + segments_before(first),
                           static_cast<std::int32_t*>(pairs.in_maps.data()),
                           static_cast<std::int32_t*>(pairs.out_maps.data()), grid});
        }
    }

    Queue* queue_;
    Device device_;
    KernelMapRequest const& request_;
    PairGrid grid_;
    step::HashSecret secret_;
    std::uint64_t limit_;
    Array<Queue, std::uint64_t> words_;  // MapReport, then the offsets of the groups
    MapReport now_{};                    // after the wait
    bool equal_ = false;
    bool repeated_ = false;
};

}  // namespace tensorhash::device
