"""Fields of `POST /v1/translate` by which a caller controls a translation.

Owns beginnings, terms, drawing, groups of beams and n-grams that come once: their description,
their limits, and what becomes of them. The other fields are `service.api.v1.request`.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from model.config import (
    DEFAULT_DIVERSITY_PENALTY,
    DEFAULT_TOP_K,
    MAX_DIVERSITY_PENALTY,
    MAX_NO_REPEAT_NGRAM,
    MAX_TEMPERATURE,
    MAX_TOP_K,
    Sampling,
)
from model.text.constraints.control import MAX_PREFIX_CHARACTERS
from model.text.constraints.glossary import MAX_ENTRIES, MAX_TERM_CHARACTERS, Entry, Glossary
from model.text.pipeline import without_surrogates
from model.text.sentences.segmenter import LINE_BREAKS
from service.api.v1.validation import request_error
from service.bounds import MAX_BEAM_SIZE
from service.errors import invalid

_MAX_JSON_SEED = 2**53 - 1  # integers that every JSON parser keeps


def clean(value: object) -> object:
    """A text without lone surrogates; anything else as it is."""
    return without_surrogates(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(clean)]
TermText = Annotated[Text, Field(min_length=1, max_length=MAX_TERM_CHARACTERS)]


class GlossaryEntry(BaseModel):
    """What a term has to be translated as."""

    model_config = ConfigDict(extra="forbid", strict=True)

    source: TermText = Field(description="The term: a whole word, or several.")
    target: TermText = Field(description="What stands for it, as it is.")
    case_sensitive: bool = Field(
        default=False,
        description="The term is found only as it is written. Otherwise one in capitals, or with a"
        " first one, gives its target that.",
    )

    @model_validator(mode="before")
    @classmethod
    def _with_one_unknown(cls, values: object) -> object:
        """The known fields and the first unknown one, as Pydantic has an error for each."""
        if not isinstance(values, dict):
            return values
        known = [name for name in cls.model_fields if name in values]
        unknown = (name for name in values if name not in cls.model_fields)
        return {name: values[name] for name in (*known, *islice(unknown, 1))}


_ENTRIES: TypeAdapter[list[GlossaryEntry]] = TypeAdapter(
    Annotated[list[GlossaryEntry], Field(max_length=MAX_ENTRIES)]
)


class ControlFields(BaseModel):
    """How a translation begins, what its terms are, and how it is drawn or searched for."""

    target_prefix: Text | list[Text] | None = Field(
        default=None,
        description="What the translation of each text begins with, or a list, one for each text:"
        " kept as it is, and gone on with by the network. It belongs to the first segment, and has"
        " at most half as many tokens as the model writes for one.",
    )
    glossary: list[GlossaryEntry] | None = Field(
        default=None,
        max_length=MAX_ENTRIES,
        description="What terms have to be translated as. `glossary` of each segment says which of"
        " its terms were hit.",
    )
    temperature: float | None = Field(
        default=None,
        gt=0.0,
        le=MAX_TEMPERATURE,
        allow_inf_nan=False,
        description="Draw translations instead of searching for the likeliest: what log"
        " probabilities are divided by, 1 if `top_k` or `top_p` is given alone.",
    )
    top_k: int | None = Field(
        default=None,
        ge=1,
        le=MAX_TOP_K,
        description=f"Draw of so many of the likeliest tokens; by default {DEFAULT_TOP_K}.",
    )
    top_p: float | None = Field(
        default=None,
        gt=0.0,
        le=1.0,
        allow_inf_nan=False,
        description="Draw of the fewest tokens whose probabilities sum up to this.",
    )
    seed: int | None = Field(
        default=None,
        ge=0,
        le=_MAX_JSON_SEED,
        description="Of what is drawn; by default 0. The same text with the same seed gives the"
        " same translation, whatever is translated beside it.",
    )
    diversity: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        allow_inf_nan=False,
        description="How much alternatives differ from the translation and from each other: 0 gives"
        " the likeliest, 1 those that differ most. The beam is widened for it.",
    )
    beam_groups: int | None = Field(
        default=None,
        ge=2,
        le=MAX_BEAM_SIZE,
        description="Search by so many groups of beams, each of which avoids what those before it"
        " have just written (diverse beam search). `beam_size` is that of all groups together, and"
        " a multiple of it. Alternatives are the best of each group, then the second of each.",
    )
    diversity_penalty: float | None = Field(
        default=None,
        gt=0.0,
        le=MAX_DIVERSITY_PENALTY,
        allow_inf_nan=False,
        description="What a token costs a group, as a log probability, for each hypothesis of the"
        f" groups before it that has just chosen it: by default {DEFAULT_DIVERSITY_PENALTY}. Scores"
        " are without it.",
    )
    no_repeat_ngram: int = Field(
        default=0,
        ge=0,
        le=MAX_NO_REPEAT_NGRAM,
        description="So many tokens in a row come in no segment's translation twice; 0: they may."
        " What loops whatever else was tried is searched so of itself.",
    )
    formality: Literal["default", "more", "less", "prefer_more", "prefer_less"] | None = Field(
        default=None,
        description="Accepted, and without effect: no model here has forms of address to choose"
        " from. The reply says so in `unsupported`.",
    )

    def sampling(self) -> Sampling | None:
        """How translations are drawn; None: they are searched for.

        Raises:
            RequestError: A 400: a seed without anything that is drawn.
        """
        if self.temperature is None and self.top_k is None and self.top_p is None:
            if self.seed is not None:
                raise invalid(
                    "seed needs temperature, top_k or top_p: nothing is drawn",
                    value=self.seed,
                    limit="temperature",
                )
            return None
        return Sampling(
            temperature=1.0 if self.temperature is None else self.temperature,
            top_k=DEFAULT_TOP_K if self.top_k is None else self.top_k,
            top_p=1.0 if self.top_p is None else self.top_p,
            seed=self.seed or 0,
        )

    def groups(self) -> tuple[int, float]:
        """How many groups of beams there are, and their penalty; 1 and 0 where none are asked for.

        Raises:
            RequestError: A 400: a penalty without groups, or groups of what is drawn.
        """
        num, penalty = self.beam_groups, self.diversity_penalty
        if num is None:
            if penalty is not None:
                raise invalid(
                    f"diversity_penalty is {penalty}; it needs beam_groups, and there are none",
                    value=penalty,
                    limit="beam_groups",
                )
            return 1, 0.0
        if self.sampling() is not None:
            raise invalid(
                f"beam_groups is {num}; what is drawn (temperature, top_k, top_p) has none",
                value=num,
                limit=0,
            )
        return num, DEFAULT_DIVERSITY_PENALTY if penalty is None else penalty

    def prefixes(self, num_texts: int) -> tuple[str, ...]:
        """The beginning of each text's translation; empty where none was asked for.

        Raises:
            RequestError: A 400: they are not one for each text, too long, or more than a line.
        """
        if self.target_prefix is None:
            return ()
        if isinstance(self.target_prefix, str):
            prefixes = [self.target_prefix] * num_texts
        else:
            prefixes = self.target_prefix
        if len(prefixes) != num_texts:
            raise invalid(
                f"target_prefix has {len(prefixes)} texts; texts has {num_texts}",
                value=len(prefixes),
                limit=num_texts,
            )
        for prefix in prefixes:
            _check_prefix(prefix)
        return tuple(prefix.lstrip() for prefix in prefixes)

    def terms(self) -> Glossary | None:
        """The glossary; None without one.

        Raises:
            RequestError: A 400: a term is blank, or more than a line.
        """
        return _glossary(self.glossary) if self.glossary else None

    @property
    def unsupported(self) -> list[str]:
        """Options that were asked for and that no model here has."""
        return [] if self.formality in (None, "default") else ["formality"]


def glossary_of_json(text: str) -> Glossary | None:
    """The glossary that a form's field has as JSON; None of an empty one.

    Raises:
        RequestError: A 400: it is no list of entries, or one of them is wrong.
    """
    if not text:
        return None
    try:
        entries = _ENTRIES.validate_json(text.encode("utf-8", "surrogatepass"))
    except ValidationError as error:
        raise request_error(error, within="glossary") from error
    return _glossary(entries) if entries else None


def _glossary(entries: Sequence[GlossaryEntry]) -> Glossary:
    return Glossary(
        [
            Entry(
                source=_term("source", one.source),
                target=_term("target", one.target),
                is_case_sensitive=one.case_sensitive,
            )
            for one in entries
        ]
    )


def _check_prefix(prefix: str) -> None:
    if len(prefix) > MAX_PREFIX_CHARACTERS:
        raise invalid(
            f"target_prefix has {len(prefix)} characters; it must have at most"
            f" {MAX_PREFIX_CHARACTERS}",
            value=len(prefix),
            limit=MAX_PREFIX_CHARACTERS,
        )
    if "\t" in prefix:
        raise invalid(
            "target_prefix has a tab; it must have none", value=len(prefix), limit="no tab"
        )
    if not set(LINE_BREAKS).isdisjoint(prefix):
        raise invalid("target_prefix must be one line", value=len(prefix), limit="one line")


def _term(name: str, text: str) -> str:
    term = text.strip()
    if "\t" in term:
        words = f"{name} of a glossary entry has a tab; it must have none"
        raise invalid(words, value=len(text), limit="no tab")
    if not term or not set(LINE_BREAKS).isdisjoint(term):
        raise invalid(
            f"{name} of a glossary entry must be one line that is not blank",
            value=len(text),
            limit="one line",
        )
    return term
