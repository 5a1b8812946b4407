// What both parts of the binding have in common: arrays, and the checks of what comes from Python.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <stdexcept>

#include "network.h"

namespace py = pybind11;

template <class T>
using Array = py::array_t<T, py::array::c_style>;

inline void require(bool is_so, const char* message) {
  if (!is_so) throw std::invalid_argument(message);
}

// Adds the classes of weights to the module.
void bind_network(py::module_& module);
