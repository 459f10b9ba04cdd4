// The public forms of a kernel map. They run on the CPU: a map of a device is copied there, and the
// form is copied back, apart from a pair table that was made with the map.
#include <utility>

#include "coords/kernel_map/forms.hpp"
#include "tensorhash/error.hpp"

namespace tensorhash::coords {

namespace {

/// The map in host memory.
KernelMap on_host(KernelMap map) {
    for (Tensor* const part : {&map.in_maps, &map.out_maps, &map.offsets}) {
        *part = part->to(Device{});
    }
    return map;
}

}  // namespace

KernelMap transpose(KernelMap const& given) {
    KernelMap const map = on_host(given);
    CheckedMap const checked = check_map(map);
    KernelMap turned = map;
    turned.bounds.reset();
    turned.table.reset();
    turned.offsets = map.offsets.clone();
    turned.num_in = map.num_out;
    turned.num_out = map.num_in;
    turned.in_maps = Tensor::empty(map.in_maps.shape(), Dtype::Int32);
    turned.out_maps = Tensor::empty(map.out_maps.shape(), Dtype::Int32);
    exchange_groups(checked, turned.in_maps.as_mutable<std::int32_t>().data(),
                    turned.out_maps.as_mutable<std::int32_t>().data());
    Device const home = given.in_maps.device();
    for (Tensor* const part : {&turned.in_maps, &turned.out_maps, &turned.offsets}) {
        *part = part->to(home);
    }
    return turned;
}

Tensor pair_table(KernelMap const& given) {
    if (given.table) {
        return *given.table;
    }
    KernelMap const map = on_host(given);
    CheckedMap const checked = check_map(map);
    Tensor table =
        Tensor::empty({static_cast<std::int64_t>(checked.groups()), map.num_out}, Dtype::Int32);
    if (!fill_pair_table(checked, table.as_mutable<std::int32_t>().data())) {
        throw ValueError(
            "pair_table: an out row has several in rows under one offset, which a table cannot "
            "show; use in_maps and out_maps");
    }
    return table.to(given.in_maps.device());
}

Tensor pair_mask(KernelMap const& given) {
    KernelMap const map = on_host(given);
    CheckedMap const checked = check_map(map);
    std::size_t const words = (checked.groups() + 31) / 32;
    Tensor mask = Tensor::zeros({map.num_out, static_cast<std::int64_t>(words)}, Dtype::Int32);
    fill_pair_mask(checked, words, static_cast<std::uint32_t*>(mask.data()));
    return mask.to(given.in_maps.device());
}

KernelMapCsr to_csr(KernelMap const& given) {
    KernelMap const map = on_host(given);
    CheckedMap const checked = check_map(map);
    RowPlaces places = count_pairs_of_rows(checked);
    Tensor in_maps = Tensor::empty({places.offsets.back()}, Dtype::Int32);
    write_pairs_by_row(checked, places.next, in_maps.as_mutable<std::int32_t>().data());
    Device const home = given.in_maps.device();
    return {
        in_maps.to(home),
        Tensor::from(places.out_rows, {static_cast<std::int64_t>(places.out_rows.size())}).to(home),
        Tensor::from(places.offsets, {static_cast<std::int64_t>(places.offsets.size())}).to(home)};
}

}  // namespace tensorhash::coords
