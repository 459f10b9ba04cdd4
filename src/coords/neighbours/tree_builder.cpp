// Splits ranges of records in two and in two again: the four parts are the children of a node.
#include "coords/neighbours/tree_builder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/parallel.hpp"

namespace tensorhash::coords {
namespace {

using cpu::kLeafPoints;
using cpu::kTreeLanes;

constexpr std::uint32_t kNoNode = 0xffffffffu;
constexpr std::size_t kSmall = 1 << 14;  // records that one thread builds into a tree
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Box = std::vector<double>;  // lower ends, then upper ends; the last axis is the row

/// A range that still needs a node.
struct Unbuilt {
    RecordRange range;
    Box box;
    std::uint32_t parent;  // kNoNode for a root
    std::uint32_t lane;    // of the parent, or the number of the root
};

/// Builds nodes into lists of its own. `Width` is that of the records, or 0 for any.
template <std::size_t Width>
class NodeBuilder {
public:
    explicit NodeBuilder(Records const& records)
        : records_(records), whole_(2 * width()), half_(2 * width()) {}

    /// Builds a node and all below it. Returns its number.
    std::uint32_t build(RecordRange range, double const* box) {
        std::uint32_t const at = build_node(range, box);
        for (std::uint32_t lane = 0; lane < out_.nodes[at].children; ++lane) {
            if (out_.nodes[at].points[lane] != 0) continue;
            read_box(at, lane, whole_.data());
            std::uint32_t const child = build(parts_of(at, lane), whole_.data());
            out_.nodes[at].child[lane] = child;
        }
        return at;
    }

    /// Builds a node without those below it, and lists what is missing.
    std::uint32_t build_one(RecordRange range, double const* box, std::vector<Unbuilt>& missing) {
        std::uint32_t const at = build_node(range, box);
        for (std::uint32_t lane = 0; lane < out_.nodes[at].children; ++lane) {
            if (out_.nodes[at].points[lane] != 0) continue;
            Box its(2 * width());
            read_box(at, lane, its.data());
            missing.push_back({parts_of(at, lane), std::move(its), at, lane});
        }
        return at;
    }

    void find_box(RecordRange range, double* box) const noexcept {
        if constexpr (Width != 0) {
            // In local memory: the compiler then knows that no record changes it.
            std::array<double, 2 * Width> local;
            widen_box(range, local.data());
            std::copy_n(local.data(), 2 * Width, box);
        } else {
            widen_box(range, box);
        }
    }

    TreeNodes& out() noexcept { return out_; }

private:
    void widen_box(RecordRange range, double* box) const noexcept {
        double const* record = records_.data + range.begin * width();
        double* const high = box + width();
        std::copy_n(record, width(), box);
        std::copy_n(record, width(), high);
        for (std::uint32_t i = 1; i < range.count; ++i) {
            record += width();
            for (std::size_t axis = 0; axis < width(); ++axis) {
                box[axis] = std::min(box[axis], record[axis]);
                high[axis] = std::max(high[axis], record[axis]);
            }
        }
    }

    std::size_t width() const noexcept { return Width != 0 ? Width : records_.width; }
    std::size_t axes() const noexcept { return width() - 1; }

    std::uint32_t build_node(RecordRange range, double const* box) {
        auto const at = static_cast<std::uint32_t>(out_.nodes.size());
        out_.nodes.emplace_back();
        ranges_.emplace_back();
        out_.boxes.resize(out_.boxes.size() + axes() * 2 * kTreeLanes);
        if (range.count <= kLeafPoints) {
            add_child(at, range, box);
            return at;
        }
        std::uint32_t const left = split(range, box);
        for (RecordRange const half : {RecordRange{range.begin, left},
                                       RecordRange{range.begin + left, range.count - left}}) {
            find_box(half, half_.data());
            if (half.count <= kLeafPoints) {
                add_child(at, half, half_.data());
                continue;
            }
            std::uint32_t const quarter = split(half, half_.data());
            for (RecordRange const part :
                 {RecordRange{half.begin, quarter},
                  RecordRange{half.begin + quarter, half.count - quarter}}) {
                find_box(part, half_.data());
                add_child(at, part, half_.data());
            }
        }
        return at;
    }

    void add_child(std::uint32_t at, RecordRange range, double const* box) {
        cpu::TreeNode& node = out_.nodes[at];
        std::uint32_t const lane = node.children++;
        node.child[lane] = range.begin;
        node.points[lane] = range.count <= kLeafPoints ? range.count : 0;
        node.lowest_row[lane] = static_cast<std::uint32_t>(box[axes()]);
        ranges_[at][lane] = range;
        double* ends = out_.boxes.data() + at * axes() * 2 * kTreeLanes + lane;
        for (std::size_t axis = 0; axis < axes(); ++axis, ends += 2 * kTreeLanes) {
            ends[0] = box[axis];
            ends[kTreeLanes] = box[width() + axis];
        }
    }

    void read_box(std::uint32_t at, std::uint32_t lane, double* box) const noexcept {
        double const* ends = out_.boxes.data() + at * axes() * 2 * kTreeLanes + lane;
        for (std::size_t axis = 0; axis < axes(); ++axis, ends += 2 * kTreeLanes) {
            box[axis] = ends[0];
            box[width() + axis] = ends[kTreeLanes];
        }
    }

    RecordRange parts_of(std::uint32_t at, std::uint32_t lane) const noexcept {
        return ranges_[at][lane];
    }

    /// Sorts a range into two parts at about the median of its widest axis. Returns the size of the
    /// first, which is at least an eighth of the range and at most seven eighths. Rows keep their
    /// order, so of coincident points the lower rows are in the first part, which is searched
    /// first.
    std::uint32_t split(RecordRange range, double const* box) {
        std::size_t const axis = widest_axis(box);
        if (!(box[width() + axis] > box[axis])) return range.count / 2;  // all points coincide
        double pivot = sampled_median(range, axis);
        if (pivot == box[axis]) pivot = std::nextafter(pivot, kInfinity);
        auto const is_left = [=](double const* record) { return record[axis] < pivot; };
        std::uint32_t const left = partition(range, is_left);
        if (std::min(left, range.count - left) >= range.count / 8) return left;
        return split_exactly(range, axis);
    }

    std::size_t widest_axis(double const* box) const noexcept {
        std::size_t widest = 0;
        for (std::size_t axis = 1; axis < axes(); ++axis) {
            if (box[width() + axis] - box[axis] > box[width() + widest] - box[widest]) {
                widest = axis;
            }
        }
        return widest;
    }

    double sampled_median(RecordRange range, std::size_t axis) const {
        std::array<double, 63> samples;
        std::uint64_t const count = range.count > 4096 ? 63 : range.count > 256 ? 31 : 15;
        for (std::uint64_t i = 0; i < count; ++i) {
            std::uint64_t const row = range.begin + (2 * i + 1) * range.count / (2 * count);
            samples[i] = records_.data[row * width() + axis];
        }
        auto const middle = samples.begin() + static_cast<std::ptrdiff_t>(count / 2);
        std::nth_element(samples.begin(), middle,
                         samples.begin() + static_cast<std::ptrdiff_t>(count));
        return *middle;
    }

    /// Halves a range that a sample could not: few distinct coordinates, or samples at unlucky
    /// places. Equal coordinates are split by row.
    std::uint32_t split_exactly(RecordRange range, std::size_t axis) {
        std::vector<std::pair<double, double>> keyed(range.count);
        double const* record = records_.data + range.begin * width();
        for (auto& [coordinate, row] : keyed) {
            coordinate = record[axis];
            row = record[axes()];
            record += width();
        }
        auto const middle = keyed.begin() + static_cast<std::ptrdiff_t>(keyed.size() / 2);
        std::nth_element(keyed.begin(), middle, keyed.end());
        std::pair<double, double> const pivot = *middle;
        std::size_t const row = axes();
        return partition(range, [=](double const* one) {
            return one[axis] < pivot.first || (one[axis] == pivot.first && one[row] < pivot.second);
        });
    }

    /// Stable, without a branch per record: every record is written to both sides.
    template <class IsLeft>
    std::uint32_t partition(RecordRange range, IsLeft const& is_left) {
        double* const data = records_.data + range.begin * width();
        double* const scratch = records_.scratch + range.begin * width();
        std::size_t left = 0, right = 0;
        for (std::size_t i = 0; i < range.count; ++i) {
            double const* const record = data + i * width();
            bool const goes_left = is_left(record);
            copy_record(record, scratch + right * width());
            copy_record(record, data + left * width());
            left += goes_left;
            right += !goes_left;
        }
        std::copy_n(scratch, right * width(), data + left * width());
        return static_cast<std::uint32_t>(left);
    }

    void copy_record(double const* from, double* to) const noexcept {
        if constexpr (Width != 0) {
            std::array<double, Width> record;
            std::copy_n(from, Width, record.begin());
            std::copy_n(record.begin(), Width, to);
        } else if (from != to) {
            std::copy_n(from, width(), to);
        }
    }

    Records records_;
    Box whole_;
    Box half_;
    TreeNodes out_;
    std::vector<std::array<RecordRange, kTreeLanes>> ranges_;  // of the lanes of each node
};

/// The nodes that were built so far, and what is missing.
struct Builder {
    Records records;
    TreeNodes out;
    std::vector<Unbuilt> missing;

    /// Appends nodes that were built apart, the tops of `tasks` among them.
    void append(TreeNodes const& part, std::vector<std::uint32_t> const& tops,
                Unbuilt const* tasks) {
        auto const base = static_cast<std::uint32_t>(out.nodes.size());
        for (cpu::TreeNode node : part.nodes) {
            for (std::uint32_t lane = 0; lane < node.children; ++lane) {
                if (node.points[lane] == 0) node.child[lane] += base;
            }
            out.nodes.push_back(node);
        }
        out.boxes.insert(out.boxes.end(), part.boxes.begin(), part.boxes.end());
        for (std::size_t i = 0; i < tops.size(); ++i) {
            Unbuilt const& task = tasks[i];
            std::uint32_t const top = base + tops[i];
            (task.parent == kNoNode ? out.roots[task.lane]
                                    : out.nodes[task.parent].child[task.lane]) = top;
        }
    }
};

/// Builds one node for each missing range, in parallel. What is below them is missing then.
template <class Nodes>
void build_level(Builder& builder) {
    std::vector<Unbuilt> const tasks = std::move(builder.missing);
    builder.missing.clear();
    struct Part {
        TreeNodes nodes;
        std::vector<Unbuilt> missing;
    };
    std::vector<Part> parts(tasks.size());
    runtime::run_tasks(tasks.size(), [&](std::size_t i) {
        Nodes nodes(builder.records);
        nodes.build_one(tasks[i].range, tasks[i].box.data(), parts[i].missing);
        parts[i].nodes = std::move(nodes.out());
    });
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        auto const base = static_cast<std::uint32_t>(builder.out.nodes.size());
        builder.append(parts[i].nodes, {0}, &tasks[i]);
        for (Unbuilt& one : parts[i].missing) {
            one.parent += base;
            builder.missing.push_back(std::move(one));
        }
    }
}

/// Builds all that is missing, each range on one thread.
template <class Nodes>
void build_rest(Builder& builder) {
    std::vector<Unbuilt> const tasks = std::move(builder.missing);
    // Chunks of few ranges, so that threads finish together.
    std::size_t const share = (tasks.size() + 255) / 256;
    std::size_t const chunks = tasks.empty() ? 0 : (tasks.size() + share - 1) / share;
    struct Part {
        TreeNodes nodes;
        std::vector<std::uint32_t> tops;
    };
    std::vector<Part> parts(chunks);
    runtime::run_tasks(chunks, [&](std::size_t chunk) {
        Nodes nodes(builder.records);
        for (std::size_t i = chunk * share; i < std::min(tasks.size(), (chunk + 1) * share); ++i) {
            parts[chunk].tops.push_back(nodes.build(tasks[i].range, tasks[i].box.data()));
        }
        parts[chunk].nodes = std::move(nodes.out());
    });
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        builder.append(parts[chunk].nodes, parts[chunk].tops, tasks.data() + chunk * share);
    }
}

bool is_large(Unbuilt const& one) noexcept { return one.range.count > kSmall; }

template <class Nodes>
TreeNodes build_with(Records const& records, std::vector<RecordRange> const& ranges) {
    Builder builder{records, {}, {}};
    builder.out.roots.resize(ranges.size());
    Nodes const nodes(records);
    for (std::uint32_t i = 0; i < ranges.size(); ++i) {
        Box box(2 * records.width);
        nodes.find_box(ranges[i], box.data());
        builder.missing.push_back({ranges[i], std::move(box), kNoNode, i});
    }
    constexpr std::size_t kEnough = 32;  // tasks for all threads
    while (builder.missing.size() < kEnough &&
           std::any_of(builder.missing.begin(), builder.missing.end(), is_large)) {
        build_level<Nodes>(builder);
    }
    build_rest<Nodes>(builder);
    return std::move(builder.out);
}

}  // namespace

TreeNodes build_trees(Records const& records, std::vector<RecordRange> const& ranges) {
    return records.width == 4 ? build_with<NodeBuilder<4>>(records, ranges)
                              : build_with<NodeBuilder<0>>(records, ranges);
}

}  // namespace tensorhash::coords
