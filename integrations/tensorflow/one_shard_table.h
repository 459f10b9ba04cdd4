// What tables share that keep strings beside the engine: one shard, on the first CPU device.
#ifndef TENSORHASH_TENSORFLOW_ONE_SHARD_TABLE_H_
#define TENSORHASH_TENSORFLOW_ONE_SHARD_TABLE_H_

#include "table.h"

namespace tensorhash_tf {

class OneShardTable : public Table {
public:
    using Table::Table;

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
    /// Of an export: all indices of the only shard, or none of them is asked for by mistake.
    static absl::Status check_end(std::int64_t end) {
        return end >= std::int64_t{1} << 32
                   ? absl::OkStatus()
                   : invalid("end: expected all of the only shard, 2^32 or more, got ", end);
    }

private:
    static absl::Status only_shard(std::int64_t shard) {
        return shard == 0 ? absl::OkStatus() : invalid("shard: expected 0, got ", shard);
    }
};

}  // namespace tensorhash_tf

#endif  // TENSORHASH_TENSORFLOW_ONE_SHARD_TABLE_H_
