// A level as a Python module: nothing but the address of its kernels, for `Session` of
// `model.native._kernels`. Loaded only where the processor has the instruction set.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "level.h"

namespace {

PyModuleDef definition = {PyModuleDef_HEAD_INIT, DRAGOMAN_LEVEL, nullptr, -1, nullptr,
                          nullptr, nullptr, nullptr, nullptr};

}  // namespace

// The name of the function that Python looks for follows from the module's.
PyMODINIT_FUNC DRAGOMAN_LEVEL_INIT() {
  PyObject* module = PyModule_Create(&definition);
  if (module == nullptr) return nullptr;
  void* kernels = const_cast<dragoman::Level*>(&dragoman::level());
  PyObject* capsule = PyCapsule_New(kernels, "dragoman.level", nullptr);
  const bool is_added = capsule != nullptr && PyModule_AddObjectRef(module, "LEVEL", capsule) == 0;
  Py_XDECREF(capsule);
  if (is_added) return module;
  Py_DECREF(module);
  return nullptr;
}
