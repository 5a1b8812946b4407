"""Choice of the group that a request goes to: by its route, text by text where it says "auto".

Owns the order: groups that would translate now before those that say they would not, one hop before
two, then as they were given. One that is away is not asked: it may take a request and say nothing.
Pure but for detection, which is passed in.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from service.api.deepl.languages import base_code
from service.api.languages import ChosenRoute
from service.errors import RequestError, invalid, unsupported_language
from service.models.routes.pivot import reachable
from service.models.routes.routing import RoutingTable
from service.router.directory import Directory, GroupState
from service.router.groups import group_unavailable
from service.router.wording import Find

Detect = Callable[[Sequence[str], Sequence[str]], Awaitable[list[str]]]
"""Texts and candidates to the language of each text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A group that has a route.

    Attributes:
        group: Which.
        chosen: The route in it.
    """

    group: GroupState
    chosen: ChosenRoute


def candidates(directory: Directory, find: Find) -> list[Candidate]:
    """The groups that have a route, those that are away too, the best first.

    Raises:
        RequestError: None has one: a 400 as one server with all of the languages would say it, or
            that they are in several groups; a 503 where one that has not answered yet might.
    """
    found = []
    for group in directory.groups:
        try:
            chosen = find(group.table)
        except RequestError:
            continue
        found.append(Candidate(group=group, chosen=chosen))
    if found:
        return sorted(found, key=_order)
    unheard = [group for group in directory.groups if not group.has_answered]
    if unheard:
        raise groups_unavailable(unheard)
    chosen = find(directory.table)
    raise unsupported_language(
        f"no group translates from {chosen.route.source} to {chosen.route.target} alone; both ways"
        " of a pivot must be in one group",
        value=chosen.route.target,
        limit=", ".join(group.name for group in directory.groups),
    )


def away_candidates(directory: Directory, find: Find) -> list[GroupState]:
    """The groups that have a route and are away, and those that may, as they never answered.

    Raises:
        RequestError: As of `candidates`.
    """
    found = [one.group for one in candidates(directory, find)]
    return [one for one in directory.away if one in found or not one.has_answered]


async def choose(
    directory: Directory, find: Find, read_texts: Callable[[], Sequence[str]], detect: Detect
) -> list[GroupState]:
    """The groups that a request may be asked of, the best first.

    Args:
        directory: All groups.
        find: The request's route in a table.
        read_texts: Gives those of the request; called where the source is "auto" and several groups
            could.
        detect: Tells the language of each, among candidates of which the first is the likeliest.

    Raises:
        RequestError: As of `candidates` and of `read_texts`; a 400 where texts are in languages of
            several groups; a 503 where all that have the route are away.
    """
    found = candidates(directory, find)
    answering = _answering([one.group for one in found])
    if len(found) == 1 or not found[0].chosen.is_detected:
        return answering
    texts = read_texts()
    if not texts:
        return answering
    routes = [one.chosen.by_source or {} for one in found]
    tags = tuple(dict.fromkeys(tag for by_source in routes for tag in by_source))
    languages = set(await detect(texts, tags))
    fit = [
        one.group
        for one, by_source in zip(found, routes, strict=True)
        if languages <= by_source.keys()
    ]
    if fit:
        return _answering(fit)
    listed = ", ".join(sorted(languages))
    raise invalid(
        f"the texts are in {listed}, which no group translates alone; ask for each language in a"
        " request of its own",
        value=len(languages),
        limit=1,
    )


def groups_of_document(directory: Directory, find: Find) -> list[GroupState]:
    """The groups that a document may be asked of, the best first; nobody has read its text yet.

    Raises:
        RequestError: As of `candidates`; a 400 where the source is "auto" and several groups could;
            a 503 where all that have the route are away.
    """
    found = candidates(directory, find)
    if len(found) > 1 and found[0].chosen.is_detected:
        names = ", ".join(one.group.name for one in found)
        raise invalid(
            f"several groups translate to {found[0].chosen.route.target} ({names}); name the source"
            " of a document",
            value="auto",
        )
    return _answering([one.group for one in found])


def group_of_dictionaries(
    directory: Directory, pairs: Iterable[tuple[str, str]]
) -> GroupState | None:
    """The group of a glossary, by the base codes of its dictionaries; None if there is no such.

    It is the group that texts of these languages go to.

    Raises:
        RequestError: A 503: all that translate these languages are away.
    """
    wanted = set(pairs)
    found = [
        (group.standing, rank, place)
        for place, group in enumerate(directory.groups)
        if (rank := _rank(group.table, wanted)) is not None
    ]
    return (
        _answering([directory.groups[place] for *_, place in sorted(found)])[0] if found else None
    )


def groups_unavailable(groups: Sequence[GroupState]) -> RequestError:
    """A 503: some groups are away, or were never heard of."""
    return group_unavailable(
        [group.name for group in groups], groups[0].problem or "it was not asked yet"
    )


def _answering(groups: Sequence[GroupState]) -> list[GroupState]:
    """Those of some groups that are not away.

    Raises:
        RequestError: A 503: all are.
    """
    found = [group for group in groups if group.is_answering]
    if not found:
        raise groups_unavailable(groups)
    return found


def _order(one: Candidate) -> tuple[int, int]:
    """Sorting keeps the order of those that are alike."""
    return one.group.standing, len(one.chosen.route.hops)


def _rank(table: RoutingTable, wanted: set[tuple[str, str]]) -> int | None:
    """0 where all directions are straight, 1 where some go by a pivot, None where one is not."""
    if not wanted:
        return None
    straight = {
        (base_code(source), base_code(target))
        for source in table.all.all_sources
        for target in table.all.targets(source)
    }
    if wanted <= straight:
        return 0
    by_pivot = {
        (base_code(source), base_code(target))
        for source in table.all.all_sources
        for target in reachable(table, source)
    }
    return 1 if wanted <= by_pivot else None
