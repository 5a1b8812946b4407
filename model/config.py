"""Frozen configurations of the network, its tokens and lengths, and the search.

Owns which networks and which searches can be described at all, validated where they are made;
imports no torch, so the front process may read it. What a checkpoint adds (languages, licences,
files) is `model.checkpoint.manifest`.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from model.errors import ConfigError

Activation = Literal["relu", "gelu", "gelu-tanh", "gelu-sigmoid", "silu"]
"""GELU itself; its two approximations (Hendrycks and Gimpel 2016): by tanh, as in T5, and
x · σ(1.702 x), as in Marian; SiLU is also called swish."""
DecoderCell = Literal["self-attention", "ssru"]
"""What a decoder layer takes from the past by: attention, or the simpler simple recurrent unit
(Kim et al. 2019, "From Research to Production and Back", section 3.2)."""
NormKind = Literal["layernorm", "rmsnorm"]
NormPlacement = Literal["post", "pre"]
PositionKind = Literal[
    "sinusoidal-interleaved",
    "sinusoidal-marian",
    "sinusoidal-m2m100",
    "learned",
    "rope",
    "alibi",
    "relative",
]
StoppingRule = Literal["exact", "first", "heuristic", "bound"]

ABSOLUTE_POSITIONS: frozenset[PositionKind] = frozenset(
    {"sinusoidal-interleaved", "sinusoidal-marian", "sinusoidal-m2m100", "learned"}
)

_STOPPING_RULES = frozenset(get_args(StoppingRule))
DEFAULT_TOP_K = 50
MAX_TOP_K = 128
"""Tokens that one may be drawn of; a search looks at so many a row at most."""
MAX_TEMPERATURE = 10.0
DEFAULT_DIVERSITY_PENALTY = 0.5
MAX_DIVERSITY_PENALTY = 100.0
MAX_NO_REPEAT_NGRAM = 16
MAX_SEED = 2**63 - 1


def _require(condition: object, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def _require_choice(name: str, value: str, literal: object) -> None:
    choices = get_args(literal)
    _require(value in choices, f"{name} is {value!r}; it must be one of {', '.join(choices)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Shape of an encoder-decoder Transformer (Vaswani et al. 2017, section 3).

    Attributes:
        vocab_size: Source vocabulary, and the target's too unless `target_vocab_size` is set.
        target_vocab_size: Target vocabulary when it is not shared with the source.
        d_k: Width of one query or key head; None means d_model / num_heads.
        d_v: Width of one value head; None means d_model / num_heads.
        decoder_d_ff: Inner width of the decoder's feed-forward layers; None means d_ff.
        decoder_cell: The recurrent part of every decoder layer.
        gated_feed_forward: The inner layer is activation(gate) · up, two products of its input
            (Shazeer 2020, "GLU variants improve Transformer").
        feed_forward_bias: The feed-forward projections have biases.
        embedding_norm: The sum of embedding and position is normalised (mBART).
        scale_attention: Scores are divided by √d_k; T5 has that in its weights.
        scale_output: What enters the output projection is divided by √d_model (T5 with tied
            embeddings).
        position: How order enters the network. "alibi", "relative" (T5 buckets) and "rope"
            act inside self-attention; the others are added to the embedding.
        position_offset: Index of the first position (M2M100 and BART start at 2).
        max_positions: Rows of a learned table; other kinds compute what is asked.
        share_embeddings: One table for source and target (needs one vocabulary).
        tie_output: The output projection is the target embedding.
        output_bias: A bias per target piece is added to the logits (Marian).
        attention_bias: The four attention projections have biases.
        pad_id: Its embedding is zero and gets no gradient.
    """

    vocab_size: int
    target_vocab_size: int | None = None
    d_model: int = 512
    num_heads: int = 8
    d_ff: int = 2048
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    d_k: int | None = None
    d_v: int | None = None
    decoder_d_ff: int | None = None
    decoder_cell: DecoderCell = "self-attention"
    gated_feed_forward: bool = False
    feed_forward_bias: bool = True
    embedding_norm: bool = False
    scale_attention: bool = True
    scale_output: bool = False
    activation: Activation = "relu"
    norm: NormKind = "layernorm"
    norm_placement: NormPlacement = "post"
    norm_epsilon: float = 1e-5
    position: PositionKind = "sinusoidal-marian"
    position_offset: int = 0
    max_positions: int = 1024
    scale_embedding: bool = True
    share_embeddings: bool = True
    tie_output: bool = True
    output_bias: bool = True
    attention_bias: bool = True
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    pad_id: int = 0

    def __post_init__(self) -> None:
        """Reject shapes that cannot work, naming the value and the limit."""
        for name in ("vocab_size", "d_model", "num_heads", "d_ff", "max_positions"):
            value = getattr(self, name)
            _require(value >= 1, f"{name} is {value}; it must be at least 1")
        for name in ("num_encoder_layers", "num_decoder_layers", "position_offset"):
            value = getattr(self, name)
            _require(value >= 0, f"{name} is {value}; it must be at least 0")
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            value = getattr(self, name)
            _require(0.0 <= value < 1.0, f"{name} is {value}; it must be in [0, 1)")
        inner = self.decoder_d_ff
        _require(inner is None or inner >= 1, f"decoder_d_ff is {inner}; it must be at least 1")
        _require_choice("activation", self.activation, Activation)
        _require_choice("decoder_cell", self.decoder_cell, DecoderCell)
        _require_choice("norm", self.norm, NormKind)
        _require_choice("norm_placement", self.norm_placement, NormPlacement)
        _require_choice("position", self.position, PositionKind)
        _require(self.norm_epsilon > 0, f"norm_epsilon is {self.norm_epsilon}; it must be above 0")
        self._check_heads()
        self._check_vocabularies()

    def _check_heads(self) -> None:
        if self.d_k is None or self.d_v is None:
            _require(
                self.d_model % self.num_heads == 0,
                f"d_model is {self.d_model}; it must be a multiple of num_heads ({self.num_heads})"
                " unless d_k and d_v are both set",
            )
        for name, value in (("d_k", self.d_k), ("d_v", self.d_v)):
            _require(value is None or value >= 1, f"{name} is {value}; it must be at least 1")
        if self.position.startswith("sinusoidal"):
            _require(
                self.d_model % 2 == 0,
                f"d_model is {self.d_model}; sinusoidal positions need an even width",
            )
        if self.position == "sinusoidal-m2m100":
            _require(
                self.d_model >= 4,
                f"d_model is {self.d_model}; M2M100 positions need at least 4",
            )
        if self.position == "rope":
            _require(
                self.query_width % 2 == 0,
                f"d_k is {self.query_width}; rotary positions need an even head width",
            )
        if self.decoder_cell != "self-attention":
            _require(
                self.position in ABSOLUTE_POSITIONS,
                f"position is {self.position!r}; it acts inside self-attention, and decoder_cell is"
                f" {self.decoder_cell!r}, which needs one of"
                f" {', '.join(sorted(ABSOLUTE_POSITIONS))}",
            )

    def _check_vocabularies(self) -> None:
        target = self.target_vocab_size
        _require(target is None or target >= 1, f"target_vocab_size is {target}; at least 1")
        if target is not None and self.share_embeddings:
            _require(
                target == self.vocab_size,
                f"target_vocab_size is {target}; shared embeddings need vocab_size"
                f" ({self.vocab_size})",
            )
        size = min(self.vocab_size, self.output_size)
        _require(
            0 <= self.pad_id < size,
            f"pad_id is {self.pad_id}; it must be below the vocabulary size {size}",
        )

    @property
    def output_size(self) -> int:
        """Number of target pieces, V."""
        return self.vocab_size if self.target_vocab_size is None else self.target_vocab_size

    @property
    def decoder_inner_width(self) -> int:
        """Inner width of the decoder's feed-forward layers."""
        return self.d_ff if self.decoder_d_ff is None else self.decoder_d_ff

    @property
    def attention_scale(self) -> float:
        """What attention scores are multiplied by."""
        return self.query_width**-0.5 if self.scale_attention else 1.0

    @property
    def query_width(self) -> int:
        """Width of one query or key head."""
        return self.d_model // self.num_heads if self.d_k is None else self.d_k

    @property
    def value_width(self) -> int:
        """Width of one value head."""
        return self.d_model // self.num_heads if self.d_v is None else self.d_v


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialTokens:
    """Ids that stand for no text; one numbering serves both sides.

    Attributes:
        pad_id: Fills up batches; never attended to.
        eos_id: Ends every target, and every source unless `has_source_eos` is false.
        unk_id: Stands for a source piece that the table does not have.
        start_id: First decoder input (Marian: pad; M2M100 and NLLB: EOS).
        suppressed_ids: Target ids that are never generated.
        forced_first_id: The first generated id, whatever the network says; None for no rule.
            Languages that are chosen by a forced token use `LanguagePair.target_prefix`.
        has_source_eos: Sources end with `eos_id`; those of OpenNMT do not.
    """

    pad_id: int
    eos_id: int
    unk_id: int
    start_id: int
    suppressed_ids: tuple[int, ...] = ()
    forced_first_id: int | None = None
    has_source_eos: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthLimits:
    """Greatest lengths of a sentence that the network was trained for, in tokens.

    Attributes:
        max_source_length: Source tokens with prefix and EOS.
        max_target_length: Target tokens with EOS, without start token and prefix.
    """

    max_source_length: int
    max_target_length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Sampling: a sentence's hypotheses are drawn instead of searched, each row by itself.

    Attributes:
        temperature: What log probabilities are divided by; below 1 the likely becomes likelier.
        top_k: Of how many of the likeliest tokens one is drawn (Fan et al. 2018).
        top_p: Of these, the fewest whose probabilities sum up to it (Holtzman et al. 2020).
        seed: Of the sentence: with a hypothesis' row, its step and a token it is all that chance
            depends on.
    """

    temperature: float = 1.0
    top_k: int = DEFAULT_TOP_K
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Reject what nothing can be drawn by, naming the value and the limit."""
        value = self.temperature
        _require(
            0.0 < value <= MAX_TEMPERATURE,
            f"temperature is {value}; it must be above 0 and at most {MAX_TEMPERATURE}",
        )
        _require(
            1 <= self.top_k <= MAX_TOP_K, f"top_k is {self.top_k}; it must be from 1 to {MAX_TOP_K}"
        )
        _require(
            0.0 < self.top_p <= 1.0, f"top_p is {self.top_p}; it must be above 0 and at most 1"
        )
        _require(
            0 <= self.seed <= MAX_SEED, f"seed is {self.seed}; it must be from 0 to {MAX_SEED}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """Options of the search of one sentence.

    Attributes:
        beam_size: Hypotheses kept at every step, K; 1 is greedy.
        length_penalty: α in s / n^α, n the target tokens with EOS (Wu et al. 2016 without
            the 5; the score of Hugging Face `generate`).
        num_candidates: Continuations considered at every step; None means 2K.
        stopping: "exact" stops when no running hypothesis can still pass the n-th best
            finished one; "first" when K are finished (`early_stopping=True`); "heuristic" when
            the best running score at its present length cannot (`False`); "bound" the same
            at the maximum length (`"never"`).
        num_hypotheses: Hypotheses returned, n; at most beam_size.
        max_length: Cap in target tokens with EOS; the EOS at the cap is forced and free.
        with_alignment: Also return which source token each target token attended to most.
        with_attention: Also return how much each target token attended to each source token.
        sampling: Draw beam_size hypotheses, each by itself, and return the best of them; None:
            search by beams.
        num_groups: Groups that the beams are divided into, G, each searched by itself behind those
            before it (Vijayakumar et al. 2016, "Diverse Beam Search", section 4); 1: none.
        diversity_penalty: λ, what a token loses in the choice of a group for every hypothesis of
            the groups before it that chose it at the same step; 0 without groups. Hypotheses are
            summed up and scored without it.
        no_repeat_ngram: So many tokens in a row come in no hypothesis twice, but for what is
            forced; 0: they may.
    """

    beam_size: int = 4
    length_penalty: float = 1.0
    num_candidates: int | None = None
    stopping: StoppingRule = "exact"
    num_hypotheses: int = 1
    max_length: int = 256
    with_alignment: bool = False
    with_attention: bool = False
    sampling: Sampling | None = None
    num_groups: int = 1
    diversity_penalty: float = 0.0
    no_repeat_ngram: int = 0

    def __post_init__(self) -> None:
        """Reject searches that cannot run, naming the value and the limit.

        No message is made of a search that can: every segment has one.
        """
        if self.beam_size < 1:
            raise ConfigError(f"beam_size is {self.beam_size}; it must be at least 1")
        if self.max_length < 1:
            raise ConfigError(f"max_length is {self.max_length}; it must be at least 1")
        if not 1 <= self.num_hypotheses <= self.beam_size:
            raise ConfigError(
                f"num_hypotheses is {self.num_hypotheses}; it must be from 1 to beam_size"
                f" ({self.beam_size})"
            )
        if not -10.0 <= self.length_penalty <= 10.0:
            raise ConfigError(f"length_penalty is {self.length_penalty}; it must be from -10 to 10")
        if self.num_candidates is not None and self.num_candidates < 2 * self.beam_size:
            raise ConfigError(
                f"num_candidates is {self.num_candidates}; it must be at least twice beam_size"
                f" ({self.beam_size}), as each of the beams may end"
            )
        if self.stopping not in _STOPPING_RULES:
            _require_choice("stopping", self.stopping, StoppingRule)
        if not 0 <= self.no_repeat_ngram <= MAX_NO_REPEAT_NGRAM:
            raise ConfigError(
                f"no_repeat_ngram is {self.no_repeat_ngram}; it must be from 0 to"
                f" {MAX_NO_REPEAT_NGRAM}"
            )
        if self.num_groups != 1 or self.diversity_penalty != 0.0:
            self._check_groups()

    def _check_groups(self) -> None:
        num, penalty = self.num_groups, self.diversity_penalty
        _require(num >= 1, f"num_groups is {num}; it must be at least 1")
        _require(
            self.beam_size % num == 0,
            f"beam_size is {self.beam_size}; it must be a multiple of num_groups ({num})",
        )
        if num == 1:
            _require(
                penalty == 0.0, f"diversity_penalty is {penalty}; without num_groups it must be 0"
            )
            return
        _require(
            0.0 < penalty <= MAX_DIVERSITY_PENALTY,
            f"diversity_penalty is {penalty}; with num_groups ({num}) it must be above 0 and at"
            f" most {MAX_DIVERSITY_PENALTY}",
        )
        _require(
            self.sampling is None,
            f"num_groups is {num}; what is drawn (sampling) has no groups",
        )

    @property
    def candidates(self) -> int:
        """Continuations considered at every step."""
        own = 2 * self.beam_size if self.num_candidates is None else self.num_candidates
        if self.sampling is None:
            return own
        return max(own, 1 << (self.sampling.top_k - 1).bit_length())  # few shapes of a step

    @property
    def can_hold_phrases(self) -> bool:
        """Whether what a translation has to contain leaves a choice of the place.

        One row alone would write it at once, and neither rows that are drawn nor groups are held
        to anything.
        """
        return self.beam_size > 1 and self.sampling is None and self.num_groups == 1

    @property
    def is_exhaustive(self) -> bool:
        """Whether it gives all that it finds, so that the same search finds nothing else."""
        return self.sampling is None and self.num_hypotheses == self.beam_size

    @property
    def group_size(self) -> int:
        """Beams of each group; all of them where there are no groups."""
        return self.beam_size // self.num_groups

    @property
    def start_stride(self) -> int:
        """Every which row begins: a group's first one, whose children become the others, or all."""
        return self.group_size if self.sampling is None else 1
