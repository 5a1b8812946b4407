"""The variables of a CTranslate2 file while they are given their meaning.

Owns what has been used of a file and what is wrong with what was looked for, so that a conversion
can list both at once. It does not know which variables a network has
(`model.exchange.imports.ctranslate2.network`).
"""

import math
import re
from collections import defaultdict

import torch

from model.errors import shown
from model.exchange.imports.ctranslate2.file import SCALE_SUFFIX, Variable, VariableFile
from model.exchange.imports.problems import attempted

_CHUNK_ROWS = 4096
_NUMBER = re.compile(r"(?<=_)\d+(?=/|$)")
_WEIGHT_TYPES = {torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int16}


class Layout:
    """A file, the names that were used of it, and problems.

    Args:
        file: With revision 2 or later of its specification.
    """

    def __init__(self, file: VariableFile) -> None:
        self.file = file
        self.problems: list[str] = []
        self._used: set[str] = set()

    def __repr__(self) -> str:
        return f"<Layout of {self.file!r}: {len(self._used)} used, {len(self.problems)} problems>"

    def has(self, name: str) -> bool:
        """Whether there is a variable of that name."""
        return name in self.file.variables

    def shape(self, name: str) -> tuple[int, ...]:
        """Its shape; () if there is none."""
        return self.file.variables[name].shape if self.has(name) else ()

    def number(self, name: str, default: float) -> float:
        """A single value; a problem, and the default, if it has several or cannot be read."""
        self._used.add(name)
        value = attempted(self.problems, lambda: self.file.number(name, default))
        return default if value is None else value

    def agreed(self, name: str, default: float) -> float:
        """A number of both stacks, which older files have once; a difference is a problem."""
        common = self.number(name, default)
        encoder, decoder = (
            self.number(f"{side}/{name}", common) for side in ("encoder", "decoder")
        )
        if encoder != decoder:
            self.problems.append(
                f"{name} is {encoder:g} in the encoder, {decoder:g} in the decoder"
            )
        return encoder

    def use(self, name: str, shape: tuple[int, ...]) -> bool:
        """Use a variable of a network; False, and a problem, if it is not there with that shape."""
        self._used |= {name, name + SCALE_SUFFIX}
        if not self.has(name):
            self.problems.append(f"it lacks {name}")
            return False
        problem = self._problem(name, shape)
        if problem:
            self.problems.append(f"{name} {problem}")
        return problem is None

    def ignore(self, *last_parts: str) -> None:
        """Use all variables whose names end so, and which say nothing that matters."""
        self._used |= {
            name for name in self.file.variables if name.rpartition("/")[2] in last_parts
        }

    def is_same(self, one: str, other: str) -> bool:
        """Whether two variables hold the same weights: one is an alias, or their values agree.

        Raises:
            ForeignModelError: The file cannot be read.
        """
        first, second = self.file.variables[one], self.file.variables[other]
        if first == second:
            return True
        if (first.shape, first.dtype) != (second.shape, second.dtype):
            return False
        scales = one + SCALE_SUFFIX, other + SCALE_SUFFIX
        if self.has(scales[0]) != self.has(scales[1]):
            return False
        return self._is_equal(one, other, first) and (
            not self.has(scales[0])
            or self._is_equal(*scales, variable=self.file.variables[scales[0]])
        )

    def refuse_rest(self) -> None:
        """Make problems of what nothing used; names that differ in a number are one problem."""
        groups = defaultdict(list)
        for name in self.file.variables:
            if name not in self._used:
                groups[_NUMBER.sub("*", name)].append(name)
        for pattern, names in sorted(groups.items()):
            count = f" ({len(names)} variables)" if len(names) > 1 else ""
            self.problems.append(f"{shown(pattern)}{count} is not supported")

    def _is_equal(self, one: str, other: str, variable: Variable) -> bool:
        num_rows = variable.shape[0] if variable.shape else 1
        starts = range(0, num_rows, _CHUNK_ROWS)
        return all(
            torch.equal(
                self.file.values(one, start, min(start + _CHUNK_ROWS, num_rows)),
                self.file.values(other, start, min(start + _CHUNK_ROWS, num_rows)),
            )
            for start in starts
        )

    def _problem(self, name: str, shape: tuple[int, ...]) -> str | None:
        variable = self.file.variables[name]
        if variable.shape != shape:
            return f"has the shape {list(variable.shape)}; it must be {list(shape)}"
        is_float = variable.dtype.is_floating_point
        if variable.dtype not in _WEIGHT_TYPES or (len(shape) == 1 and not is_float):
            return f"has the type {str(variable.dtype).removeprefix('torch.')}"
        if is_float:
            return None
        scales = math.prod(self.shape(name + SCALE_SUFFIX)) if self.has(name + SCALE_SUFFIX) else 0
        allowed = {1, shape[0]} if variable.dtype is torch.int8 else {0, 1}
        if scales not in allowed:
            return f"has {scales} scales for {shape[0]} rows"
        return None
