"""Both sides of a comparison held to one instruction set, by variables that their processes read.

Owns what ours are called by the others. CTranslate2's own variable is for its own loops; its
products are oneDNN's, or MKL's on Intel's processors, and each of them asks the processor itself.
"""

from collections.abc import Mapping

from model.native import kernels

_THEIRS = ("CT2_FORCE_CPU_ISA", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS")
INSTRUCTION_SETS = {
    "avx2": ("AVX2", "AVX2", "AVX2"),
    "avx2-vnni": ("AVX2", "AVX2_VNNI", "AVX2"),
    "avx512": ("AVX512", "AVX512_CORE", "AVX512"),
    "avx512-vnni": ("AVX512", "AVX512_CORE_VNNI", "AVX512_E1"),
    "avx512-amx": ("AVX512", "AVX512_CORE_AMX", "AVX512_E4"),
}
"""Ours by name, and what the others call the same, in the order of their variables."""


def environment(instruction_set: str | None) -> dict[str, str]:
    """Variables by which every rival uses an instruction set; none where each chooses."""
    if instruction_set is None:
        return {}
    theirs = dict(zip(_THEIRS, INSTRUCTION_SETS[instruction_set], strict=True))
    return {kernels.VARIABLE: instruction_set} | theirs


def held(environment: Mapping[str, str]) -> dict[str, str]:
    """Of an environment those variables, for a process that gets few others."""
    names = (kernels.VARIABLE, *_THEIRS)
    return {name: environment[name] for name in names if name in environment}
