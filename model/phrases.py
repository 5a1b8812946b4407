"""Phrases that a translation has to contain: how far a sequence of tokens has come with them.

Owns the limits, the automaton that every search follows, and what a finished hypothesis misses; no
tensor. A phrase has alternatives, sequences of tokens of which any will do. What is kept of a
hypothesis are two numbers: the phrases that it has met, as bits, and the node of the trie of all
alternatives that its last tokens lead to, which is the longest of their suffixes that begins one
(Aho and Corasick 1975). A phrase that is met sends the hypothesis back to the root, so a token
serves one phrase; of several that end together the longest is met that is not yet. The search over
tensors is `model.decode.lexical`, the one in C++ `native/src/phrases.h`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from model.errors import InputError

Alternatives = tuple[tuple[int, ...], ...]
"""A phrase: sequences of target tokens, one of which has to be in the translation."""

MAX_PHRASES = 16
MAX_PHRASE_TOKENS = 64
"""Of all alternatives of a sentence together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseAutomaton:
    """The trie of all alternatives, with its transitions; N nodes, of which 0 is the root.

    Attributes:
        words: The tokens that are in any alternative, W of them.
        go: (N, W + 1), where a token leads from a node; the last column is any other token.
        ends: (N,), the phrases that end at a node, as bits; the longest phrase is bit 0.
        goals: (N,), the phrases that are begun at a node.
        depths: (N,), tokens from the root to a node.
        weights: Of each phrase by its bit, the tokens of its longest alternative.
        full: All phrases.
    """

    words: tuple[int, ...]
    go: tuple[tuple[int, ...], ...]
    ends: tuple[int, ...]
    goals: tuple[int, ...]
    depths: tuple[int, ...]
    weights: tuple[int, ...]
    full: int

    def step(self, node: int, met: int, token: int) -> tuple[int, int]:
        """Node and phrases met after a token."""
        column = self.words.index(token) if token in self.words else len(self.words)
        node = self.go[node][column]
        new = self.ends[node] & ~met
        return (0, met | (new & -new)) if new else (node, met)


def automaton_of(phrases: Sequence[Alternatives]) -> PhraseAutomaton:
    """The automaton of a sentence's phrases."""
    ordered = sorted(phrases, key=lambda phrase: -max(map(len, phrase)))
    paths = [(bit, path) for bit, phrase in enumerate(ordered) for path in phrase]
    words = tuple(sorted({token for _, path in paths for token in path}))
    begun = {(), *(path[:length] for _, path in paths for length in range(1, len(path) + 1))}
    nodes = sorted(begun, key=lambda node: (len(node), node))
    numbers = {node: number for number, node in enumerate(nodes)}

    def after(tokens: tuple[int, ...]) -> int:
        return next(
            numbers[tokens[start:]] for start in range(len(tokens) + 1) if tokens[start:] in numbers
        )

    return PhraseAutomaton(
        words=words,
        go=tuple((*(after((*node, word)) for word in words), 0) for node in nodes),
        ends=tuple(_bits(bit for bit, path in paths if _ends_with(node, path)) for node in nodes),
        goals=tuple(
            _bits(bit for bit, path in paths if any(_begins(path, end) for end in _ends_of(node)))
            for node in nodes
        ),
        depths=tuple(map(len, nodes)),
        weights=tuple(max(map(len, phrase)) for phrase in ordered),
        full=(1 << len(ordered)) - 1,
    )


def num_missed(phrases: Sequence[Alternatives], token_ids: Sequence[int]) -> int:
    """Phrases that a hypothesis does not contain.

    Args:
        phrases: Of its sentence.
        token_ids: The hypothesis, without prefix and EOS.
    """
    if not phrases:
        return 0
    automaton = automaton_of(phrases)
    node, met = 0, 0
    for token in token_ids:
        node, met = automaton.step(node, met, token)
    return len(phrases) - met.bit_count()


def check_phrases(
    phrases: Sequence[Alternatives], *, vocab_size: int, never: frozenset[int]
) -> None:
    """Return if a search can be held to some phrases.

    Args:
        phrases: Of one sentence.
        vocab_size: Target tokens.
        never: Tokens that the sentence's search cannot choose inside a translation.

    Raises:
        InputError: There are too many, one is empty, or a token cannot be chosen.
    """
    num_tokens = sum(len(path) for phrase in phrases for path in phrase)
    for name, value, limit in (
        ("phrases", len(phrases), MAX_PHRASES),
        ("tokens of phrases", num_tokens, MAX_PHRASE_TOKENS),
    ):
        if value > limit:
            raise InputError(
                f"a sentence has {value} {name}; it may have {limit}", value=value, limit=limit
            )
    for phrase in phrases:
        if not phrase or not all(phrase):
            raise InputError("a phrase has no tokens; it must have at least 1", value=0, limit=1)
        for token in (token for path in phrase for token in path):
            if not 0 <= token < vocab_size or token in never:
                raise InputError(
                    f"a phrase has token {token}, which the search cannot choose of"
                    f" {vocab_size} tokens",
                    value=token,
                    limit=vocab_size,
                )


def _bits(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in set(numbers))


def _ends_with(node: tuple[int, ...], path: tuple[int, ...]) -> bool:
    return len(path) <= len(node) and node[len(node) - len(path) :] == path


def _ends_of(node: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The suffixes of a node, without the empty one."""
    return (node[start:] for start in range(len(node)))


def _begins(path: tuple[int, ...], begun: tuple[int, ...]) -> bool:
    """Whether a path goes on where something ends."""
    return len(begun) < len(path) and path[: len(begun)] == begun
