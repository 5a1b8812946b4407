"""The one part that is compiled: int8 kernels for CPUs with AVX-512 VNNI.

Everything else about the package stands in pyproject.toml. The extension is optional: where no
compiler or no such compiler is found, it is left out and the network runs in float32. A build with
DRAGOMAN_WITHOUT_KERNELS=1 does not try, and its wheel is for every machine.
"""

import os
from pathlib import Path

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension, build_ext
from setuptools import setup

SOURCES = sorted(str(path) for path in Path("model/native/src").glob("*.cpp"))
HEADERS = sorted(str(path) for path in Path("model/native/src").glob("*.h"))
FLAGS = [
    "-O3",
    "-mf16c",
    *(f"-mavx512{name}" for name in ("f", "bw", "dq", "vl", "vnni")),
    # GCC takes its own intrinsics' "undefined" values for mistakes.
    "-Wno-uninitialized",
    "-Wno-maybe-uninitialized",
]

KERNELS = Pybind11Extension(
    "model.native._kernels",
    SOURCES,
    depends=HEADERS,
    cxx_std=20,
    extra_compile_args=FLAGS,
    extra_link_args=["-pthread"],
    optional=True,
)

with ParallelCompile(max=8):  # as many files at once as there are processors
    setup(
        ext_modules=[] if os.environ.get("DRAGOMAN_WITHOUT_KERNELS") == "1" else [KERNELS],
        cmdclass={"build_ext": build_ext},
    )
