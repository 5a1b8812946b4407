"""Whether the compiled kernels can be used here, and the way to them.

Owns the check of the processor: the extension is compiled for AVX-512 with VNNI as a whole, so
it must not even be imported on anything else.
"""

import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from model.errors import UnsupportedVariantError

if TYPE_CHECKING:
    from model.native import _kernels

EXTENSION = "model.native._kernels"
REQUIRED_FLAGS = frozenset(
    {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "f16c", "fma"}
)
CPU_INFO = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """The compiled classes; what they are stands in `_kernels.pyi` and in `src/`.

    Attributes:
        layout: Name of how matrices are packed: the instruction set and a number.
    """

    team: "type[_kernels.Team]"
    weight_memory: "type[_kernels.WeightMemory]"
    matrix: "type[_kernels.Matrix]"
    norm: "type[_kernels.Norm]"
    network: "type[_kernels.Network]"
    shortlist: "type[_kernels.Shortlist]"
    session: "type[_kernels.Session]"
    layout: str


def find_problem(*, cpu_info: Path = CPU_INFO) -> str | None:
    """Why the kernels cannot be used here, in a few words; None when they can.

    Args:
        cpu_info: What Linux says of the processor.
    """
    if missing := missing_flags(cpu_info=cpu_info):
        return f"the processor has no {', '.join(missing)}"
    if importlib.util.find_spec(EXTENSION) is None:
        return f"{EXTENSION} was not built when the package was installed"
    return None


def missing_flags(*, cpu_info: Path = CPU_INFO) -> list[str]:
    """What the kernels need and the processor lacks, in order of the names."""
    return sorted(REQUIRED_FLAGS - _flags(cpu_info))


def load() -> Kernels:
    """Import the compiled module.

    Raises:
        UnsupportedVariantError: It cannot be used here.
    """
    problem = find_problem()
    if problem is not None:
        raise UnsupportedVariantError(f"int8 is not available: {problem}")
    module = importlib.import_module(EXTENSION)
    return Kernels(
        team=module.Team,
        weight_memory=module.WeightMemory,
        matrix=module.Matrix,
        norm=module.Norm,
        network=module.Network,
        shortlist=module.Shortlist,
        session=module.Session,
        layout=f"{module.INSTRUCTION_SET}-{module.LAYOUT}",
    )


def _flags(cpu_info: Path) -> frozenset[str]:
    try:
        lines = cpu_info.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return frozenset()
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            return frozenset(value.split())
    return frozenset()
