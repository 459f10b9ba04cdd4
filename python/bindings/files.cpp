// Binds the core's rules for files, for the formats that the Python package reads and writes
// itself.
#include "tensorhash/file.hpp"

#include "table_in.hpp"

namespace tensorhash::bindings {

void bind_files(nb::module_& m) {
    nb::class_<FileReplacement>(m, "FileReplacement",
                                "A new file that replaces another one on commit().")
        .def(
            "__init__",
            [](FileReplacement* self, nb::bytes const& file_name) {
                new (self) FileReplacement(path_of(file_name));
            },
            nb::arg("file_name"))
        .def("fileno", &FileReplacement::descriptor)
        .def("discard", &FileReplacement::discard)
        .def("commit", [](FileReplacement& self) { without_gil([&] { self.commit(); }); });
    m.def("load_limit", &load_limit, nb::arg("file_bytes"), nb::arg("max_bytes").none(),
          "The most bytes of memory that loading a file may use.");
}

}  // namespace tensorhash::bindings
