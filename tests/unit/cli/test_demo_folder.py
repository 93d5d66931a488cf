"""What the demo says when the folder that it serves goes away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.cli import demo
from drivefeed.domain.errors import NeedsAttention, Throttled

if TYPE_CHECKING:
    from pathlib import Path

WISHES = demo.Wishes(once=True, slow=False, fail=False, grace=60, as_json=False)


@pytest.mark.parametrize("is_there", [True, False])
async def test_a_folder_that_went_away_is_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    served = tmp_path / "OneDrive"
    served.mkdir()

    async def refused(*_: Any, **__: Any) -> None:
        if not is_there:
            served.rmdir()
        raise Throttled("Microsoft asked this app to slow down.", seconds=6)

    monkeypatch.setattr(demo, "_demo", refused)
    with pytest.raises(Throttled if is_there else NeedsAttention) as caught:
        await demo._until_interrupted(served, tmp_path / "data", WISHES, is_sample=False)
    assert is_there or f"The folder '{served}' that the demo serves is gone" in str(caught.value)
