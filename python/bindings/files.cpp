// Files that the package itself writes and reads, .npz among them, by the core's rules.
#include "tensorhash/file.hpp"

#include "table_in.hpp"

namespace tensorhash::bindings {

void bind_files(nb::module_& m) {
    nb::class_<FileReplacement>(m, "FileReplacement",
                                "A new file that takes the place of another on commit().")
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
          "The most bytes that loading a file may take.");
}

}  // namespace tensorhash::bindings
