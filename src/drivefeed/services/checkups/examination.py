"""Checks that run at the same time, each with a deadline, each after those that it needs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from drivefeed.domain.errors import DrivefeedError
from drivefeed.domain.redact import redact
from drivefeed.services.checkups.finding import Colour, Finding, red

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    Look = Callable[[], Awaitable[Iterable[Finding]]]

SECONDS = 15.0
"""How long a check may take where it says nothing else."""
_REPORT = "Report it with the file that 'drivefeed support-bundle' makes."
_SAID = "Put right what this says, and look again with 'drivefeed doctor'."


@dataclass(slots=True)
class _Check:
    name: str
    look: Look
    seconds: float
    needs: tuple[str, ...]
    after: tuple[str, ...]
    remedy: str
    done: asyncio.Event = field(default_factory=asyncio.Event)
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_well(self) -> bool:
        return all(one.is_well for one in self.findings)


class Examination:
    """Runs checks and collects what they find, in the order in which they were added.

    A check may add further ones while it runs: what the catalog knows is looked at when the
    catalog was opened.

    Args:
        on_change: is told the names of the checks under way whenever one begins or ends.
    """

    def __init__(self, on_change: Callable[[Sequence[str]], None] | None = None) -> None:
        self._on_change = on_change
        self._checks: dict[str, _Check] = {}
        self._group: asyncio.TaskGroup | None = None
        self._under_way: list[str] = []

    def add(
        self,
        name: str,
        look: Look,
        *,
        seconds: float = SECONDS,
        needs: Iterable[str] = (),
        after: Iterable[str] = (),
        remedy: str = _REPORT,
    ) -> None:
        """Add a check.

        Args:
            name: unique; what is before a colon is the part that its findings are about.
            look: finds; what it raises becomes a red finding.
            seconds: after so long it counts as red.
            needs: checks without which this one would say nothing new: it is grey if one of
                them is red or grey. Names that nobody added count as well.
            after: checks to wait for, whatever they find.
            remedy: goes with an error that ``look`` raises and with the deadline.
        """
        check = _Check(name, look, seconds, tuple(needs), tuple(after), remedy)
        self._checks[name] = check
        if self._group is not None:
            self._group.create_task(self._run(check), name=f"check {name}")

    def stands(self, name: str) -> bool:
        """Whether a check has ended and found nothing red."""
        found = self._checks.get(name)
        return found is not None and found.done.is_set() and found.is_well

    async def run(self) -> list[Finding]:
        """Run all checks to their end or deadline; return what they found."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for check in list(self._checks.values()):
                group.create_task(self._run(check), name=f"check {check.name}")
        self._group = None
        return [one for check in self._checks.values() for one in check.findings]

    async def _run(self, check: _Check) -> None:
        for name in (*check.needs, *check.after):
            if name in self._checks:
                await self._checks[name].done.wait()
        ill = [n for n in check.needs if n in self._checks and not self._checks[n].is_well]
        if ill:
            check.findings = [_not_looked_at(check.name, ill)]
        else:
            self._tell(check.name, begins=True)
            check.findings = [_without_secrets(one) for one in await self._found(check)]
            self._tell(check.name, begins=False)
        check.done.set()

    async def _found(self, check: _Check) -> list[Finding]:
        part, _, subject = check.name.partition(":")
        try:
            async with asyncio.timeout(check.seconds):
                return list(await check.look())
        except TimeoutError:
            words = f"No answer within {check.seconds:.0f} seconds."
        except DrivefeedError as error:
            # What has a sentence of ours is no defect that anybody should report.
            remedy = _SAID if check.remedy == _REPORT else check.remedy
            return [red(part, str(error), remedy, subject=subject)]
        except Exception as error:  # noqa: BLE001 - whatever is broken, the other checks go on
            words = f"The check failed: {type(error).__name__}: {error}"
        return [red(part, words, check.remedy, subject=subject)]

    def _tell(self, name: str, *, begins: bool) -> None:
        if begins:
            self._under_way.append(name)
        else:
            self._under_way.remove(name)
        if self._on_change is not None:
            self._on_change(tuple(self._under_way))


def _not_looked_at(name: str, ill: Sequence[str]) -> Finding:
    part, _, subject = name.partition(":")
    causes = " and ".join(f"'{one.replace(':', ' ')}'" for one in ill)
    return Finding(
        part,
        Colour.GREY,
        f"Not looked at, because {causes} {'is' if len(ill) == 1 else 'are'} not well.",
        f"Cure {causes} first.",
        subject,
    )


def _without_secrets(one: Finding) -> Finding:
    return replace(one, words=redact(one.words), remedy=redact(one.remedy))
