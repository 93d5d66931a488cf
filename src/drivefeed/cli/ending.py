"""How a demo ended: the standing of its files, and the certificate if it ran to its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from drivefeed.cli.output import escape, say
from drivefeed.cli.status import progress_dict, say_reasons, sum_of
from drivefeed.cli.verify import say_certificate
from drivefeed.cli.words import count_of, duration_of

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.catalog.progress import Progress
    from drivefeed.services.certificate import Certificate

_LEFT_OUT_SHOWN = 5


@dataclass(slots=True)
class Ending:
    """What became of a demo.

    Attributes:
        refused: paths of files whose download was refused because the demo asked for it.
        retried: paths of those that were tried again after the failure was cleared.
        first_seconds: from the start to the first searchable file.
        interrupted: whether somebody ended it.
        left_out: what of the folder graphsim did not serve, by path, with the reason.
    """

    found: list[Progress] = field(default_factory=list)
    certificate: Certificate | None = None
    refused: list[str] = field(default_factory=list)
    retried: list[str] = field(default_factory=list)
    first_seconds: float | None = None
    seconds: float = 0.0
    interrupted: bool = False
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        """Whether every file came to an end and all parts agree."""
        agrees = self.certificate is not None and self.certificate.holds
        return agrees and all(
            one.at_rest and not one.waits_for_person and not one.connection.paused
            for one in self.found
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "connections": [progress_dict(one) for one in self.found],
            "certificate": self.certificate.as_dict() if self.certificate else None,
            "failure": {"refused": self.refused, "retried": self.retried},
            "first_searchable_seconds": self.first_seconds,
            "seconds": self.seconds,
            "interrupted": self.interrupted,
            "left_out": self.left_out,
        }


def say_ending(ending: Ending, served: Path, data: Path) -> None:
    """Say what was reached, what was compared, and how to go on."""
    for one in ending.found:
        say(sum_of(one))
    say_reasons(ending.found)
    if ending.refused:
        again = f"{count_of(len(ending.retried), 'file')} tried again after it was cleared"
        say(f"Simulated failure: {count_of(len(ending.refused), 'download')} refused, {again}.")
    if ending.left_out:
        _say_left_out(ending.left_out)
    if ending.certificate is not None:
        say_certificate(ending.certificate)
    took = f"All after {duration_of(ending.seconds)}"
    if ending.first_seconds is not None:
        took = f"First searchable document after {duration_of(ending.first_seconds)}, all after "
        took += duration_of(ending.seconds)
    if ending.certificate is not None:
        say(f"[dim]{took}.[/]")
    say(f"[dim]Folder: {escape(str(served))}[/]")
    say(f"[dim]Logs:   {escape(str(data / 'drivefeed.log'))}[/]")


def _say_left_out(left_out: dict[str, str]) -> None:
    what = "1 entry" if len(left_out) == 1 else f"{len(left_out)} entries"
    say(f"{what} of the folder could not be part of a drive:")
    for path, why in sorted(left_out.items())[:_LEFT_OUT_SHOWN]:
        say(f"  {escape(path)}: {why}")
    if len(left_out) > _LEFT_OUT_SHOWN:
        say(f"  and {len(left_out) - _LEFT_OUT_SHOWN} more; 'drivefeed demo --json' names all.")
