// Translates the library's exceptions to Python's.
#include "tensorhash/error.hpp"

#include <exception>
#include <string>

#include "bindings.hpp"
#include "tensorhash/dtype.hpp"

namespace tensorhash::bindings {
namespace {

// OSError(code, text) becomes FileNotFoundError, PermissionError, ... by its code.
void set_os_error(SystemError const& error) {
    PyObject* arguments = Py_BuildValue("(is)", error.code(), error.what());
    if (arguments == nullptr) return;
    PyErr_SetObject(PyExc_OSError, arguments);
    Py_DECREF(arguments);
}

/// Adds how to cast the argument in NumPy and torch, which the library itself does not know.
std::string with_cast(DtypeError const& error) {
    std::string const wanted(name(error.expected()));
    return std::string(error.what()) + "; cast it first, with " + error.argument() + ".astype(\"" +
           wanted + "\") or " + error.argument() + ".to(torch." + wanted + ")";
}

void translate(std::exception_ptr const& pointer, void*) {
    try {
        std::rethrow_exception(pointer);
    } catch (DtypeError const& error) {
        PyErr_SetString(PyExc_TypeError, with_cast(error).c_str());
    } catch (TypeError const& error) {
        PyErr_SetString(PyExc_TypeError, error.what());
    } catch (ValueError const& error) {
        PyErr_SetString(PyExc_ValueError, error.what());
    } catch (IndexError const& error) {
        PyErr_SetString(PyExc_IndexError, error.what());
    } catch (KeyError const& error) {
        PyErr_SetString(PyExc_KeyError, error.what());
    } catch (FormatError const& error) {
        PyErr_SetString(PyExc_ValueError, error.what());
    } catch (SystemError const& error) {
        set_os_error(error);
    } catch (Error const& error) {  // DeviceError, TableFull, CorruptTable
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
}

}  // namespace

void bind_errors(nb::module_&) { nb::register_exception_translator(translate); }

}  // namespace tensorhash::bindings
