// Binds RankBatch and the functions of owners, for tensorhash.distributed.
#include "tensorhash/ranks.hpp"

#include <nanobind/stl/array.h>

#include "table_in.hpp"

namespace tensorhash::bindings {
namespace {

RankBatch grouped(ElementSpec const& key, std::vector<ElementSpec> const& elements,
                  std::int64_t ranks, nb::handle keys, Arrays const& columns,
                  std::optional<std::vector<std::string>> const& reduce) {
    Tensor const rows = to_tensor(keys, "keys", to_element(key).dtype);
    std::vector<Tensor> const values = to_tensors(columns, "values", to_elements(elements));
    std::optional<std::vector<Reduce>> words;
    if (reduce) words = to_reduces(*reduce);
    return without_gil([&] {
        RankBatch batch(to_element(key), to_elements(elements), ranks);
        words ? batch.take_joined(rows, values, *words) : batch.take(rows, values);
        return batch;
    });
}

RankBatch asked(ElementSpec const& key, std::vector<ElementSpec> const& elements,
                std::int64_t ranks, nb::handle keys, Arrays const& defaults) {
    Tensor const rows = to_tensor(keys, "keys", to_element(key).dtype);
    std::vector<Tensor> const missing = to_tensors(defaults, "default", to_elements(elements));
    return without_gil([&] {
        RankBatch batch(to_element(key), to_elements(elements), ranks);
        batch.take_question(rows, missing);
        return batch;
    });
}

void bind_rank_batch(nb::module_& m) {
    nb::class_<RankBatch>(m, "RankBatch", "A batch grouped by the rank that owns each key.")
        .def_static("grouped", &grouped, nb::arg("key"), nb::arg("elements"), nb::arg("ranks"),
                    nb::arg("keys"), nb::arg("columns"), nb::arg("reduce").none() = nb::none(),
                    "With `reduce`, rows with equal keys may be joined.")
        .def_static("asked", &asked, nb::arg("key"), nb::arg("elements"), nb::arg("ranks"),
                    nb::arg("keys"), nb::arg("defaults"), "Keys for values().")
        .def_prop_ro("counts", [](RankBatch const& self) { return self.counts(); })
        .def_prop_ro("places", &RankBatch::places)
        .def(
            "pack",
            [](RankBatch const& self, std::int64_t column, std::int64_t begin, std::int64_t end,
               Tensor& to,
               std::int64_t at) { without_gil([&] { self.pack(column, begin, end, to, at); }); },
            nb::arg("column"), nb::arg("begin"), nb::arg("end"), nb::arg("to"), nb::arg("at"))
        .def(
            "answers",
            [](RankBatch const& self, Tensor const& grouped, bool marked) {
                RankAnswers out = without_gil([&] { return self.answers(grouped, marked); });
                return Pair{std::move(out.places), std::move(out.mask)};
            },
            nb::arg("grouped"), nb::arg("marked"))
        .def(
            "mask",
            [](RankBatch const& self, Tensor const& grouped, bool only_first) {
                return without_gil([&] { return self.mask(grouped, only_first); });
            },
            nb::arg("grouped"), nb::arg("only_first") = false)
        .def(
            "values",
            [](RankBatch const& self, std::vector<Tensor> const& received, Tensor const& found,
               std::int64_t rank, Tensor const& indices, std::int64_t begin,
               std::vector<Tensor> const& columns) {
                OwnRows const own{rank, indices, begin, columns};
                return without_gil([&] { return self.values(received, found, own); });
            },
            nb::arg("received"), nb::arg("found"), nb::arg("rank"), nb::arg("indices"),
            nb::arg("begin"), nb::arg("columns"),
            "Rows of `rank` are those of `columns` at `indices`, from `begin` on.");
}

void bind_shared_memory(nb::module_& m) {
    nb::class_<SharedMemory>(m, "SharedMemory", "Memory that other processes can read.")
        .def(nb::init<std::int64_t, std::string const&>(), nb::arg("bytes"), nb::arg("name"))
        .def_static(
            "open",
            [](std::int64_t process, std::int64_t file, std::string const& name) {
                return without_gil([&] { return SharedMemory(process, file, name); });
            },
            nb::arg("process"), nb::arg("file"), nb::arg("name"), "To read it.")
        .def_prop_ro("file", &SharedMemory::file)
        .def_prop_ro("bytes", &SharedMemory::bytes)
        .def(
            "rows",
            [](SharedMemory const& self, std::int64_t at, std::int64_t rows,
               ElementSpec const& element) { return self.rows(at, rows, to_element(element)); },
            nb::arg("at"), nb::arg("rows"), nb::arg("element"))
        .def(
            "post",
            [](SharedMemory& self, std::int64_t box, SharedMemory::Message const& message) {
                self.post(box, message);
            },
            nb::arg("box"), nb::arg("message"))
        .def(
            "take",
            [](SharedMemory const& self, std::int64_t box, std::uint32_t number, double seconds) {
                return without_gil([&] { return self.take(box, number, seconds); });
            },
            nb::arg("box"), nb::arg("number"), nb::arg("seconds"))
        .def("set_taken", &SharedMemory::set_taken, nb::arg("box"), nb::arg("messages"))
        .def("taken", &SharedMemory::taken, nb::arg("box"))
        .def_ro_static("box_bytes", &SharedMemory::kBoxBytes);
    m.def(
        "copy_rows",
        [](Tensor const& from, std::int64_t begin, std::int64_t end, Tensor& to, std::int64_t at) {
            without_gil([&] { copy_rows(from, begin, end, to, at); });
        },
        nb::arg("from_"), nb::arg("begin"), nb::arg("end"), nb::arg("to"), nb::arg("at"));
}

}  // namespace

void bind_ranks(nb::module_& m) {
    bind_rank_batch(m);
    bind_shared_memory(m);
    m.def(
        "rank_of_keys",
        [](nb::handle keys, ElementSpec const& key, std::int64_t ranks) {
            Tensor const rows = to_tensor(keys, "keys", to_element(key).dtype);
            return without_gil([&] { return rank_of_keys(rows, to_element(key), ranks); });
        },
        nb::arg("keys"), nb::arg("key"), nb::arg("ranks"));
    m.def(
        "empty_rows",
        [](std::int64_t rows, ElementSpec const& element) {
            Shape shape = element.second;
            shape.insert(shape.begin(), rows);
            return without_gil(
                [&] { return Tensor::empty(std::move(shape), dtype_from_name(element.first)); });
        },
        nb::arg("rows"), nb::arg("element"), "Uninitialised rows on the CPU.");
    m.def(
        "marked_indices",
        [](Tensor const& indices, Tensor const& mask) {
            return without_gil([&] { return marked_indices(indices, mask); });
        },
        nb::arg("indices"), nb::arg("mask"));
    m.def(
        "rows_where",
        [](Tensor const& indices, bool found) {
            return without_gil([&] { return rows_where(indices, found); });
        },
        nb::arg("indices"), nb::arg("found"));
    m.def(
        "count_true",
        [](Tensor const& mask, std::vector<std::int64_t> const& counts) {
            return without_gil([&] { return count_true(mask, counts); });
        },
        nb::arg("mask"), nb::arg("counts"));
    m.def(
        "pack_rows",
        [](Tensor const& from, Tensor const& rows, std::int64_t begin, std::int64_t end, Tensor& to,
           std::int64_t at) { without_gil([&] { pack_rows(from, rows, begin, end, to, at); }); },
        nb::arg("from_"), nb::arg("rows"), nb::arg("begin"), nb::arg("end"), nb::arg("to"),
        nb::arg("at"));
}

}  // namespace tensorhash::bindings
