"""Plans of a comparison: the full run, that of one instruction set, the quick one.

Owns every number that decides how long a run takes.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflinePlan:
    """Of the offline measurements.

    Attributes:
        vocabularies: Of the random networks.
        counts: Sentences handed over at once.
        target_length: Tokens with EOS of every answer.
        max_rounds: Of small points; fewer when their share of the time is used up.
        max_slow_rounds: Of Hugging Face there.
        num_file_sentences: Of the random file.
        num_slow_file_sentences: Those of them that our float32 is given.
        num_text_lines: Of the real text.
        max_file_rounds: Of file and text.
        num_sample_sentences: Of the file or text, for choosing settings.
        num_group_sentences: The same for CTranslate2: sentences of one length, a whole number of
            every batch size for each of two workers; all sentences where there are fewer of it.
        budget_seconds: For everything, start to end. The choice of settings and the first round of
            anything are not subject to it, nor the first three of our int8 and of CTranslate2.
        has_float32: Whether PyTorch takes part, ours and Hugging Face's.
    """

    vocabularies: tuple[int, ...] = (58_101, 32_000)
    counts: tuple[int, ...] = (1, 8, 32)
    target_length: int = 32
    max_rounds: int = 5
    max_slow_rounds: int = 2
    num_file_sentences: int = 2_000
    num_slow_file_sentences: int = 300
    num_text_lines: int = 2_000
    max_file_rounds: int = 3
    num_sample_sentences: int = 128
    num_group_sentences: int = 256
    budget_seconds: float = 720.0
    has_float32: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPlan:
    """Of the served measurements.

    Attributes:
        has_random: Whether a random network of base size is served beside the bundled one.
        clients: Closed-loop levels.
        seconds: Of one closed-loop level in one round.
        num_rounds: Of every closed-loop level.
        open_seconds: Of one open-loop rate.
        open_shares: Rates as shares of a capacity.
        probe_seconds: How long short sentences are sent beside long ones.
        tuning_seconds: Of one setting.
        tuning_clients: That every setting is tried with.
    """

    has_random: bool = True
    clients: tuple[int, ...] = (1, 8, 32, 128)
    seconds: float = 4.0
    num_rounds: int = 4
    open_seconds: float = 6.0
    open_shares: tuple[float, ...] = (0.3, 0.6, 0.9)
    probe_seconds: float = 12.0
    tuning_seconds: float = 3.0
    tuning_clients: int = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """Of the memory measurements."""

    vocabulary: int = 58_101
    num_sentences: int = 32
    target_length: int = 32
    num_rounds: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyPlan:
    """Of one family of networks, with random weights.

    Attributes:
        shape: A name of `benchmarks.random_checkpoint.SHAPES`.
        has_marian: Marian runs such networks.
        num_file_sentences: Of the random file.
        counts: Sentences handed over at once.
        target_length: Tokens with EOS of every answer.
        max_rounds: Of every point.
        num_group_sentences: As in `OfflinePlan`.
        budget_seconds: For all rounds but the first three.
        is_in_every_run: Without being asked for; the others take `--only families`.
    """

    shape: str
    has_marian: bool
    num_file_sentences: int
    counts: tuple[int, ...] = (1, 8, 32)
    target_length: int = 32
    max_rounds: int = 5
    num_group_sentences: int = 256
    budget_seconds: float = 240.0
    is_in_every_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All of a run."""

    offline: OfflinePlan
    served: ServedPlan
    memory: MemoryPlan
    families: tuple[FamilyPlan, ...] = (
        FamilyPlan(
            shape="student", has_marian=True, num_file_sentences=2_000, is_in_every_run=True
        ),
        FamilyPlan(
            shape="nllb-600m", has_marian=False, num_file_sentences=100, is_in_every_run=True
        ),
        *(
            FamilyPlan(
                shape=shape,
                has_marian=False,
                num_file_sentences=40,
                max_rounds=3,
                budget_seconds=60.0,
            )
            for shape in ("t5-base", "fsmt-wmt19", "m2m100-418m", "mbart-50")
        ),
    )
    is_quick: bool = False


FULL = Plan(offline=OfflinePlan(), served=ServedPlan(), memory=MemoryPlan())
HELD = replace(
    FULL,
    offline=OfflinePlan(
        num_file_sentences=400, num_text_lines=1_000, num_group_sentences=128, has_float32=False
    ),
)
"""Of rivals that are held to an instruction set, which PyTorch is not, and of the slower ones."""
INT8 = replace(HELD, offline=replace(HELD.offline, budget_seconds=300.0))
"""Of int8 alone, where a machine is quiet for ten minutes and no longer."""
QUICK = Plan(
    offline=OfflinePlan(
        vocabularies=(32_000,),
        counts=(1, 4),
        target_length=8,
        max_rounds=2,
        max_slow_rounds=1,
        num_file_sentences=24,
        num_slow_file_sentences=8,
        num_text_lines=24,
        max_file_rounds=1,
        num_sample_sentences=4,
        num_group_sentences=4,
        budget_seconds=60.0,
    ),
    served=ServedPlan(
        has_random=False,
        clients=(1, 8, 32),
        seconds=1.5,
        num_rounds=1,
        open_seconds=1.5,
        open_shares=(0.6,),
        probe_seconds=3.0,
        tuning_seconds=0.5,
        tuning_clients=8,
    ),
    memory=MemoryPlan(vocabulary=32_000, num_sentences=4, target_length=8, num_rounds=1),
    families=(
        FamilyPlan(
            shape="student",
            has_marian=True,
            num_file_sentences=24,
            counts=(1, 4),
            target_length=8,
            max_rounds=1,
            budget_seconds=20.0,
            is_in_every_run=True,
        ),
    ),
    is_quick=True,
)
