"""Results of a comparison: as numbers, as a line of the table, as a verdict.

Owns neither networks nor references.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

BOUND = 1e-3
"""Of differences in float32, where the largest number is 1; larger numbers may differ by more."""
INT8_FACTOR = 1.1
"""Of the mean difference of int8 from float32: ours may be so many times the reference's own.

Both are means of absolute rounding errors, of the same tokens. If an error is near to normal, its
absolute value spreads by 0.76 of its mean; over 500 tokens a mean is then sure to 3.4%, the ratio
of two of them to 4.8%, and twice that is a tenth. Three reduced networks spread by 0.8 to 1.1 of
the mean, but both engines err more at the same tokens, which steadies the ratio: of sentences drawn
again it moved by 2.6 to 3.5%. The largest difference is told and not judged: it is one token of
thousands, and moves by half from sample to sample.
"""
KERNEL_FACTOR = 1.25
"""Of the mean difference of int8 from float32: the kernels' by that of their own definition, whose
sums are of float64. 1.05 and 1.09 were seen with 90 tokens of networks of released sizes."""
INT8_TOKENS = 500
"""With fewer, chance alone goes beyond the factor, and nothing is judged."""
Int8Verdict = Literal["within", "beyond", "too few tokens", "no reference"]
_COUNTS = (
    "num_sentences",
    "num_equal",
    "num_ties",
    "num_differing",
    "greedy_equal",
    "greedy_ties",
    "greedy_differing",
)
_DISTANCES = (
    "encoder",
    "logits",
    "int8",
    "int8_beside",
    "int8_defined",
    "int8_alike",
    "reference_int8",
)
COLUMNS = "{:22} {:>9} {:>9} {:>9} {:>16} {:>16} {:>15} {:>15} {:>15}  {}"
HEAD = (
    "family",
    "sentences",
    "encoder",
    "logits",
    "equal/tie/differ",
    "greedy",
    "int8 max/mean",
    "alike max/mean",
    "theirs max/mean",
    "exported",
)


@dataclass(slots=True)
class Distance:
    """Absolute differences: the largest, the sum, how many, and the largest number itself."""

    largest: float = 0.0
    total: float = 0.0
    num: int = 0
    scale: float = 0.0

    def add(self, ours: Tensor, theirs: Tensor) -> None:
        """Take the differences of two tensors of one shape, (B, …) by parts where there are logits.

        Raises:
            ValueError: A number of one of them is not finite.
        """
        if ours.dim() > 2:
            for mine, other in zip(ours, theirs, strict=True):
                self.add(mine, other)
            return
        gap = (ours.double() - theirs.double()).abs()
        if not gap.isfinite().all():
            raise ValueError("a difference is not finite")
        self.largest = max(self.largest, float(gap.max()))
        self.total += float(gap.sum())
        self.num += gap.numel()
        self.scale = max(self.scale, float(theirs.abs().max()))

    def add_lists(self, ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> None:
        """Take those of lists, number by number."""
        for mine, other in zip(ours, theirs, strict=True):
            self.add(torch.tensor(mine).double(), torch.tensor(other).double())

    def merge(self, other: "Distance") -> None:
        """Take those that somebody else has taken."""
        self.largest = max(self.largest, other.largest)
        self.total += other.total
        self.num += other.num
        self.scale = max(self.scale, other.scale)

    @property
    def mean(self) -> float:
        """0 if there were none."""
        return self.total / max(1, self.num)

    @property
    def is_parity(self) -> bool:
        """Whether something was compared and was near enough."""
        return self.num > 0 and self.largest <= BOUND * max(1.0, self.scale)


@dataclass(slots=True)
class Figures:
    """A family's line; None is what its reference does not show.

    Attributes:
        family: Its name.
        reference: Who was compared with.
        num_sentences: Sentences compared.
        encoder: Of the encoder's output.
        logits: Of logits, or of the log-probabilities of given tokens where only those are shown.
        is_searched: Whether the reference shows hypotheses.
        num_equal, num_ties, num_differing: Hypotheses of a beam of 4.
        greedy_equal, greedy_ties, greedy_differing: Those of a greedy search, where it is shown.
        int8: Of log-probabilities of given tokens, our int8 kernels against our float32.
        int8_beside: Ours for the tokens of `reference_int8`, where those are others.
        int8_defined: The same by the definition of the kernels' arithmetic.
        int8_alike: The same with no more matrices in int8 than the reference has, by that
            definition, where it leaves some in float32.
        reference_int8: The same of CTranslate2's or Marian's own int8; of an export if need be.
        exported: By target, of what the target's own engine says of an export.
    """

    family: str
    reference: str
    num_sentences: int = 0
    encoder: Distance | None = None
    logits: Distance = field(default_factory=Distance)
    is_searched: bool = True
    num_equal: int = 0
    num_ties: int = 0
    num_differing: int = 0
    greedy_equal: int = 0
    greedy_ties: int = 0
    greedy_differing: int = 0
    int8: Distance = field(default_factory=Distance)
    int8_beside: Distance | None = None
    int8_defined: Distance | None = None
    int8_alike: Distance | None = None
    reference_int8: Distance | None = None
    exported: dict[str, Distance] = field(default_factory=dict)

    @property
    def is_parity(self) -> bool:
        """Whether float32 is equal and int8 as near to it as the reference's own.

        Equal is all that was compared, and no hypothesis differs.
        """
        compared = [self.logits, *self.exported.values()]
        if self.encoder is not None:
            compared.append(self.encoder)
        has_found = self.num_equal + self.num_ties > 0 or not self.is_searched
        is_same = has_found and self.num_differing == self.greedy_differing == 0
        is_equal = is_same and all(distance.is_parity for distance in compared)
        if not is_equal:
            return False
        is_near = "beyond" not in (self.int8_verdict, self.alike_verdict)
        return is_near and self._kernels_are_as_defined

    @property
    def _kernels_are_as_defined(self) -> bool:
        """Whether what is told by the definition is what the kernels do."""
        ours, defined = self.int8_beside, self.int8_defined
        return ours is None or defined is None or ours.mean <= KERNEL_FACTOR * defined.mean

    @property
    def int8_verdict(self) -> Int8Verdict:
        """What the mean of int8 is beside that of the reference's own; see `INT8_FACTOR`."""
        return self._verdict_of(self.int8_beside or self.int8)

    @property
    def alike_verdict(self) -> Int8Verdict:
        """The same of the matrices that the reference has in int8 too, if it leaves some out."""
        return "no reference" if self.int8_alike is None else self._verdict_of(self.int8_alike)

    def _verdict_of(self, ours: Distance) -> Int8Verdict:
        theirs = self.reference_int8
        if theirs is None:
            return "no reference"
        if ours.num != theirs.num:
            raise ValueError(f"int8 of {ours.num} tokens beside {theirs.num} of the reference")
        if ours.num < INT8_TOKENS:
            return "too few tokens"
        return "within" if ours.mean <= INT8_FACTOR * theirs.mean else "beyond"

    def row(self) -> str:
        """A line of the table."""
        exported = [f"{name} {distance.largest:.0e}" for name, distance in self.exported.items()]
        counts = f"{self.num_equal}/{self.num_ties}/{self.num_differing}"
        greedy = self.greedy_equal, self.greedy_ties, self.greedy_differing
        return COLUMNS.format(
            self.family,
            self.num_sentences,
            _largest(self.encoder),
            _largest(self.logits),
            counts if self.is_searched else "-",
            "/".join(map(str, greedy)) if any(greedy) else "-",
            _both(self.int8_beside or self.int8),
            _both(self.int8_alike),
            _both(self.reference_int8),
            ", ".join(exported) or "-",
        ).rstrip()


def merged(parts: Sequence[Figures]) -> Figures:
    """One line of several batches of one network."""
    whole = Figures(family=parts[0].family, reference=parts[0].reference)
    for part in parts:
        for name in _COUNTS:
            setattr(whole, name, getattr(whole, name) + getattr(part, name))
        for name in _DISTANCES:
            found = getattr(part, name)
            if found is not None:
                setattr(whole, name, getattr(whole, name) or Distance())
                getattr(whole, name).merge(found)
        for name, exported in part.exported.items():
            whole.exported.setdefault(name, Distance()).merge(exported)
    return whole


def restored(said: Mapping[str, Any]) -> Figures:
    """Figures that `asdict` told; what older files do not hold was not measured."""
    distances = {
        name: None if said.get(name) is None else Distance(**said[name]) for name in _DISTANCES
    }
    exported = {name: Distance(**found) for name, found in said["exported"].items()}
    return Figures(**{**said, **distances, "exported": exported})


def _largest(distance: Distance | None) -> str:
    return "-" if distance is None else f"{distance.largest:.1e}"


def _both(distance: Distance | None) -> str:
    return "-" if distance is None else f"{distance.largest:.3f}/{distance.mean:.4f}"
