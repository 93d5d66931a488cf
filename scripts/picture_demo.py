# ruff: noqa: INP001 - run by its path, never imported
"""Draws docs/pictures/demo.svg: the demo's screen, from a real run over the sample documents.

A demo runs in a temporary folder with its screen recorded. One download is refused, so that the
picture shows a failure with its reason and its remedy. Run it with
``.venv/bin/python scripts/picture_demo.py``; it takes about a minute.
"""

from __future__ import annotations

import asyncio
import io
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from drivefeed.bootstrap import open_parts
from drivefeed.catalog.progress import Standing
from drivefeed.cli.demo import settings_of_demo
from drivefeed.cli.screen import picture
from drivefeed.cli.show import Show
from drivefeed.cli.simulator import simulator
from drivefeed.daemon import Daemon
from drivefeed.sample import write_sample
from drivefeed.telemetry import configure_logs

if TYPE_CHECKING:
    from drivefeed.cli.scene import Scene

TARGET = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "demo.svg"
FONTS = "Fira Code, DejaVu Sans Mono, Menlo, Consolas, monospace"
COLUMNS, ROWS = 88, 26
SHOWN_AS = Path("drivefeed-demo") / "OneDrive"
ENOUGH = 9
"""Searchable files after which the picture is taken."""

THEME = TerminalTheme(
    (24, 26, 31),
    (214, 217, 224),
    [
        (58, 63, 75), (224, 108, 117), (126, 192, 110), (209, 154, 102),
        (97, 152, 224), (190, 130, 220), (86, 182, 194), (171, 178, 191),
    ],
    [
        (110, 118, 135), (224, 108, 117), (126, 192, 110), (209, 154, 102),
        (97, 152, 224), (190, 130, 220), (86, 182, 194), (255, 255, 255),
    ],
)  # fmt: skip


class Camera:
    """Keeps the scene that is to be drawn."""

    def __init__(self, enough: asyncio.Event) -> None:
        self.enough = enough
        self.scene: Scene | None = None
        self.console = Console(
            record=True, width=COLUMNS, height=ROWS, file=io.StringIO(), force_terminal=True,
            color_system="truecolor", emoji=False, highlight=False,
        )  # fmt: skip

    def show(self, scene: Scene) -> None:
        """Take a scene; the last one is drawn."""
        self.scene = scene
        if scene.count(Standing.SEARCHABLE) >= ENOUGH and scene.count(Standing.FAILED):
            self.enough.set()

    def close(self) -> None:
        """Nothing is left to do."""

    def develop(self) -> None:
        """Draw the last scene."""
        scene = self.scene
        if scene is None:
            return
        scene.served = SHOWN_AS
        scene.keys = {
            "f": "fail", "c": "clear, retry", "w": "stop workers", "s": "slow", "n": "new file",
            "q": "quit",
        }  # fmt: skip
        self.console.print(picture(scene, COLUMNS, ROWS))
        TARGET.parent.mkdir(parents=True, exist_ok=True)
        svg = self.console.export_svg(title="drivefeed demo", theme=THEME)
        # The picture must not fetch a font from anywhere.
        svg = re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL)
        svg = svg.replace("Fira Code, monospace", FONTS)
        TARGET.write_text(svg, encoding="utf-8")


async def main() -> None:
    """Run a demo until there is enough to see."""
    enough = asyncio.Event()
    camera = Camera(enough)
    with tempfile.TemporaryDirectory() as place:
        served, data = Path(place) / "OneDrive", Path(place) / "data"
        write_sample(served)
        data.mkdir()
        configure_logs(json=True, stream=io.StringIO())
        async with simulator(served, data) as sim:
            settings = settings_of_demo(sim.endpoints, served, data, grace=60.0)
            async with open_parts(settings) as parts:
                daemon = Daemon(parts)
                running = asyncio.create_task(daemon.run())
                show = Show(daemon, sim, served, camera, is_sample=True)
                await show.fail()
                showing = asyncio.create_task(show.go_on(running))
                await enough.wait()
                daemon.stop()
                await running
                await showing
    camera.develop()
    sys.stdout.write(f"{TARGET}\n")


if __name__ == "__main__":
    asyncio.run(main())
