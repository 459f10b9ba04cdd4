// What the ops compute on the CPU: each reads and checks its inputs, then calls the table.
// ops.cc has their signatures, table_ops.h what they do; this file registers them.
#include <type_traits>

#include "lookup_table_op.h"
#include "read_only_table.h"
#include "string_table.h"
#include "table_ops.h"
#include "text_table.h"

namespace tensorhash_tf {
namespace {

// TensorFlow's own lookup ops work on a LookupInterface.
static_assert(std::is_base_of_v<tf::lookup::LookupInterface, MutableNvidiaHashTableOfScalars>);

#define TH_REGISTER(op, type) \
    REGISTER_KERNEL_BUILDER(Name("Tensorhash" op).Device(tf::DEVICE_CPU), type)
TH_REGISTER("Find", FindOp);
TH_REGISTER("Locate", LocateOp);
TH_REGISTER("Accumulate", AccumulateOp);
TH_REGISTER("Assign", AssignOp);
TH_REGISTER("Update", UpdateOp);
TH_REGISTER("ShardSize", ShardSizeOp);
TH_REGISTER("Remove", RemoveOp);
TH_REGISTER("Clear", ClearOp);
TH_REGISTER("Reserve", ReserveOp);
TH_REGISTER("Import", ImportOp);
TH_REGISTER("Initialize", InitializeOp);
TH_REGISTER("Export", ExportOp);
#undef TH_REGISTER

// Only strings need a table class of their own: the engine handles all other dtypes at run time.
#define TH_REGISTER_TABLE(op, keys, values, type)                       \
    REGISTER_KERNEL_BUILDER(Name("Tensorhash" op)                       \
                                .Device(tf::DEVICE_CPU)                 \
                                .TypeConstraint("key_dtype", keys)      \
                                .TypeConstraint("value_dtype", values), \
                            type)
#define TH_REGISTER_TABLES(keys, values, container)                                       \
    TH_REGISTER_TABLE("Table", keys, values, LookupTableOp<container>);                   \
    TH_REGISTER_TABLE("AnonymousTable", keys, values, AnonymousLookupTableOp<container>); \
    TH_REGISTER_TABLE("StaticTable", keys, values, LookupTableOp<ReadOnly<container>>);   \
    TH_REGISTER_TABLE("AnonymousStaticTable", keys, values,                               \
                      AnonymousLookupTableOp<ReadOnly<container>>)

tf::DataTypeVector const kStrings = {tf::DT_STRING};
TH_REGISTER_TABLES(number_keys(), number_values(), PlainTable);
TH_REGISTER_TABLES(kStrings, number_values(), StringTable);
TH_REGISTER_TABLES(number_keys(), kStrings, TextTable<NumberKeys>);
TH_REGISTER_TABLES(kStrings, kStrings, TextTable<StringKeys>);
#undef TH_REGISTER_TABLES
#undef TH_REGISTER_TABLE

}  // namespace
}  // namespace tensorhash_tf
