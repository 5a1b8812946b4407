"""The one part that is compiled: the int8 kernels, and what Python sees of them.

Everything else about the package stands in pyproject.toml. `_kernels` is compiled for every
processor. The kernels themselves are compiled once an instruction set, each a module of its own
that is loaded only where the processor has it: nothing of one can be called on one that lacks it.
All are optional: where no compiler is found, or one that does not know an instruction set, what
it cannot compile is left out. A build with DRAGOMAN_WITHOUT_KERNELS=1 does not try, and its wheel
is for every machine. One with DRAGOMAN_KERNELS=here is for this one: it leaves out the instruction
sets that its processor lacks, which are most of the time on an older one.

What is built for is the platform that sysconfig names: this one, or in a cross build the one that
the script .ci/build-wheel gives.
"""

import os
import sysconfig
from pathlib import Path

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension, build_ext
from setuptools import Extension, setup

SOURCE = Path("model/native/src")
HEADERS = sorted(str(path) for path in SOURCE.rglob("*.h"))
BINDING = ("binding", "network_binding", "processor")
"""What Python sees."""
SHARED = (
    "heads",
    "matrix",
    "norm",
    "phrases",
    "sampling",
    "search",
    "shortlist",
    "team",
    "weight_memory",
)
"""What needs no vectors: compiled for every processor, and again into every level."""
LEVEL = tuple(sorted({path.stem for path in SOURCE.glob("*.cpp")}.difference(BINDING, SHARED)))
"""What is written over the vectors of `src/simd/`: all other files."""
COMMON_FLAGS = [
    "-O3",
    # What is fused is written so: results are the same bits whatever a compiler would fuse.
    "-ffp-contract=off",
    # GCC takes its own intrinsics' "undefined" values for mistakes.
    "-Wno-uninitialized",
    "-Wno-maybe-uninitialized",
]
AVX2 = ["-mavx2", "-mfma", "-mf16c"]
AVX512 = [*AVX2, *(f"-mavx512{name}" for name in ("f", "bw", "dq", "vl"))]
INSTRUCTION_SETS = {
    "x86_64": {
        "avx2": AVX2,
        "avx2_vnni": [*AVX2, "-mavxvnni"],
        "avx512": AVX512,
        "avx512_vnni": [*AVX512, "-mavx512vnni"],
        "avx512_amx": [*AVX512, "-mavx512vnni", "-mamx-tile", "-mamx-int8"],
    },
    "aarch64": {
        # Loads that are moved ahead of products would want registers that sums are in.
        "neon": ["-fno-schedule-insns"],
        "neon_dotprod": ["-march=armv8.2-a+dotprod", "-fno-schedule-insns"],
        "neon_i8mm": ["-march=armv8.2-a+dotprod+i8mm", "-fno-schedule-insns"],
    },
}


def sources(names: tuple[str, ...]) -> list[str]:
    """Files of these names."""
    return [str(SOURCE / f"{name}.cpp") for name in names]


def level(name: str, flags: list[str]) -> Extension:
    """The kernels of an instruction set."""
    module = f"_kernels_{name}"
    return Pybind11Extension(
        f"model.native.{module}",
        sources(LEVEL + SHARED),
        depends=HEADERS,
        cxx_std=20,
        define_macros=[
            ("DRAGOMAN_LEVEL", f'"{module}"'),
            ("DRAGOMAN_LEVEL_INIT", f"PyInit_{module}"),
        ],
        extra_compile_args=[*COMMON_FLAGS, *flags],
        extra_link_args=["-pthread"],
        optional=True,
    )


def is_here(flags: list[str], processor: set[str]) -> bool:
    """Whether a processor has all that a compiler may use with these flags.

    Args:
        flags: Of x86-64, each `-m` and the name of what may be used.
        processor: What it has, by the same names; nothing where that is not known.
    """
    needed = {flag.removeprefix("-m").replace("-", "") for flag in flags}
    return not processor or needed <= processor


def processor_of(cpuinfo: Path) -> set[str]:
    """What Linux says that an x86-64 processor has, by the names of GCC's flags."""
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    said = next((line.partition(":")[2] for line in lines if line.startswith("flags")), "")
    return {name.replace("_", "") for name in said.split()}


def extensions() -> list[Extension]:
    """All that this machine's compiler may build."""
    if os.environ.get("DRAGOMAN_WITHOUT_KERNELS") == "1":
        return []
    binding = Pybind11Extension(
        "model.native._kernels",
        sources(BINDING + SHARED),
        depends=HEADERS,
        cxx_std=20,
        extra_compile_args=COMMON_FLAGS,
        extra_link_args=["-pthread"],
        optional=True,
    )
    machine = sysconfig.get_platform().rpartition("-")[2]
    levels = INSTRUCTION_SETS.get(machine, {})
    if os.environ.get("DRAGOMAN_KERNELS") == "here":
        processor = processor_of(Path("/proc/cpuinfo"))
        levels = {name: flags for name, flags in levels.items() if is_here(flags, processor)}
    return [binding, *(level(name, flags) for name, flags in levels.items())]


class BuildApart(build_ext):
    """Each extension in a folder of its own: they compile the same files in different ways."""

    def build_extension(self, ext: Extension) -> None:
        """Build one."""
        together = self.build_temp
        self.build_temp = str(Path(together) / ext.name)
        try:
            super().build_extension(ext)
        finally:
            self.build_temp = together


with ParallelCompile(max=8):  # as many files at once as there are processors
    setup(ext_modules=extensions(), cmdclass={"build_ext": BuildApart})
