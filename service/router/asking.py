"""Asking of groups and of their servers: whom next, where one does not answer or does not know.

Owns when another server or group is asked: where nothing of the request was begun, or asking twice
changes nothing; and that nobody says that there is no such thing while one that may have it was not
asked. Which groups a request is for is `service.router.dispatch`; connections are
`service.router.pool`.
"""

import asyncio
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

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
"""That those which do not answer are asked for what they alone may have: they may be back."""
_HEAD_START_SECONDS = 2.5
"""That a server which was up is waited for before another one that may have it is asked."""


@dataclass(slots=True, kw_only=True)
class _Heard:
    """What servers that do not have what is asked for said.

    Attributes:
        unknown: That there is no such thing.
        refusal: That one would not say.
        failure: Why one that was up gave no answer.
        missing: Groups of which a server may have it that did not answer.
    """

    unknown: Response | None = None
    refusal: Response | None = None
    failure: RequestError | None = None
    missing: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What asks the groups of one router.

    Attributes:
        watch: The groups, as they answered last.
        metrics: Where answers are counted.
    """

    watch: Watch
    metrics: RouterMetrics

    def in_turn(self, groups: Iterable[GroupState]) -> Iterator[Member]:
        """Servers of one group after another that a request may be asked of."""
        for group in groups:
            yield from self.watch.members[group.name].in_turn()

    async def first(
        self, request: Request, asked: Asked, members: Iterable[Member]
    ) -> tuple[str, Answer]:
        """The answer of the first server that does not refuse all, and its group.

        Where each refuses it is the first one's refusal.

        Raises:
            RequestError: A 503: none was reached, so nothing was done; a 502: one gave no answer.
            ClientGoneError: The client has gone.
        """
        refusal: tuple[str, Answer] | None = None
        failure: RequestError | None = None
        for member in members:
            found = await cancelled_on_disconnect(request, self._tried(asked, member))
            if isinstance(found, RequestError):
                failure = failure or found
            elif found.is_refusal:
                refusal = refusal or (member.group, found)
            else:
                return member.group, found
        if refusal is not None:
            return refusal
        raise failure or groups_unavailable(self.watch.directory.groups)

    async def who_knows(
        self, request: Request, asked: Asked, groups: Sequence[GroupState]
    ) -> Response:
        """The answer of the first server of these groups that knows what is asked for.

        Those that are away come last, and only where asking changes nothing. While one of them may
        have it, nobody says that there is no such thing.

        Raises:
            RequestError: As of `first`.
        """
        return await cancelled_on_disconnect(request, self._who_knows(asked, groups))

    async def read(self, answer: Answer, name: str) -> bytes:
        """All of the body of a group's answer.

        Raises:
            RequestError: A 502: it broke off.
        """
        try:
            return await answer.read(max_bytes=_MAX_READ_BYTES)
        except LostError as error:
            raise group_lost(name, str(error)) from error

    def some_away(self, names: Container[str]) -> RequestError:
        """A 503: what is asked for may be in servers of these groups that were not asked."""
        groups = [group for group in self.watch.directory.groups if group.name in names]
        away = [group for group in groups if not group.is_answering]
        if away:
            return groups_unavailable(away)
        return group_unavailable(
            [group.name for group in groups], "one of its servers does not answer"
        )

    async def _who_knows(self, asked: Asked, groups: Sequence[GroupState]) -> Response:
        heard = _Heard()
        up = [one for one in self._that_may_have(groups) if one.state.is_answering]
        up.sort(key=lambda one: one.state.standing)
        answer = await self._of_those_up(asked, up, heard)
        if answer is not None:
            return answer
        each = [self.watch.members[group.name] for group in groups]
        await asyncio.gather(*(members.look() for members in each))
        others = [one for one in self._that_may_have(groups) if one not in up]
        away = [one for one in others if asked.is_safe and not one.state.is_mute]
        heard.missing.update(one.group for one in others if one not in away)
        heard.missing.update(one.name for one in groups if not self.watch.members[one.name].named)
        return await self._of_those_away(asked, away, heard) or self._unknown(heard)

    async def _of_those_up(
        self, asked: Asked, members: Sequence[Member], heard: _Heard
    ) -> PassedAnswer | None:
        """What the first of some servers knows.

        One that says nothing for a while is asked once more when the others do not know.
        """
        is_hasty = asked.is_safe and len(members) > 1
        waiting = [(one, _HEAD_START_SECONDS if is_hasty else None) for one in members]
        for member, seconds in waiting:
            try:
                async with asyncio.timeout(seconds):
                    answer = await self._told(asked, member, heard)
            except TimeoutError:
                waiting.append((member, None))  # last, and then as long as it takes
                continue
            if answer is not None:
                return answer
        return None

    async def _of_those_away(
        self, asked: Asked, members: Iterable[Member], heard: _Heard
    ) -> PassedAnswer | None:
        """What the first of some servers knows, which are asked side by side.

        All other answers are closed; every one when the client goes meanwhile.
        """
        asking = [asyncio.create_task(self._briefly(asked, one, heard)) for one in members]
        try:
            found = await asyncio.gather(*asking)
        except BaseException:
            for task in asking:
                task.cancel()
                task.add_done_callback(_close)
            raise
        answers = [one for one in found if one is not None]
        for answer in answers[1:]:
            answer.close()
        return answers[0] if answers else None

    async def _told(self, asked: Asked, member: Member, heard: _Heard) -> PassedAnswer | None:
        """What a server that is up knows; where it does not, what it said or why it is silent."""
        found = await self._tried(asked, member)
        if isinstance(found, RequestError):
            failure = found
        else:
            try:
                return await self._taken(member, found, heard)
            except RequestError as error:  # its 404 broke off
                failure = error
        if self._is_there(member):
            heard.missing.add(member.group)
            heard.failure = heard.failure or failure
        return None

    async def _briefly(self, asked: Asked, member: Member, heard: _Heard) -> PassedAnswer | None:
        """What a server that did not answer knows, if it says so at once."""
        try:
            async with asyncio.timeout(_BRIEF_SECONDS):
                found = await self._tried(asked, member)
                if not isinstance(found, RequestError):
                    return await self._taken(member, found, heard)
        except TimeoutError:
            member.state = replace(member.state, is_mute=True)  # until it was polled
        except RequestError:
            pass  # its 404 broke off
        if self._is_there(member):
            heard.missing.add(member.group)
        return None

    async def _taken(self, member: Member, found: Answer, heard: _Heard) -> PassedAnswer | None:
        """What a server knows; what it said where it does not.

        Raises:
            RequestError: A 502: it said that it does not, and broke off.
        """
        if found.is_refusal:
            heard.refusal = heard.refusal or PassedAnswer(found, member.group)
        elif found.status == _UNKNOWN:
            heard.unknown = copied(found, await self.read(found, member.group))
        else:
            return PassedAnswer(found, member.group)
        return None

    def _unknown(self, heard: _Heard) -> Response:
        """The answer where no server that was asked has it.

        Raises:
            RequestError: One that may have it was not asked, or did not answer.
        """
        if heard.refusal is not None:
            return heard.refusal
        if heard.failure is not None and heard.failure.problem.code != NOT_REACHED:
            raise heard.failure
        if heard.missing or heard.unknown is None:
            raise self.some_away(heard.missing)
        return heard.unknown

    def _that_may_have(self, groups: Iterable[GroupState]) -> list[Member]:
        return [one for each in groups for one in self.watch.members[each.name].that_may_have()]

    def _is_there(self, member: Member) -> bool:
        """Whether a server is still one of its group: it may have left, and be no more."""
        return member in self.watch.members[member.group].all

    async def _tried(self, asked: Asked, member: Member) -> Answer | RequestError:
        """A server's answer, or why there is none where another one may be asked instead.

        Raises:
            RequestError: A 502: it gave no answer, and may have done what was asked.
        """
        try:
            seconds = self.watch.members[member.group].connect_seconds
            answer = await member.pool.ask(asked, connect_seconds=seconds)
        except ConnectError as error:
            self.metrics.passed(member.group, None)
            self.watch.note_unreached(member, error)
            return group_unavailable([member.group], str(error))
        except LostError as error:
            self.metrics.passed(member.group, None)
            lost = group_lost(member.group, str(error))
            if not asked.is_safe:
                raise lost from error
            return lost
        self.metrics.passed(member.group, answer.status)
        return answer


def _close(asked: asyncio.Task[PassedAnswer | None]) -> None:
    """Close an answer that nobody waits for any more."""
    if not asked.cancelled() and asked.exception() is None and (answer := asked.result()):
        answer.close()


def copied(answer: Answer, body: bytes) -> Response:
    """A group's answer that was read."""
    return PassedAnswer(Answer(answer.status, answer.headers, beginning=body), "")
