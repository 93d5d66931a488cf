"""What a soak run has shown, as a page."""

from __future__ import annotations

import os
import platform
import statistics
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from durability.soak import Soak


def report(
    soak: Soak, *, seed: int, minutes: float, rest: float, asked: int, broken: list[str]
) -> str:
    """Return the figures as they were seen."""
    rows = soak.daemon.rows
    events = rows("SELECT event, count(*) AS n FROM import_events GROUP BY event ORDER BY event")
    (ledger,) = rows(
        "SELECT count(*) AS n, count(DISTINCT import_id) AS versions, sum(pages) AS pages "
        "FROM ledger"
    )
    (org,) = rows("SELECT pages_used FROM orgs")
    (documents,) = rows("SELECT count(*) AS n, count(live_import_id) AS live FROM documents")
    table = []
    for part in soak.parts:
        times = soak.recovered[part]
        took = f"{statistics.median(times):.1f} s, {max(times):.1f} s" if times else "not seen"
        table.append(f"| {part} | {soak.kills[part]} | {soak.missed[part]} | {took} |")
    changes = ", ".join(f"{n} {what}" for what, n in soak.hands.done.items())
    counted = ", ".join(f"{row['event']} {row['n']}" for row in events)
    found = "\n".join(f"- {line}" for line in broken)
    return (
        f"""# Soak: random kills of every part under a stream of changes

`make soak MINUTES={minutes:g}`, seed {seed}, {time.strftime("%Y-%m-%d", time.gmtime())},
{os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[1]:.1f} at the
end. SQLite, the embedded queue server and index, SeaweedFS as S3, graphsim. One run, as seen.

| Part | Kills | Not there to be killed | Work went on after (median, most) |
|---|---|---|---|
{chr(10).join(table)}

Embeddings come from a service of the test; the local model runs in drivefeed's own process, so
there is no child of it to be killed.

* Changes at the source: {changes}.
* Events of imports: {counted}.
* All at rest {rest:.0f} s after the last change: {documents["live"]} documents live,
  {ledger["n"]} ledger entries for {ledger["versions"]} versions, {ledger["pages"]} pages, counter
  {org["pages_used"]}.
* Files that asked for a person after five deaths, and were tried again: {asked}.

Invariants: {"all hold." if not broken else f"{len(broken)} lines broken."}

{found}
""".rstrip()
        + "\n"
    )
