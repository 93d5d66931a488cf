# ruff: noqa: INP001 - run by its path, never imported
"""Write what documentation can be made from code: python scripts/generate_docs.py [--check].

Text between ``<!-- generated: NAME -->`` and ``<!-- end of NAME -->`` is replaced; whole files
(the board's table of queues, the schemas of job payloads, the commands) are written anew.
``--check`` writes nothing and fails when something is out of date.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "scripts")]

from describe_commands import commands_document  # noqa: E402 - path first
from pydantic import BaseModel  # noqa: E402 - path first

from drivefeed.backends import contract  # noqa: E402 - path first
from drivefeed.backends.openapi import described  # noqa: E402 - path first
from drivefeed.domain.checkpoints import COMMITS, EFFECTS  # noqa: E402 - path first
from drivefeed.domain.explanations import EXPLANATIONS, Kind  # noqa: E402 - path first
from drivefeed.domain.lifecycle import ENDED, TRANSITIONS, Event, State  # noqa: E402 - path first
from drivefeed.domain.model import Policy  # noqa: E402 - path first
from drivefeed.domain.policies import policy_words  # noqa: E402 - path first
from drivefeed.domain.policy_options import OPTIONS  # noqa: E402 - path first
from drivefeed.domain.reasons import Reason  # noqa: E402 - path first
from drivefeed.ports import Stage  # noqa: E402 - path first
from drivefeed.queue.table import QUEUES, payload_schema, queues_json  # noqa: E402 - path first
from drivefeed.services.conformance.kit import CHECKS  # noqa: E402 - path first
from drivefeed.services.invariants import INVARIANTS  # noqa: E402 - path first
from drivefeed.setting_sections import (  # noqa: E402 - path first
    BackendSettings,
    DatabaseSettings,
    EmbeddingSettings,
    ExtractionSettings,
    S3Settings,
)
from drivefeed.settings import Settings  # noqa: E402 - path first
from drivefeed.settings_folders import (  # noqa: E402 - path first
    AccountSettings,
    ConnectionSettings,
)
from drivefeed.settings_keeping import (  # noqa: E402 - path first
    BacklogSettings,
    DiskSettings,
    ReconcileSettings,
    RetentionSettings,
)
from drivefeed.settings_outward import (  # noqa: E402 - path first
    ChannelSettings,
    OutboundSettings,
    WatchSettings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pydantic.fields import FieldInfo

PREFIX = "drivefeed"
HOUR, DAY = 3600, 86_400

KINDS = {
    Kind.SKIPPED: "Skipped: the connection does not want the file",
    Kind.REJECTED: "Rejected: this version of the file cannot be imported",
    Kind.WITHDRAWN: "Withdrawn: why a version left search",
    Kind.HOLD: "Holds: a condition that passes, after which the file goes on by itself",
    Kind.ATTENTION: "Attention: a person has to decide or repair",
}


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines)


def cell(value: object) -> str:
    """Return a value as the text of a cell."""
    return str(value).replace("|", "\\|").replace("\n", " ")


def lifecycle_picture() -> str:
    """Draw the states of an import, with the events between each two of them on one arrow."""
    arrows: dict[tuple[State, State], list[Event]] = {}
    for (state, event), after in TRANSITIONS.items():
        arrows.setdefault((state, after), []).append(event)
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> discovered"]
    for (state, after), events in arrows.items():
        lines.append(f"    {state} --> {after}: {', '.join(events)}")
    lines += [f"    {state} --> [*]" for state in State if state in ENDED]
    return "\n".join([*lines, "```"])


def lifecycle_table() -> str:
    """List every transition."""
    rows = [(f"`{state}`", f"`{event}`", f"`{to}`") for (state, event), to in TRANSITIONS.items()]
    return table(("State", "Event", "State afterwards"), rows)


def reasons() -> str:
    """List the reasons by kind, each with its remedy."""
    parts = []
    for kind, title in KINDS.items():
        rows = [
            (f"`{reason}`", EXPLANATIONS[reason].meaning, EXPLANATIONS[reason].remedy)
            for reason in Reason
            if EXPLANATIONS[reason].kind is kind
        ]
        parts.append(f"## {title}\n\n" + table(("Code", "What it means", "What to do"), rows))
    return "\n\n".join(parts)


def queues() -> str:
    """List the queues with their limits."""
    rows = [
        (
            f"`{spec.stage}`",
            spec.purpose,
            spec.concurrency,
            spec.attempts,
            f"{span(spec.backoff_seconds)}, doubling up to {span(spec.backoff_max)}",
            f"{span(spec.keep_completed.age_s)} or {spec.keep_completed.count:,}",
            f"{span(spec.keep_failed.age_s)} or {spec.keep_failed.count:,}",
        )
        for spec in QUEUES.values()
    ]
    head = ("Queue", "What it does", "At a time", "Attempts", "Wait between them")
    return table((*head, "Completed jobs kept", "Failed jobs kept"), rows)


def invariants() -> str:
    """Return the table of what ``verify`` finds broken."""
    rows = ((f"`{one.name}`", one.sentence, one.remedy) for one in INVARIANTS)
    return table(("Found as", "What must be true", "What to do where it is not"), rows)


def checkpoints() -> str:
    """Return the tables of the places where tests kill the process."""
    commits = ((f"`{name}`", sentence) for name, sentence in COMMITS.items())
    effects = ((f"`{name}`", sentence) for name, sentence in EFFECTS.items())
    return "\n\n".join(
        (table(("Commit", "What it writes"), commits), table(("Effect", "What it does"), effects))
    )


def span(seconds: float) -> str:
    """Return a duration in its largest whole unit."""
    for size, unit in ((DAY, "days"), (HOUR, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return "1 day" if (count, unit) == (1, "days") else f"{count} {unit}"
    return f"{seconds:g} s"


def payloads() -> str:
    """List what the jobs of each queue carry."""
    rows = []
    for stage in Stage:
        keys = ", ".join(f"`{key}`" for key in payload_schema(stage)["properties"])
        rows.append((f"`{stage}`", keys, f"[{stage}.json](schemas/{stage}.json)"))
    return table(("Queue", "Payload", "JSON Schema"), rows)


def settings(model: type[BaseModel], prefix: str | None = None) -> str:
    """List the settings of one section; ``prefix`` begins the names of its variables."""
    rows = []
    for key, field in model.model_fields.items():
        name = field.alias or key
        row = [f"`{name}`", default_of(field), field.description or ""]
        if prefix is not None:
            row.insert(1, variables(name, field, prefix))
        rows.append(row)
    head = ["Setting", "Default", "Meaning"]
    if prefix is not None:
        head.insert(1, "Environment")
    return table(head, rows)


def variables(name: str, field: FieldInfo, prefix: str) -> str:
    """Return the environment variables that set a field, the most specific first."""
    choices = getattr(field.validation_alias, "choices", [f"{prefix}{name}".upper()])
    return ", ".join(f"`{one}`" for one in choices if one.isupper())


def default_of(field: FieldInfo) -> str:
    """Return a default as a reader of TOML expects it."""
    if field.is_required():
        return "required"
    value = field.default
    if value is None or value in ("", [], {}) or isinstance(value, BaseModel):
        return "empty"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int | float):
        return f"`{int(value):_}`" if value == int(value) else f"`{value}`"
    return f"`{value}`"


def policy_options() -> str:
    """List the options of a connection's policy."""
    defaults = policy_words(Policy())
    rows = [
        (
            f"`{one.name}`",
            defaults[one.name],
            f"{one.meaning} Allowed: {one.allowed}.".replace("*", "\\*"),
        )
        for one in OPTIONS
    ]
    return table(("Option", "Default", "Meaning"), rows)


def backend_addresses() -> str:
    """List the addresses of the backend contract."""
    rows = [
        (f"`{method.upper()} {path}`", asked["summary"])
        for path, methods in described()["paths"].items()
        for method, asked in methods.items()
    ]
    return table(("Address", "What it does"), rows)


def backend_shape(model: type[BaseModel]) -> str:
    """List the members of an object of the backend contract."""
    members = model.model_json_schema()["properties"]
    rows = []
    for name, field in model.model_fields.items():
        must = "yes" if field.is_required() else ""
        words = field.description or ""
        if not words and "$ref" in members[name]:
            words = {"content": "Where the bytes are."}.get(name, "")
            if name == "state":
                words = ", ".join(f"`{one}`" for one in contract.JobState) + "."
        rows.append((f"`{name}`", must, words))
    return table(("Member", "Required", "What it is"), rows)


def backend_reasons() -> str:
    """List the reasons for which a backend may refuse a file."""
    rows = [(f"`{one}`", EXPLANATIONS[one].meaning) for one in contract.REFUSALS]
    return table(("Reason", "What it means"), rows)


def backend_answers() -> str:
    """List the answers of a backend, and what becomes of them."""
    rows = [
        (status, f"`{code}`" if isinstance(code, contract.Code) else code, does, word)
        for status, code, does, word in contract.ANSWERS
    ]
    return table(("Status", "Code", "drivefeed", "In a word"), rows)


def backend_checks() -> str:
    """List the checks of the conformance kit."""
    return table(("Check", "What must be so"), [(f"`{one.name}`", one.what) for one in CHECKS])


SECTIONS: dict[str, dict[str, Callable[[], str]]] = {
    "docs/backend-contract.md": {
        "backend addresses": backend_addresses,
        "backend submission": lambda: backend_shape(contract.SubmissionShape),
        "backend job": lambda: backend_shape(contract.JobShape),
        "backend reasons": backend_reasons,
        "backend answers": backend_answers,
        "backend checks": backend_checks,
    },
    "docs/architecture.md": {
        "lifecycle picture": lifecycle_picture,
        "lifecycle table": lifecycle_table,
        "payloads": payloads,
        "checkpoints": checkpoints,
    },
    "docs/reasons.md": {"reasons": reasons},
    "docs/connecting.md": {"policy options": policy_options},
    "docs/operations.md": {"queues": queues, "invariants": invariants},
    "docs/settings.md": {
        "settings": lambda: settings(Settings, "DRIVEFEED_"),
        "accounts": lambda: settings(AccountSettings),
        "connections": lambda: settings(ConnectionSettings),
        "backends": lambda: settings(BackendSettings),
        "database": lambda: settings(DatabaseSettings, "DRIVEFEED_DATABASE__"),
        "s3": lambda: settings(S3Settings, "DRIVEFEED_S3__"),
        "embedding": lambda: settings(EmbeddingSettings, "DRIVEFEED_EMBEDDING__"),
        "notices": lambda: settings(ChannelSettings),
        "watch": lambda: settings(WatchSettings, "DRIVEFEED_WATCH__"),
        "reconcile": lambda: settings(ReconcileSettings, "DRIVEFEED_RECONCILE__"),
        "disk": lambda: settings(DiskSettings, "DRIVEFEED_DISK__"),
        "backlog": lambda: settings(BacklogSettings, "DRIVEFEED_BACKLOG__"),
        "retention": lambda: settings(RetentionSettings, "DRIVEFEED_RETENTION__"),
        "outbound": lambda: settings(OutboundSettings, "DRIVEFEED_OUTBOUND__"),
        "extraction": lambda: settings(ExtractionSettings, "DRIVEFEED_EXTRACTION__"),
    },
}


def expected() -> dict[Path, str]:
    """Return what each file that is generated, wholly or in part, should hold.

    Raises:
        SystemExit: a file lost the markers of a section.
    """
    found = {ROOT / "bull-board" / "queues.json": as_json(queues_json(PREFIX))}
    found[ROOT / "docs" / "backend-contract.openapi.json"] = as_json(described())
    found[ROOT / "docs" / "commands.md"] = commands_document()
    for stage in Stage:
        found[ROOT / "docs" / "schemas" / f"{stage}.json"] = as_json(payload_schema(stage))
    for name, sections in SECTIONS.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for title, make in sections.items():
            begin, end = f"<!-- generated: {title} -->", f"<!-- end of {title} -->"
            if text.count(begin) != 1 or text.count(end) != 1:
                raise SystemExit(f"{name} must have the lines '{begin}' and '{end}' once each.")
            pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
            section = f"{begin}\n\n{make()}\n\n{end}"
            text = pattern.sub(lambda _, section=section: section, text)
        found[ROOT / name] = text
    return found


def as_json(value: object) -> str:
    """Return a value as JSON for people and programs."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def stale() -> dict[Path, str]:
    """Return the files that are not what they should be, with what they should hold."""
    return {
        path: text
        for path, text in expected().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    }


def main() -> int:
    """Write or check, and return the exit code."""
    parser = argparse.ArgumentParser(description="Write the generated documentation.")
    parser.add_argument("--check", action="store_true", help="only tell whether it is current")
    check = parser.parse_args().check
    for path, text in stale().items():
        name = path.relative_to(ROOT)
        if check:
            sys.stderr.write(f"{name} is out of date. Run 'make format' and commit the result.\n")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"Wrote {name}.\n")
    return bool(check and stale())


if __name__ == "__main__":
    sys.exit(main())
