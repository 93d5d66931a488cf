from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from rich.panel import Panel
from rich.style import Style
from rich.text import Text

from drivefeed.cli.output import VisibleConsole, console, echo, escape, new_table, print_json, say
from drivefeed.cli.search import show_hit
from drivefeed.cli.trouble import complain
from drivefeed.cli.words import count_of, duration_of, folded, shortened, size_of
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.names import usable_name
from drivefeed.domain.visible import visible
from drivefeed.telemetry import configure_logs, log

if TYPE_CHECKING:
    from rich.console import RenderableType

PRIVATE_KEY = "PRIVATE KEY"  # put together below: no file holds the beginning of one


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0 s"), (4.21, "4.2 s"), (12.6, "13 s"), (60, "1 min"), (185, "3 min 5 s"),
     (7200, "2 h"), (90_000, "1 d 1 h")],
)  # fmt: skip
def test_durations(seconds: float, words: str) -> None:
    assert duration_of(seconds) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 << 20, "5.0 MiB"), (3 << 40, "3.0 TiB")],
)
def test_sizes(number: int, words: str) -> None:
    assert size_of(number) == words


def test_counts() -> None:
    assert (count_of(0, "page"), count_of(1, "page")) == ("0 pages", "1 page")


def test_paths_break_after_separators() -> None:
    path = "Handbook/Operations handbook.pdf"

    assert folded(path, 24) == "Handbook/Operations\nhandbook.pdf"
    assert folded(path, 40) == path


@given(st.text(alphabet="ab/ _-.", max_size=60), st.integers(min_value=4, max_value=30))
def test_folding_loses_nothing_and_keeps_to_the_width(path: str, width: int) -> None:
    lines = folded(path, width).split("\n")

    assert "".join("".join(lines).split()) == "".join(path.split())
    assert all(len(line) <= width for line in lines)


@given(st.text(alphabet="ab/ ", max_size=60), st.integers(min_value=4, max_value=30))
def test_shortening_keeps_to_the_width_and_keeps_the_end(path: str, width: int) -> None:
    short = shortened(path, width)

    assert len(short) <= max(width, 3)
    assert short == path or path.endswith(short.partition("…")[2])


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("two\nlines\t.txt", "two␊lines␉.txt"),
        ("exe.\u202etxt", "exe.\\u202etxt"),
        ("\x9b31m", "\\u009b31m"),
        ("שלום Ünï 🦊.md", "שלום Ünï 🦊.md"),
    ],
)
def test_a_name_stays_on_its_line(name: str, shown: str) -> None:
    assert visible(name) == shown


EVIL = "\x1b[31mred\x1b]0;title\x07\x9b2J\u202e.txt"
SHOWN = "␛[31mred␛]0;title␇\\u009b2J\\u202e.txt"


@pytest.mark.parametrize(
    "printed",
    [EVIL, Text(EVIL), Text("a", Style(link=f"https://x.example/{EVIL}")), Panel(EVIL)],
    ids=["words", "text", "link", "panel"],
)
def test_a_terminal_gets_no_control_characters_of_others(printed: RenderableType) -> None:
    stream = io.StringIO()
    terminal = VisibleConsole(file=stream, force_terminal=True, color_system=None, width=200)

    terminal.print(printed, markup=False)

    assert "\x1b[31m" not in stream.getvalue()
    assert not {"\x07", "\x9b", "\u202e"} & set(stream.getvalue())


def test_no_way_of_printing_lets_them_through(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hit = {"path": EVIL, "page": 1, "score": 0.5, "snippet": EVIL, "web_url": EVIL}
    console.cache_clear()
    say(escape(EVIL))
    show_hit(1, hit | {"highlights": [[0, 3]]})
    echo(EVIL)
    complain(f"Nothing is called '{EVIL}'.")
    print_json({"name": EVIL})
    stream = io.StringIO()
    configure_logs(json=False, stream=stream)
    log("room").info("file", name=EVIL.replace(" ", ""))
    structlog.reset_defaults()

    out, err = capsys.readouterr()
    for text in (out, err, stream.getvalue()):
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(text)
    # Rich leaves the bell out by itself.
    assert out.count(SHOWN.replace("␇", "")) + out.count(SHOWN) == 5
    assert SHOWN in err
    assert json.loads(out[out.index("{") :]) == {"name": EVIL}


@pytest.mark.parametrize("name", ["Löhne März", "שלום 🦊", "df_notes", "Basic 2024", "a" * 120])
def test_names_that_people_give(name: str) -> None:
    assert usable_name(f" {name} ") == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        " \u200b",
        "a" * 121,
        "two\nlines",
        EVIL,
        "df_0a1b2c3d_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "xyz8Q~" + "A" * 34,
        f"-----BEGIN {PRIVATE_KEY}-----",
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.",
    ],
)
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(NeedsAttention) as refused:
        usable_name(name)
    assert not name.strip() or name not in str(refused.value)


def test_a_table_in_a_pipe_has_no_blanks_at_the_ends_of_its_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console.cache_clear()
    table = new_table("name", "state")
    table.add_row("a longer name", "")
    table.add_row("a", "ok")
    say(table)
    assert capsys.readouterr().out == "name           state\na longer name\na              ok\n"
