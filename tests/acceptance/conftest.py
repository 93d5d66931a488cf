"""What the acceptance tests measured, told at the end of the run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Figure = Callable[[str, str], None]

_FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def figure(request: pytest.FixtureRequest) -> Figure:
    """Note a measured figure with its unit."""
    noted = request.config.stash.setdefault(_FIGURES, [])
    return lambda name, value: noted.append(f"{name} {value}")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    noted = config.stash.get(_FIGURES, [])
    if noted:
        terminalreporter.section("figures")
        for line in noted:
            terminalreporter.line(line)
