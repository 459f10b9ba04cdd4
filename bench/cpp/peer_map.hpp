// The part that all peers share: a map from keys to int64, called key by key.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "contenders.hpp"
#include "tensorhash/step/key.hpp"

namespace bench {

/// A wide key, compared as bytes.
template <std::size_t Bytes>
struct WideKey {
    unsigned char bytes[Bytes];
    friend bool operator==(WideKey const& a, WideKey const& b) {
        return std::memcmp(a.bytes, b.bytes, Bytes) == 0;
    }
};

/// Peers hash wide keys as the library does, with full avalanche.
template <std::size_t Bytes>
struct WideHash {
    using is_avalanching = void;  // tells Boost not to mix again
    std::size_t operator()(WideKey<Bytes> const& key) const {
        namespace step = tensorhash::step;
        constexpr std::size_t kLast = (Bytes - 1) / 8 * 8;
        constexpr step::HashSecret kSecret = step::secret_of(1);
        std::uint64_t hash = kSecret.start;
        for (std::size_t at = 0; at < kLast; at += 8) {
            hash = step::fold_in(hash, step::load_word(key.bytes + at), kSecret);
        }
        std::uint64_t last = 0;
        std::memcpy(&last, key.bytes + kLast, Bytes - kLast);
        return step::end_with(hash, last, kSecret);
    }
};

/// One map of a peer. `Peer` has name, shared_insert (several threads may insert at once) and
/// erase(map, key), which returns whether the key was there.
template <class Peer, class Map>
class PeerMap final : public Contender {
public:
    using Key = typename Map::key_type;

    PeerMap(Workload& work, Pool& pool) : work_(work), pool_(pool) {}

    std::string_view name() const override { return Peer::name; }

    /// With several threads, a map that allows only one writer is only read.
    bool can(Operation operation) const override {
        return pool_.threads() == 1 || is_find(operation) ||
               (Peer::shared_insert && operation != Operation::Erase);
    }

    void prepare(Operation operation) override {
        if (is_find(operation) && full_) {
            return;
        }
        drop();
        if (operation == Operation::ConstructInsert) {
            return;
        }
        make();
        if (operation != Operation::Insert) {
            insert();
        }
    }

    void run(Operation operation) override {
        switch (operation) {
            case Operation::ConstructInsert:
                make();
                [[fallthrough]];
            case Operation::Insert:
                insert();
                break;
            case Operation::FindHit:
            case Operation::FindMiss:
                find(operation);
                break;
            case Operation::Erase:
                erase();
                break;
        }
    }

    std::size_t count() const override { return work_.count_mask(); }

    void drop() override {
        map_.reset();
        full_ = false;
    }

private:
    Key const* keys(Operation operation) const {
        return reinterpret_cast<Key const*>(work_.keys_for(operation));
    }

    void make() {
        map_.emplace();
        map_->reserve(work_.rows);
    }

    void insert() {
        Key const* const all = keys(Operation::Insert);
        std::int64_t const* const values = work_.values.as<std::int64_t>();
        auto* const mask = work_.mask.as<std::uint8_t>();
        auto const body = [&](std::size_t begin, std::size_t end) {
            for (std::size_t row = begin; row < end; ++row) {
                mask[row] = map_->emplace(all[row], values[row]).second ? 1 : 0;
            }
        };
        if constexpr (Peer::shared_insert) {
            pool_.run(work_.rows, body);
        } else {
            body(0, work_.rows);
        }
        full_ = true;
    }

    void find(Operation operation) {
        Key const* const all = keys(operation);
        auto* const out = work_.out.as<std::int32_t>();
        auto* const mask = work_.mask.as<std::uint8_t>();
        Map const& map = *map_;
        pool_.run(work_.rows, [&](std::size_t begin, std::size_t end) {
            for (std::size_t row = begin; row < end; ++row) {
                auto const at = map.find(all[row]);
                bool const found = at != map.end();
                out[row] = found ? static_cast<std::int32_t>(at->second) : -1;
                mask[row] = found ? 1 : 0;
            }
        });
    }

    void erase() {
        Key const* const all = keys(Operation::Erase);
        auto* const mask = work_.mask.as<std::uint8_t>();
        for (std::size_t row = 0; row < work_.rows; ++row) {
            mask[row] = Peer::erase(*map_, all[row]) ? 1 : 0;
        }
        full_ = false;
    }

    Workload& work_;
    Pool& pool_;
    std::optional<Map> map_;
    bool full_ = false;
};

/// The peer's map for the workload's keys, with its default hash for int64 and ours for wide keys.
/// `Peer::Narrow` is its map of int64, `Peer::Wide<Bytes>` its map of wider keys.
template <class Peer>
std::unique_ptr<Contender> make_peer(Workload& work, Pool& pool) {
    switch (work.kind.bytes) {
        case 8:
            return std::make_unique<PeerMap<Peer, typename Peer::Narrow>>(work, pool);
        case 12:
            return std::make_unique<PeerMap<Peer, typename Peer::template Wide<12>>>(work, pool);
        case 16:
            return std::make_unique<PeerMap<Peer, typename Peer::template Wide<16>>>(work, pool);
        case 64:
            return std::make_unique<PeerMap<Peer, typename Peer::template Wide<64>>>(work, pool);
        default:
            return nullptr;
    }
}

}  // namespace bench
