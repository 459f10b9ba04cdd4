// tensorhash-bench: the library, the gather limit and other C++ maps take turns in one process.
// Prints one JSON object per line.
#include <malloc.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "contenders.hpp"

namespace {

using namespace bench;

constexpr char kUsage[] =
    "usage: tensorhash-bench [--key KIND,...] [--rows N,...] [--op OP,...] [--threads T]\n"
    "                        [--rounds R] [--budget S] [--peers PEER,...|none] [--order ORDER]\n"
    "  KIND: int64 int32x3 int32x4 bytes16 bytes64\n"
    "  OP:   insert construct_insert find_hit find_miss erase\n"
    "  PEER: absl boost std tbb\n"
    "  S: seconds of an operation after which a peer skips its other rounds\n"
    "  ORDER of hits and erasures: shuffled, inserted\n";

struct PeerEntry {
    std::string_view name;
    std::unique_ptr<Contender> (*make)(Workload&, Pool&);  // null: not compiled in
    char const* package;
};

constexpr PeerEntry kPeers[] = {
#if defined(TENSORHASH_BENCH_ABSL)
    {"absl", make_absl, "libabsl-dev"},
#else
    {"absl", nullptr, "libabsl-dev"},
#endif
#if defined(TENSORHASH_BENCH_BOOST)
    {"boost", make_boost, "libboost1.81-dev"},
#else
    {"boost", nullptr, "libboost1.81-dev"},
#endif
    {"std", make_std, ""},
#if defined(TENSORHASH_BENCH_TBB)
    {"tbb", make_tbb, "libtbb-dev"},
#else
    {"tbb", nullptr, "libtbb-dev"},
#endif
};

struct Options {
    std::vector<KeyKind> kinds{key_kind_from_name("int64")};
    std::vector<std::size_t> rows{1'000'000};
    std::vector<Operation> operations{Operation::Insert, Operation::FindHit, Operation::FindMiss};
    int threads = 1;
    int rounds = 5;
    double budget = 1e9;
    Order order = Order::Shuffled;
    std::vector<PeerEntry> peers{std::begin(kPeers), std::end(kPeers)};
};

/// The parts of "a,b,c".
std::vector<std::string> split(std::string const& list) {
    std::vector<std::string> parts(1);
    for (char const c : list) {
        if (c == ',') {
            parts.emplace_back();
        } else {
            parts.back() += c;
        }
    }
    return parts;
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

double seconds(std::string const& option, std::string const& text) {
    double value = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value > 0)) {
        throw std::invalid_argument(option + ": expected seconds above 0, got '" + text + "'");
    }
    return value;
}

std::vector<PeerEntry> peers_from(std::string const& list) {
    std::vector<PeerEntry> chosen;
    if (list == "none") {
        return chosen;
    }
    for (auto const& wanted : split(list)) {
        bool known = false;
        for (auto const& peer : kPeers) {
            if (peer.name == wanted) {
                chosen.push_back(peer);
                known = true;
            }
        }
        if (!known) {
            throw std::invalid_argument("--peers: expected absl, boost, std, tbb or none, got '" +
                                        wanted + "'");
        }
    }
    return chosen;
}

Order order_from(std::string const& text) {
    if (text != "shuffled" && text != "inserted") {
        throw std::invalid_argument("--order: expected shuffled or inserted, got '" + text + "'");
    }
    return text == "shuffled" ? Order::Shuffled : Order::Inserted;
}

template <class T>
std::vector<T> mapped(std::string const& list, std::function<T(std::string const&)> const& read) {
    std::vector<T> result;
    for (auto const& part : split(list)) {
        result.push_back(read(part));
    }
    return result;
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
        if (option == "--key") {
            options.kinds = mapped<KeyKind>(value, key_kind_from_name);
        } else if (option == "--rows") {
            options.rows = mapped<std::size_t>(value, [&](std::string const& text) {
                return number(option, text, 1'000'000'000);
            });
        } else if (option == "--op") {
            options.operations = mapped<Operation>(value, operation_from_name);
        } else if (option == "--threads") {
            options.threads = static_cast<int>(number(option, value, 64));
        } else if (option == "--rounds") {
            options.rounds = static_cast<int>(number(option, value, 1000));
        } else if (option == "--budget") {
            options.budget = seconds(option, value);
        } else if (option == "--order") {
            options.order = order_from(value);
        } else if (option == "--peers") {
            options.peers = peers_from(value);
        } else {
            throw std::invalid_argument(option + ": no such option\n" + kUsage);
        }
    }
    return options;
}

using Contenders = std::vector<std::unique_ptr<Contender>>;

Contenders make_contenders(Options const& options, Workload& work, Pool& pool) {
    Contenders all;
    all.push_back(make_ours(work, options.threads));
    all.push_back(make_gather(work, options.threads, Limit::Gather));
    if (work.kind.bytes > 8) {
        all.push_back(make_gather(work, options.threads, Limit::Gather2));
    }
    all.push_back(make_gather(work, options.threads, Limit::Scatter));
    for (auto const& peer : options.peers) {
        if (peer.make != nullptr) {
            all.push_back(peer.make(work, pool));
        }
    }
    return all;
}

bool is_limit(Contender const& contender) {
    return contender.name().starts_with("gather") || contender.name() == "scatter";
}

/// Is a second run the same as the first? Then an untimed run comes before the timed one, so that
/// the previous contender cannot slow it down by evicting its memory from the cache. Larger tables
/// would not stay in the cache anyway.
bool repeats(Contender const& contender, Operation operation) {
    return is_find(operation) || is_limit(contender);
}
constexpr std::size_t kWarmRows = 2'000'000;

/// All contenders must set the mask of as many rows as the first one did.
void check(Contender const& contender, Contender const& first, std::size_t got,
           std::size_t expected) {
    if (got != expected) {
        throw std::logic_error(std::string(contender.name()) + ": expected " +
                               std::to_string(expected) + " rows, as " + std::string(first.name()) +
                               " has, got " + std::to_string(got));
    }
}

void print(Contender const& contender, Workload const& work, Operation operation, int threads,
           std::vector<double> const& seconds) {
    std::printf(
        R"({"contender": "%s", "key": "%s", "rows": %zu, "op": "%s", "threads": %d, "seconds": [)",
        std::string(contender.name()).c_str(), std::string(work.kind.name).c_str(), work.rows,
        std::string(name(operation)).c_str(), threads);
    for (std::size_t i = 0; i < seconds.size(); ++i) {
        std::printf("%s%.9f", i == 0 ? "" : ", ", seconds[i]);
    }
    std::puts("]}");
    std::fflush(stdout);
}

/// Rounds of one operation: each contender runs once per round. The first round is a warm-up and
/// does not count.
void measure(Contenders const& all, Workload const& work, Operation operation,
             Options const& options) {
    using Clock = std::chrono::steady_clock;
    using Seconds = std::chrono::duration<double>;
    std::vector<std::vector<double>> seconds(all.size());
    std::vector<double> spent(all.size());
    std::size_t expected = 0;
    for (int round = 0; round <= options.rounds; ++round) {
        for (std::size_t i = 0; i < all.size(); ++i) {
            Contender& contender = *all[i];
            bool const counts = i == 0 || is_limit(contender) || spent[i] < options.budget;
            if (!contender.can(operation) || !counts) {
                continue;
            }
            auto const begin = Clock::now();
            contender.prepare(operation);
            if (work.rows <= kWarmRows && repeats(contender, operation)) {
                contender.run(operation);
            }
            auto const start = Clock::now();
            contender.run(operation);
            auto const end = Clock::now();
            if (round > 0) {
                seconds[i].push_back(Seconds(end - start).count());
                spent[i] += Seconds(end - begin).count();
            }
            if (i == 0 && round == 0) {
                expected = contender.count();
            } else if (!is_limit(contender)) {
                check(contender, *all[0], contender.count(), expected);
            }
        }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!seconds[i].empty()) {
            print(*all[i], work, operation, options.threads, seconds[i]);
        }
    }
}

/// Gives peers warm memory in huge pages too, as far as malloc can: the process keeps freed memory,
/// and the C library uses huge pages. It reads that setting only at the start of a process, so this
/// restarts the process.
void settle_malloc(char** words) {
    if (std::getenv("GLIBC_TUNABLES") == nullptr) {
        setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 1);
        execv("/proc/self/exe", words);  // if that fails, peers have small pages
    }
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
}

void run(Options const& options) {
    for (auto const& peer : options.peers) {
        if (peer.make == nullptr) {
            std::fprintf(stderr, "left out %s: %s was not installed at compile time\n",
                         std::string(peer.name).c_str(), peer.package);
        }
    }
    Pool pool(options.threads);
    for (auto const& kind : options.kinds) {
        for (std::size_t const rows : options.rows) {
            Workload work(kind, rows, options.order);
            Contenders const all = make_contenders(options, work, pool);
            for (Operation const operation : options.operations) {
                measure(all, work, operation, options);
            }
        }
    }
}

}  // namespace

int main(int count, char** words) {
    try {
        settle_malloc(words);
        run(parse(count, words));
        return 0;
    } catch (std::exception const& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
}
