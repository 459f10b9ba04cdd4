// Every kernel body that is compiled, by name: one list for nvcc, clang and the tests. `Use` gets
// one type; a type with commas is one argument list.
#pragma once

#include "device/elements.hpp"
#include "device/erase.hpp"
#include "device/expand.hpp"
#include "device/find.hpp"
#include "device/flat.hpp"
#include "device/insert.hpp"
#include "device/kernel_map.hpp"
#include "device/neighbours.hpp"
#include "device/picks.hpp"
#include "device/rebuild.hpp"
#include "device/reduce.hpp"
#include "device/route.hpp"
#include "device/row_wise.hpp"
#include "device/segments.hpp"
#include "device/shrink.hpp"
#include "device/update.hpp"
#include "device/values.hpp"
#include "device/vectors.hpp"
#include "device/voxels.hpp"

#define TH_FOR_EACH_NARROW_READER(Use) Use(Narrow8) Use(Narrow4) Use(NarrowAny)
#define TH_FOR_EACH_WIDE_READER(Use) Use(Wide12) Use(Wide16) Use(WideAny)

#define TH_BODIES_OF_READER(Use, Reader)                                                \
    Use(FindRows<step::Reader>) Use(FindRowsByTile<step::Reader, 4>)                    \
        Use(FindRowsByTile<step::Reader, 8>) Use(ClaimRows<step::Reader>)               \
            Use(ClaimRowsByTile<step::Reader, 4>) Use(ClaimRowsByTile<step::Reader, 8>) \
                Use(SettleRows<step::Reader>) Use(PublishRows<step::Reader>)            \
                    Use(MarkRows<step::Reader>) Use(ReleaseRows<step::Reader>)          \
                        Use(ReleaseClaims<step::Reader>) Use(PlaceLive<step::Reader>)   \
                            Use(ShardRows<step::Reader>)

// Wide slots and their tickets are claimed at once, so no wide row joins late.
#define TH_NARROW_BODIES(Use)                                         \
    Use(JoinLateRows<step::Narrow8>) Use(JoinLateRows<step::Narrow4>) \
        Use(JoinLateRows<step::NarrowAny>)

#define TH_TABLE_BODIES(Use)                                                                      \
    Use(CountMissing) Use(FinishRows) Use(FinishInsert) Use(ForgetClaims) Use(ClearLive)          \
        Use(PushFreed) Use(FinishErase) Use(FinishRebuild) Use(ScanCounts<std::uint32_t>)         \
            Use(ScanCounts<std::uint64_t>) Use(CountChosen<IsLive>) Use(ListChosen<IsLive>)       \
                Use(CountChosen<MaskIs>) Use(ListChosen<MaskIs>) Use(GatherRows) Use(ScatterRows) \
                    Use(FindBegins) Use(UngroupRows) Use(FinishCompact) Use(SetLive)              \
                        Use(RankChosen<IsLive>) Use(SequenceRows) Use(FlipMask) Use(CountSteps)   \
                            Use(WidenRows) Use(CountEntries) Use(CopyStrided) Use(ForgetOwners)   \
                                Use(RaiseOwners) Use(ChooseOwners) Use(CountChosen<IsBelow>)      \
                                    Use(ListChosen<IsBelow>) Use(FindEndOfLive) Use(FinishShrink)

#define TH_JOINS(Use, Body, Type) \
    Use(Body<Type, JoinSum>) Use(Body<Type, JoinMin>) Use(Body<Type, JoinMax>)

#define TH_PRODUCT(Use, Type) Use(JoinInOrder<Type, JoinProd>)

#define TH_PRODUCT_BODIES(Use)            \
    TH_PRODUCT(Use, Plain<bool>)          \
    TH_PRODUCT(Use, Plain<std::int8_t>)   \
    TH_PRODUCT(Use, Plain<std::uint8_t>)  \
    TH_PRODUCT(Use, Plain<std::int16_t>)  \
    TH_PRODUCT(Use, Plain<std::uint16_t>) \
    TH_PRODUCT(Use, Plain<std::int32_t>)  \
    TH_PRODUCT(Use, Plain<std::uint32_t>) \
    TH_PRODUCT(Use, Plain<std::int64_t>)  \
    TH_PRODUCT(Use, Plain<std::uint64_t>) \
    TH_PRODUCT(Use, Half)                 \
    TH_PRODUCT(Use, BrainHalf)            \
    TH_PRODUCT(Use, Plain<float>)         \
    TH_PRODUCT(Use, Plain<double>)

#define TH_JOIN_BODIES(Use)                          \
    TH_PRODUCT_BODIES(Use)                           \
    TH_JOINS(Use, JoinAtomically, std::int32_t)      \
    TH_JOINS(Use, JoinAtomically, std::uint32_t)     \
    TH_JOINS(Use, JoinAtomically, std::int64_t)      \
    TH_JOINS(Use, JoinAtomically, std::uint64_t)     \
    TH_JOINS(Use, JoinInOrder, Plain<bool>)          \
    TH_JOINS(Use, JoinInOrder, Plain<std::int8_t>)   \
    TH_JOINS(Use, JoinInOrder, Plain<std::uint8_t>)  \
    TH_JOINS(Use, JoinInOrder, Plain<std::int16_t>)  \
    TH_JOINS(Use, JoinInOrder, Plain<std::uint16_t>) \
    TH_JOINS(Use, JoinInOrder, Half)                 \
    TH_JOINS(Use, JoinInOrder, BrainHalf)            \
    TH_JOINS(Use, JoinInOrder, Plain<float>)         \
    TH_JOINS(Use, JoinInOrder, Plain<double>)

#define TH_STEPS(Use, Type, T)                                                \
    Use(StepInOrder<Type, SgdStep<T>>) Use(StepInOrder<Type, AdagradStep<T>>) \
        Use(StepInOrder<Type, AdamStep<T>>) Use(RowWiseInOrder<Type>)

#define TH_STEP_BODIES(Use)            \
    TH_STEPS(Use, Half, float)         \
    TH_STEPS(Use, BrainHalf, float)    \
    TH_STEPS(Use, Plain<float>, float) \
    TH_STEPS(Use, Plain<double>, double)

#define TH_COORD_BODIES(Use)                                                                       \
    Use(NarrowRows) Use(CompareRows) Use(FindOutside) Use(ClearFlat) Use(ClaimFlat)                \
        Use(RehashFlat) Use(DropFlat) Use(FindFlatByTile<4>) Use(FindFlatByTile<8>) Use(ClaimWide) \
            Use(DropWide) Use(SearchRows) Use(SearchShifted) Use(FindRepeat)                       \
                Use(CountChosen<IsFirst>) Use(ListChosen<IsFirst>) Use(CountChosen<IsAbsent>)      \
                    Use(ListChosen<IsAbsent>) Use(ToCells) Use(CoarseMasks) Use(ProbeOffsets)      \
                        Use(WritePairs) Use(WriteOffsets) Use(SumRows<std::int32_t>)               \
                            Use(SumRows<std::int64_t>) Use(DivideRows<std::int32_t>)               \
                                Use(DivideRows<std::int64_t>) Use(CheckBatches) Use(FirstColumn)   \
                                    Use(BatchKeys)

#define TH_POINT_BODIES(Use)                                                                       \
    Use(ReadPoints) Use(ReadBatch) Use(QuantizePoints<std::int32_t>)                               \
        Use(QuantizePoints<std::int64_t>) Use(CountVoxelRows) Use(FindEmptyVoxel)                  \
            Use(PickVoxelRows) Use(ReduceVoxels<Truth>) Use(ReduceVoxels<Plain<std::int8_t>>)      \
                Use(ReduceVoxels<Plain<std::uint8_t>>) Use(ReduceVoxels<Plain<std::int16_t>>) Use( \
                    ReduceVoxels<Plain<std::uint16_t>>) Use(ReduceVoxels<Plain<std::int32_t>>)     \
                    Use(ReduceVoxels<Plain<std::uint32_t>>) Use(ReduceVoxels<Plain<std::int64_t>>) \
                        Use(ReduceVoxels<Plain<std::uint64_t>>) Use(ReduceVoxels<Half>)            \
                            Use(ReduceVoxels<BrainHalf>) Use(ReduceVoxels<Plain<float>>)           \
                                Use(ReduceVoxels<Plain<double>>) Use(ScaleNumbers)                 \
                                    Use(ToGridCells) Use(CountNeighbours) Use(WriteNeighbours)     \
                                        Use(ClaimVectors) Use(DropVectors) Use(FindVectors)        \
                                            Use(VoxelCenters) Use(NearestRows) Use(HalfKeys)       \
                                                Use(ModeRows) Use(CastElements) Use(NumberRows)
