"""Asking of groups and of their servers: whom next, where one does not answer or does not know.

Owns when another group or server is asked: where nothing of the request was begun, or asking twice
changes nothing; and that nobody says that there is no such thing while one that may have it was not
asked. Which groups a request is for is `service.router.dispatch`; connections are
`service.router.pool`.
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import Response

from service.errors import RequestError
from service.http.disconnect import cancelled_on_disconnect
from service.router.choice import groups_unavailable
from service.router.connection import Asked
from service.router.directory import GroupState
from service.router.groups import (
    NOT_REACHED,
    ConnectError,
    LostError,
    group_lost,
    group_unavailable,
)
from service.router.members import Member
from service.router.metrics import RouterMetrics
from service.router.passing_on import PassedAnswer
from service.router.pool import Answer
from service.router.watch import Watch

_MAX_READ_BYTES = 32 * 2**20
_UNKNOWN = 404
_BRIEF_SECONDS = 1.0
"""That one which does not answer is asked for what it alone may have: it may be back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What asks the groups of one router.

    Attributes:
        watch: The groups, as they answered last.
        metrics: Where answers are counted.
    """

    watch: Watch
    metrics: RouterMetrics

    async def ask(
        self,
        request: Request,
        asked: Asked,
        group: GroupState,
        member: Member | None = None,
    ) -> Answer:
        """The answer of a group, or of one of its servers; dropped if the client goes before.

        A server that is doubtful is waited for briefly.

        Raises:
            RequestError: A 503: it was not reached, so nothing was done; a 502: it gave no answer.
            ClientGoneError: The client has gone.
        """
        pool = self.watch.pools[group.name]
        if member is None:
            work = pool.ask(asked)
        elif member.is_doubtful:
            work = pool.ask_briefly(asked, seconds=_BRIEF_SECONDS, address=member.address)
        else:
            work = pool.ask(asked, address=member.address)
        try:
            answer = await cancelled_on_disconnect(request, work)
        except ConnectError as error:
            self.metrics.passed(group.name, None)
            if member is None:
                self.watch.mark_unreachable(group.name, str(error))
            raise group_unavailable([group.name], str(error)) from error
        except LostError as error:
            self.metrics.passed(group.name, None)
            raise group_lost(group.name, str(error)) from error
        self.metrics.passed(group.name, answer.status)
        return answer

    async def first(
        self, request: Request, asked: Asked, groups: Sequence[GroupState]
    ) -> tuple[str, Answer]:
        """The answer of the first group that does not refuse all; else the first one's refusal.

        Raises:
            RequestError: As of `ask`.
        """
        refusal: tuple[str, Answer] | None = None
        failure: RequestError | None = None
        for group in groups:
            found = await self._tried(request, asked, group)
            if isinstance(found, RequestError):
                failure = failure or found
            elif found.is_refusal:
                refusal = refusal or (group.name, found)
            else:
                return group.name, found
        if refusal is not None:
            return refusal
        raise failure or groups_unavailable(self.watch.directory.groups)

    async def who_knows(
        self, request: Request, asked: Asked, groups: Sequence[GroupState]
    ) -> Response:
        """The answer of the first server of these groups that knows what is asked for.

        Those that may be away come last, and only where asking changes nothing. While one of them
        may have it, nobody says that there is no such thing.

        Raises:
            RequestError: As of `ask`.
        """
        unknown = refusal = failure = None
        missing: set[str] = set()
        async with aclosing(self._places(groups, missing)) as places:
            async for group, member in places:
                if member.is_doubtful and not asked.is_safe:
                    missing.add(group.name)
                    continue
                found = await self._tried(request, asked, group, member)
                if isinstance(found, RequestError):
                    if not member.is_named and found.problem.code == NOT_REACHED:
                        continue  # it has left, and is no more
                    missing.add(group.name)
                    failure = failure or (None if member.is_doubtful else found)
                elif found.is_refusal:
                    refusal = refusal or PassedAnswer(found, group.name)
                elif found.status == _UNKNOWN:
                    unknown = copied(found, await self.read(found, group.name))
                else:
                    return PassedAnswer(found, group.name)
        if refusal is not None:
            return refusal
        if failure is not None and failure.problem.code != NOT_REACHED:
            raise failure
        if missing:
            raise _some_away([group for group in groups if group.name in missing])
        assert unknown is not None  # a router has a group, and that a server
        return unknown

    async def members(self, group: GroupState) -> list[Member]:
        """The servers that a group has now, and those that have just left it.

        Raises:
            RequestError: A 503: its name has no address.
        """
        try:
            return await self.watch.pools[group.name].members.all()
        except ConnectError as error:
            raise group_unavailable([group.name], str(error)) from error

    async def read(self, answer: Answer, name: str) -> bytes:
        """All of the body of a group's answer.

        Raises:
            RequestError: A 502: it broke off.
        """
        try:
            return await answer.read(max_bytes=_MAX_READ_BYTES)
        except LostError as error:
            raise group_lost(name, str(error)) from error

    async def _places(
        self, groups: Iterable[GroupState], missing: set[str]
    ) -> AsyncGenerator[tuple[GroupState, Member], None]:
        """All servers of some groups, those last that are doubtful, as all of a group that is away.

        Args:
            groups: Whose.
            missing: Gets the names of groups of which no server is known.
        """
        doubtful = []
        for group in groups:
            try:
                members = await self.members(group)
            except RequestError:
                missing.add(group.name)
                continue
            for member in members:
                if member.is_doubtful or not group.is_answering:
                    doubtful.append((group, replace(member, is_doubtful=True)))
                else:
                    yield group, member
        for place in doubtful:
            yield place

    async def _tried(
        self,
        request: Request,
        asked: Asked,
        group: GroupState,
        member: Member | None = None,
    ) -> Answer | RequestError:
        """An answer, or why there is none where another group or server may be asked instead.

        Raises:
            RequestError: A 502: it gave no answer, and may have done what was asked.
        """
        try:
            return await self.ask(request, asked, group, member)
        except RequestError as error:
            if error.problem.code != NOT_REACHED and not asked.is_safe:
                raise
            return error


def copied(answer: Answer, body: bytes) -> Response:
    """A group's answer that was read."""
    return PassedAnswer(Answer(answer.status, answer.headers, beginning=body), "")


def _some_away(groups: Sequence[GroupState]) -> RequestError:
    """A 503: what is asked for may be in servers of these groups that were not asked."""
    if all(group.is_answering for group in groups):
        names = [group.name for group in groups]
        return group_unavailable(names, "one of its servers does not answer")
    return groups_unavailable([group for group in groups if not group.is_answering])
