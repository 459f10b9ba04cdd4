// tensorhash-growth: the memory and the times of a table that grows, and of one that churns,
// through the public interface. Prints one JSON object per line.
#include <time.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "pages.hpp"
#include "tensorhash/tensorhash.hpp"

namespace {

using namespace tensorhash;
using bench::Pages;

constexpr char kUsage[] =
    "usage: tensorhash-growth --measure WHAT [--key KIND] [--rows N] [--threads T] [--rounds R]\n"
    "                         [--clock CLOCK]\n"
    "  WHAT: memory  bytes per entry at 16 sizes up to N, worst, best and longest batch\n"
    "        grow    seconds from an empty table to N entries, round by round\n"
    "        ready   the same for a table that was made for N entries\n"
    "        find    nanoseconds per key at 16 sizes up to N, hits and misses\n"
    "        churn   erases a tenth and inserts a tenth, R rounds\n"
    "  KIND: int32 int64 int32x3 bytes64\n"
    "  CLOCK: wall, or processor: seconds of all threads, for one thread beside other programs\n";

constexpr std::size_t kBatch = 100'000;
constexpr std::size_t kSizes = 16;
constexpr std::size_t kLeast = 1'000'000;  // the first of the sizes, unless N is less

struct KeyKind {
    char const* name;
    Dtype dtype;
    std::int64_t elements;
    std::size_t bytes;
};
constexpr KeyKind kKinds[] = {{"int32", Dtype::Int32, 1, 4},
                              {"int64", Dtype::Int64, 1, 8},
                              {"int32x3", Dtype::Int32, 3, 12},
                              {"bytes64", Dtype::UInt8, 64, 64}};

struct Options {
    std::string measure;
    KeyKind kind = kKinds[1];
    std::size_t rows = 1'000'000;
    int threads = 1;
    std::size_t rounds = 5;
};

clockid_t used_clock = CLOCK_MONOTONIC;

double now() {
    timespec time{};
    clock_gettime(used_clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double median(std::vector<double> numbers) {
    std::sort(numbers.begin(), numbers.end());
    return numbers[numbers.size() / 2];
}

/// splitmix64 of a number: distinct numbers give distinct words.
std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/// A batch of keys and values. Key number i is the same in every run; distinct numbers below 2^32
/// give distinct keys.
class Batch {
public:
    Batch(KeyKind const& kind, std::size_t rows)
        : kind_(kind), rows_(rows), keys_(rows * kind.bytes + 8), values_(rows * 8) {}

    void set(std::size_t row, std::uint64_t number) {
        // An odd multiple is distinct in four bytes, too.
        std::uint64_t const word = kind_.bytes < 8 ? number * 0x9e3779b1u : mixed(number + 1);
        std::memcpy(keys_.data() + row * kind_.bytes, &word, std::min<std::size_t>(kind_.bytes, 8));
    }
    void set_from(std::uint64_t first) {
        for (std::size_t row = 0; row < rows_; ++row) {
            set(row, first + row);
        }
    }
    Tensor keys() const {
        return Tensor::borrow(static_cast<void const*>(keys_.data()),
                              {static_cast<std::int64_t>(rows_), kind_.elements}, kind_.dtype);
    }
    Tensor values() const {
        return Tensor::borrow(static_cast<void const*>(values_.data()),
                              {static_cast<std::int64_t>(rows_), 1}, Dtype::Int64);
    }

private:
    KeyKind kind_;
    std::size_t rows_;
    Pages keys_;
    Pages values_;
};

HashMap make_map(KeyKind const& kind, std::size_t capacity) {
    return HashMap(Capacity{static_cast<std::int64_t>(capacity)},
                   Element{kind.dtype, {kind.elements}}, {Element{Dtype::Int64, {1}}});
}

/// Sizes in a geometric row from kLeast to `rows`, multiples of a batch.
std::vector<std::size_t> sizes_up_to(std::size_t rows) {
    std::vector<std::size_t> sizes;
    double const least = static_cast<double>(std::min(kLeast, rows));
    double const factor = static_cast<double>(rows) / least;
    for (std::size_t i = 0; i < kSizes; ++i) {
        double const part = static_cast<double>(i) / static_cast<double>(kSizes - 1);
        auto const size = static_cast<std::size_t>(least * std::pow(factor, part) + 0.5);
        sizes.push_back((size + kBatch - 1) / kBatch * kBatch);
    }
    return sizes;
}

void begin_line(Options const& options) {
    std::printf(R"({"measure": "%s", "key": "%s", "rows": %zu, "threads": %d)",
                options.measure.c_str(), options.kind.name, options.rows, options.threads);
}
void print(char const* name, double number) { std::printf(R"(, "%s": %.6g)", name, number); }
void print(char const* name, std::vector<double> const& numbers) {
    std::printf(R"(, "%s": [)", name);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        std::printf("%s%.6g", i == 0 ? "" : ", ", numbers[i]);
    }
    std::printf("]");
}
void end_line() {
    std::puts("}");
    std::fflush(stdout);
}

double bytes_per_entry(HashMap const& map) {
    return static_cast<double>(map.memory_usage().total()) / static_cast<double>(map.size());
}

/// Inserts batches until the table has `rows` entries. Calls after(seconds) for each.
template <class After>
void fill(HashMap& map, Batch& batch, std::size_t rows, After const& after) {
    for (auto size = static_cast<std::size_t>(map.size()); size < rows; size += kBatch) {
        batch.set_from(size);
        double const start = now();
        map.insert(batch.keys(), {batch.values()});
        after(now() - start);
    }
}

void measure_memory(Options const& options) {
    std::vector<double> held;
    double worst = 0;
    double best = 1e9;
    double longest = 0;
    HashMap map = make_map(options.kind, 0);
    Batch batch(options.kind, kBatch);
    for (std::size_t const size : sizes_up_to(options.rows)) {
        fill(map, batch, size, [&](double seconds) {
            longest = std::max(longest, seconds);
            if (static_cast<std::size_t>(map.size()) >= std::min(kLeast, options.rows)) {
                worst = std::max(worst, bytes_per_entry(map));
                best = std::min(best, bytes_per_entry(map));
            }
        });
        held.push_back(bytes_per_entry(map));
    }
    begin_line(options);
    print("bytes", held);
    print("worst", worst);
    print("best", best);
    print("longest_seconds", longest);
    end_line();
}

/// Rounds of growth. The first takes fresh memory; the others may reuse what rounds before freed.
void measure_growth(Options const& options, std::size_t capacity) {
    std::vector<Batch> batches;
    for (std::size_t first = 0; first < options.rows; first += kBatch) {
        batches.emplace_back(options.kind, std::min(kBatch, options.rows - first));
        batches.back().set_from(first);
    }
    std::vector<double> seconds;
    for (std::size_t round = 0; round < options.rounds; ++round) {
        HashMap map = make_map(options.kind, capacity);
        double const start = now();
        for (Batch const& batch : batches) {
            map.insert(batch.keys(), {batch.values()});
        }
        seconds.push_back(now() - start);
    }
    begin_line(options);
    print("seconds", seconds);
    end_line();
}

double time_find(HashMap const& map, Batch const& batch, std::size_t rounds) {
    std::vector<double> seconds;
    for (std::size_t round = 0; round <= rounds; ++round) {
        double const start = now();
        map.find(batch.keys());
        if (round > 0) {
            seconds.push_back(now() - start);
        }
    }
    return median(seconds);
}

void measure_find(Options const& options) {
    std::size_t const asked = std::min(kLeast, options.rows);
    HashMap map = make_map(options.kind, 0);
    Batch batch(options.kind, kBatch);
    Batch hits(options.kind, asked);
    Batch misses(options.kind, asked);
    misses.set_from(std::uint64_t{1} << 31);
    std::vector<double> hit;
    std::vector<double> miss;
    double const to_ns = 1e9 / static_cast<double>(asked);
    for (std::size_t const size : sizes_up_to(options.rows)) {
        fill(map, batch, size, [](double) {});
        for (std::size_t row = 0; row < asked; ++row) {
            hits.set(row, (mixed(row) >> 32) * size >> 32);
        }
        hit.push_back(time_find(map, hits, options.rounds) * to_ns);
        miss.push_back(time_find(map, misses, options.rounds) * to_ns);
    }
    begin_line(options);
    print("hit_ns", hit);
    print("miss_ns", miss);
    end_line();
}

void measure_churn(Options const& options) {
    std::size_t const step = std::max<std::size_t>(options.rows / 10, 1);
    HashMap map = make_map(options.kind, 0);
    Batch batch(options.kind, step);
    for (std::uint64_t first = 0; first < 10 * step; first += step) {
        batch.set_from(first);
        map.insert(batch.keys(), {batch.values()});
    }
    std::vector<double> seconds;
    auto const capacity = static_cast<double>(map.capacity());
    double const bytes = bytes_per_entry(map);
    double most_bytes = bytes;
    for (std::size_t round = 0; round < options.rounds; ++round) {
        batch.set_from(round * step);
        double const start = now();
        map.erase(batch.keys());
        double const pause = now();
        batch.set_from((round + 10) * step);
        double const again = now();
        map.insert(batch.keys(), {batch.values()});
        seconds.push_back(now() - again + pause - start);
        most_bytes = std::max(most_bytes, bytes_per_entry(map));
    }
    std::size_t const part = std::min<std::size_t>(100, options.rounds);
    begin_line(options);
    print("capacity", capacity);
    print("capacity_after", static_cast<double>(map.capacity()));
    print("bytes", bytes);
    print("most_bytes", most_bytes);
    print("first_seconds", median({seconds.begin(), seconds.begin() + static_cast<long>(part)}));
    print("last_seconds", median({seconds.end() - static_cast<long>(part), seconds.end()}));
    end_line();
}

std::size_t number(std::string const& option, std::string const& text, std::size_t most) {
    std::size_t value = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > most) {
        throw std::invalid_argument(option + ": expected a number from 1 to " +
                                    std::to_string(most) + ", got '" + text + "'");
    }
    return value;
}

KeyKind kind_from(std::string const& name) {
    for (KeyKind const& kind : kKinds) {
        if (name == kind.name) {
            return kind;
        }
    }
    throw std::invalid_argument("--key: expected int32, int64, int32x3 or bytes64, got '" + name +
                                "'");
}

clockid_t clock_from(std::string const& name) {
    if (name != "wall" && name != "processor") {
        throw std::invalid_argument("--clock: expected wall or processor, got '" + name + "'");
    }
    return name == "wall" ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
}

Options parse(int count, char** words) {
    Options options;
    for (int i = 1; i < count; i += 2) {
        std::string const option = words[i];
        if (option == "--help" || i + 1 == count) {
            std::fputs(kUsage, option == "--help" ? stdout : stderr);
            std::exit(option == "--help" ? 0 : 2);
        }
        std::string const value = words[i + 1];
        if (option == "--measure") {
            options.measure = value;
        } else if (option == "--key") {
            options.kind = kind_from(value);
        } else if (option == "--rows") {
            options.rows = number(option, value, 1'000'000'000);
        } else if (option == "--threads") {
            options.threads = static_cast<int>(number(option, value, 64));
        } else if (option == "--rounds") {
            options.rounds = number(option, value, 1'000'000);
        } else if (option == "--clock") {
            used_clock = clock_from(value);
        } else {
            throw std::invalid_argument(option + ": no such option\n" + kUsage);
        }
    }
    return options;
}

void run(Options const& options) {
    set_num_threads(options.threads);
    if (options.measure == "memory") {
        measure_memory(options);
    } else if (options.measure == "grow") {
        measure_growth(options, 0);
    } else if (options.measure == "ready") {
        measure_growth(options, options.rows);
    } else if (options.measure == "find") {
        measure_find(options);
    } else if (options.measure == "churn") {
        measure_churn(options);
    } else {
        throw std::invalid_argument(
            "--measure: expected memory, grow, ready, find or churn, got '" + options.measure +
            "'");
    }
}

}  // namespace

int main(int count, char** words) {
    try {
        run(parse(count, words));
        return 0;
    } catch (std::exception const& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
}
