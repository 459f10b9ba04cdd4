// The base of tables that keep strings outside the engine: one shard, on the first CPU device.
#ifndef TENSORHASH_TENSORFLOW_ONE_SHARD_TABLE_H_
#define TENSORHASH_TENSORFLOW_ONE_SHARD_TABLE_H_

#include "table.h"

namespace tensorhash_tf {

class OneShardTable : public LookupTable {
public:
    using LookupTable::LookupTable;

    absl::Status require_shard(tf::Tensor const&, std::int64_t shard) final {
        return only_shard(shard);
    }
    absl::Status shard_size(std::int64_t shard, std::int64_t* size) final {
        TF_RETURN_IF_ERROR(only_shard(shard));
        *size = static_cast<std::int64_t>(this->size());
        return absl::OkStatus();
    }

protected:
    absl::Status check_devices() const {
        if (placement_.devices == Placement().devices) {
            return absl::OkStatus();
        }
        return invalid("devices: expected none, or cpu:0, for string keys and string values, got ",
                       placement_.describe());
    }
    /// Map::export_from() takes no `end`. So an `end` inside the shard is refused, not ignored.
    static absl::Status check_end(std::int64_t end) {
        return end >= std::int64_t{1} << 32
                   ? absl::OkStatus()
                   : invalid("end: expected 2^32 or more, the end of the only shard, got ", end);
    }

private:
    static absl::Status only_shard(std::int64_t shard) {
        return shard == 0 ? absl::OkStatus() : invalid("shard: expected 0, got ", shard);
    }
};

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_ONE_SHARD_TABLE_H_
