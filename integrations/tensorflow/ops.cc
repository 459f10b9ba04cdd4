// The signatures and shape functions of the ops. They check keys, values and defaults when a graph
// is traced. A handle that was made eagerly has no shapes in a graph, so every op carries the
// shapes of the table's keys and values as attributes.
// Over 400 lines, because it is one list.
#include <vector>

#include "status.h"
#include "tensorflow/core/framework/dataset_stateful_op_allowlist.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace {

namespace tf = ::tensorflow;
using tensorhash_tf::invalid;
using tf::shape_inference::DimensionHandle;
using tf::shape_inference::InferenceContext;
using tf::shape_inference::ShapeAndType;
using tf::shape_inference::ShapeHandle;

/// The shapes of one key and one value, from the attributes.
struct Spec {
    ShapeHandle key;
    ShapeHandle value;
};

absl::Status shape_attribute(InferenceContext* c, char const* name, ShapeHandle* shape) {
    tf::PartialTensorShape given;
    TF_RETURN_IF_ERROR(c->GetAttr(name, &given));
    if (!given.IsFullyDefined()) {
        return invalid(name, ": expected a fully defined shape, got ", given.DebugString());
    }
    return c->MakeShapeFromPartialTensorShape(given, shape);
}

absl::Status attributes(InferenceContext* c, Spec* spec) {
    TF_RETURN_IF_ERROR(shape_attribute(c, "key_shape", &spec->key));
    return shape_attribute(c, "value_shape", &spec->value);
}

absl::Status make_handle(InferenceContext* c) {
    Spec spec;
    TF_RETURN_IF_ERROR(attributes(c, &spec));
    tf::DataType key, value;
    TF_RETURN_IF_ERROR(c->GetAttr("key_dtype", &key));
    TF_RETURN_IF_ERROR(c->GetAttr("value_dtype", &value));
    c->set_output(0, c->Scalar());
    c->set_output_handle_shapes_and_types(
        0, std::vector<ShapeAndType>{{spec.key, key}, {spec.value, value}});
    return absl::OkStatus();
}

/// Reads the attributes, and checks them against the handle's dtypes and shapes if it has any.
absl::Status open_table(InferenceContext* c, Spec* spec) {
    ShapeHandle unused;
    TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 0, &unused));
    TF_RETURN_IF_ERROR(attributes(c, spec));
    auto const* const known = c->input_handle_shapes_and_types(0);
    if (known == nullptr || known->size() != 2) {
        return absl::OkStatus();
    }
    tf::DataType key, value;
    TF_RETURN_IF_ERROR(c->GetAttr("Tin", &key));
    TF_RETURN_IF_ERROR(c->GetAttr("Tout", &value));
    if ((*known)[0].dtype != key || (*known)[1].dtype != value) {
        return invalid("table: expected a table of ", tf::DataTypeString(key), " to ",
                       tf::DataTypeString(value), ", got ", tf::DataTypeString((*known)[0].dtype),
                       " to ", tf::DataTypeString((*known)[1].dtype));
    }
    TF_RETURN_IF_ERROR(c->Merge(spec->key, (*known)[0].shape, &spec->key));
    return c->Merge(spec->value, (*known)[1].shape, &spec->value);
}

/// The shape of the batch: the shape of the keys without that of one key.
absl::Status batch_shape(InferenceContext* c, ShapeHandle keys, Spec const& spec,
                         ShapeHandle* batch) {
    if (!c->RankKnown(keys)) {
        *batch = c->UnknownShape();
        return absl::OkStatus();
    }
    int const key_rank = c->Rank(spec.key);
    ShapeHandle last, unused;
    if (c->Rank(keys) < key_rank || !c->Subshape(keys, c->Rank(keys) - key_rank, &last).ok() ||
        !c->Merge(last, spec.key, &unused).ok()) {
        return invalid("keys: expected a shape that ends in the key's, ", c->DebugString(spec.key),
                       ", got ", c->DebugString(keys));
    }
    return c->Subshape(keys, 0, c->Rank(keys) - key_rank, batch);
}

/// The shape of the values of a batch.
absl::Status value_rows(InferenceContext* c, ShapeHandle batch, Spec const& spec,
                        ShapeHandle* rows) {
    return c->Concatenate(batch, spec.value, rows);
}

absl::Status find_shapes(InferenceContext* c) {
    Spec spec;
    TF_RETURN_IF_ERROR(open_table(c, &spec));
    ShapeHandle batch, rows, unused;
    TF_RETURN_IF_ERROR(batch_shape(c, c->input(1), spec, &batch));
    TF_RETURN_IF_ERROR(value_rows(c, batch, spec, &rows));
    ShapeHandle const given = c->input(2);
    if (!c->Merge(given, spec.value, &unused).ok() && !c->Merge(given, rows, &unused).ok()) {
        return invalid("default_value: expected shape ", c->DebugString(spec.value), " or ",
                       c->DebugString(rows), ", got ", c->DebugString(given));
    }
    c->set_output(0, rows);
    c->set_output(1, batch);
    return absl::OkStatus();
}

absl::Status check_keys(InferenceContext* c) {
    Spec spec;
    TF_RETURN_IF_ERROR(open_table(c, &spec));
    ShapeHandle batch;
    return batch_shape(c, c->input(1), spec, &batch);
}

/// Like check_keys, with one output: a number per key.
absl::Status number_keys(InferenceContext* c) {
    Spec spec;
    TF_RETURN_IF_ERROR(open_table(c, &spec));
    ShapeHandle batch;
    TF_RETURN_IF_ERROR(batch_shape(c, c->input(1), spec, &batch));
    c->set_output(0, batch);
    return absl::OkStatus();
}

absl::Status check_items(InferenceContext* c) {
    Spec spec;
    TF_RETURN_IF_ERROR(open_table(c, &spec));
    ShapeHandle batch, rows, unused;
    TF_RETURN_IF_ERROR(batch_shape(c, c->input(1), spec, &batch));
    TF_RETURN_IF_ERROR(value_rows(c, batch, spec, &rows));
    if (!c->Merge(c->input(2), rows, &unused).ok()) {
        return invalid("values: expected shape ", c->DebugString(rows), " for keys of shape ",
                       c->DebugString(c->input(1)), ", got ", c->DebugString(c->input(2)));
    }
    return absl::OkStatus();
}

/// Like check_items, with one output: a bool per key.
absl::Status found_items(InferenceContext* c) {
    TF_RETURN_IF_ERROR(check_items(c));
    Spec spec;
    TF_RETURN_IF_ERROR(open_table(c, &spec));
    ShapeHandle batch;
    TF_RETURN_IF_ERROR(batch_shape(c, c->input(1), spec, &batch));
    c->set_output(0, batch);
    return absl::OkStatus();
}

/// Outputs `first` and the two after it: keys, values and scores of some entries.
absl::Status entry_outputs(InferenceContext* c, Spec const& spec, int first) {
    ShapeHandle const rows = c->Vector(c->UnknownDim());
    ShapeHandle keys, values;
    TF_RETURN_IF_ERROR(c->Concatenate(rows, spec.key, &keys));
    TF_RETURN_IF_ERROR(c->Concatenate(rows, spec.value, &values));
    c->set_output(first, keys);
    c->set_output(first + 1, values);
    c->set_output(first + 2, rows);
    return absl::OkStatus();
}

absl::Status admit_shapes(InferenceContext* c) {
    TF_RETURN_IF_ERROR(found_items(c));
    Spec spec;
    TF_RETURN_IF_ERROR(open_table(c, &spec));
    return entry_outputs(c, spec, 1);
}

absl::Status scored_rows(InferenceContext* c) {
    Spec spec;
    TF_RETURN_IF_ERROR(open_table(c, &spec));
    return entry_outputs(c, spec, 0);
}

absl::Status no_outputs(InferenceContext*) { return absl::OkStatus(); }

absl::Status state_shape(InferenceContext* c) {
    c->set_output(0, c->Vector(c->UnknownDim()));
    return absl::OkStatus();
}

/// Like check_items, but the keys must be one list, as in a checkpoint.
absl::Status check_import(InferenceContext* c) {
    Spec spec;
    TF_RETURN_IF_ERROR(attributes(c, &spec));
    ShapeHandle unused;
    TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1 + c->Rank(spec.key), &unused));
    return check_items(c);
}

absl::Status check_scalars(InferenceContext* c) {
    ShapeHandle unused;
    for (int i = 0; i < c->num_inputs(); ++i) {
        TF_RETURN_IF_ERROR(c->WithRank(c->input(i), 0, &unused));
    }
    return absl::OkStatus();
}

absl::Status scalar_output(InferenceContext* c) {
    TF_RETURN_IF_ERROR(check_scalars(c));
    c->set_output(0, c->Scalar());
    return absl::OkStatus();
}

absl::Status export_shapes(InferenceContext* c) {
    TF_RETURN_IF_ERROR(check_scalars(c));
    Spec spec;
    TF_RETURN_IF_ERROR(open_table(c, &spec));
    ShapeHandle const rows = c->Vector(c->UnknownDim());
    ShapeHandle keys, values;
    TF_RETURN_IF_ERROR(c->Concatenate(rows, spec.key, &keys));
    TF_RETURN_IF_ERROR(c->Concatenate(rows, spec.value, &values));
    c->set_output(0, keys);
    c->set_output(1, values);
    c->set_output(2, c->Scalar());
    return absl::OkStatus();
}

}  // namespace

#define TH_NUMBERS "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float, double"
#define TH_KEYS "{string, " TH_NUMBERS "}"
#define TH_VALUES "{string, half, bfloat16, " TH_NUMBERS "}"

// hash_bits: bits of a string's hash in use. Tests use fewer than 64 to force collisions.
// devices: one shard per device; an empty list means "cpu:0".
#define TH_TABLE_ATTRIBUTES                 \
    Attr("key_dtype: " TH_KEYS)             \
        .Attr("value_dtype: " TH_VALUES)    \
        .Attr("key_shape: shape = {}")      \
        .Attr("value_shape: shape = {}")    \
        .Attr("capacity: int >= 0 = 0")     \
        .Attr("hash_bits: int >= 0 = 64")   \
        .Attr("devices: list(string) = []") \
        .Attr("policy: string = 'hash'")    \
        .SetIsStateful()                    \
        .SetShapeFn(make_handle)
#define TH_NAME_ATTRIBUTES                \
    Attr("container: string = ''")        \
        .Attr("shared_name: string = ''") \
        .Attr("use_node_name_sharing: bool = false")

REGISTER_OP("TensorhashTable").Output("table: resource").TH_NAME_ATTRIBUTES.TH_TABLE_ATTRIBUTES;
REGISTER_OP("TensorhashStaticTable")
    .Output("table: resource")
    .TH_NAME_ATTRIBUTES.TH_TABLE_ATTRIBUTES;
REGISTER_OP("TensorhashAnonymousTable").Output("table: resource").TH_TABLE_ATTRIBUTES;
REGISTER_OP("TensorhashAnonymousStaticTable").Output("table: resource").TH_TABLE_ATTRIBUTES;

// A table of at most max_capacity keys.
REGISTER_OP("TensorhashBoundedTable")
    .Output("table: resource")
    .Attr("max_capacity: int >= 1")
    .Attr("eviction: {'lru', 'score'} = 'lru'")
    .TH_NAME_ATTRIBUTES.TH_TABLE_ATTRIBUTES;
REGISTER_OP("TensorhashAnonymousBoundedTable")
    .Output("table: resource")
    .Attr("max_capacity: int >= 1")
    .Attr("eviction: {'lru', 'score'} = 'lru'")
    .TH_TABLE_ATTRIBUTES;

#define TH_TYPES                       \
    Attr("Tin: " TH_KEYS)              \
        .Attr("Tout: " TH_VALUES)      \
        .Attr("key_shape: shape = {}") \
        .Attr("value_shape: shape = {}")

REGISTER_OP("TensorhashFind")
    .Input("table: resource")
    .Input("keys: Tin")
    .Input("default_value: Tout")
    .Output("values: Tout")
    .Output("exists: bool")
    .TH_TYPES.SetShapeFn(find_shapes);

REGISTER_OP("TensorhashLocate")
    .Input("table: resource")
    .Input("keys: Tin")
    .Output("indices: int64")
    .TH_TYPES.SetIsStateful()
    .SetShapeFn(number_keys);

REGISTER_OP("TensorhashAccumulate")
    .Input("table: resource")
    .Input("keys: Tin")
    .Input("values: Tout")
    .Attr("reduce: {'first', 'last', 'sum', 'min', 'max'} = 'last'")
    .Attr("shard: int >= -1 = -1")
    .TH_TYPES.SetIsStateful()
    .SetShapeFn(check_items);

// scores: one per key, or an empty list for a table that evicts by "lru".
REGISTER_OP("TensorhashAdmit")
    .Input("table: resource")
    .Input("keys: Tin")
    .Input("values: Tout")
    .Input("scores: int64")
    .Output("added: bool")
    .Output("evicted_keys: Tin")
    .Output("evicted_values: Tout")
    .Output("evicted_scores: int64")
    .Attr("reduce: {'first', 'last', 'sum', 'min', 'max'} = 'last'")
    .TH_TYPES.SetIsStateful()
    .SetShapeFn(admit_shapes);

REGISTER_OP("TensorhashTouch")
    .Input("table: resource")
    .Input("keys: Tin")
    .Input("scores: int64")
    .TH_TYPES.SetIsStateful()
    .SetShapeFn(check_keys);

REGISTER_OP("TensorhashExportScores")
    .Input("table: resource")
    .Output("keys: Tin")
    .Output("values: Tout")
    .Output("scores: int64")
    .TH_TYPES.SetIsStateful()
    .SetShapeFn(scored_rows);

// The whole state of a bounded table, for checkpoints.
REGISTER_OP("TensorhashSaveState")
    .Input("table: resource")
    .Output("state: uint8")
    .SetIsStateful()
    .SetShapeFn(state_shape);

REGISTER_OP("TensorhashRestoreState")
    .Input("table: resource")
    .Input("state: uint8")
    .SetIsStateful()
    .SetShapeFn(no_outputs);

REGISTER_OP("TensorhashAssign")
    .Input("table: resource")
    .Input("keys: Tin")
    .Input("values: Tout")
    .Output("exists: bool")
    .TH_TYPES.SetIsStateful()
    .SetShapeFn(found_items);

// settings: the learning rate and the weight decay. An attribute would round them to float.
REGISTER_OP("TensorhashUpdate")
    .Input("table: resource")
    .Input("keys: Tin")
    .Input("gradients: Tout")
    .Input("settings: double")
    .Output("exists: bool")
    .Attr("duplicates: {'in_order', 'sum'} = 'in_order'")
    .TH_TYPES.SetIsStateful()
    .SetShapeFn(found_items);

REGISTER_OP("TensorhashShardSize")
    .Input("table: resource")
    .Input("shard: int64")
    .Output("size: int64")
    .SetIsStateful()
    .SetShapeFn(scalar_output);

REGISTER_OP("TensorhashRemove")
    .Input("table: resource")
    .Input("keys: Tin")
    .TH_TYPES.SetIsStateful()
    .SetShapeFn(check_keys);

REGISTER_OP("TensorhashImport")
    .Input("table: resource")
    .Input("keys: Tin")
    .Input("values: Tout")
    .TH_TYPES.SetIsStateful()
    .SetShapeFn(check_import);

REGISTER_OP("TensorhashInitialize")
    .Input("table: resource")
    .Input("keys: Tin")
    .Input("values: Tout")
    .TH_TYPES.SetIsStateful()
    .SetShapeFn(check_items);

REGISTER_OP("TensorhashClear").Input("table: resource").SetIsStateful().SetShapeFn(check_scalars);

REGISTER_OP("TensorhashReserve")
    .Input("table: resource")
    .Input("capacity: int64")
    .SetIsStateful()
    .SetShapeFn(check_scalars);

REGISTER_OP("TensorhashExport")
    .Input("table: resource")
    .Input("begin: int64")
    .Input("end: int64")
    .Input("limit: int64")
    .Output("keys: Tin")
    .Output("values: Tout")
    .Output("next: int64")
    .TH_TYPES.SetIsStateful()
    .SetShapeFn(export_shapes);

// TensorFlow treats every op with a handle as stateful, and saves no iterator that uses one. These
// two only read, so a restored iterator may repeat them. Ops that change a table stay off the list:
// restoring an iterator does not undo them.
ALLOW_STATEFUL_OP_FOR_DATASET_FUNCTIONS("TensorhashFind");
ALLOW_STATEFUL_OP_FOR_DATASET_FUNCTIONS("TensorhashExport");
