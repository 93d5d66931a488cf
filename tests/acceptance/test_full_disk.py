"""A disk that fills up while files come in: a clear sentence, nothing lost, and on it goes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import environment

HERE = Path(__file__).parent


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small disk, which Linux can do")
def test_a_full_disk_loses_nothing_and_work_goes_on_when_there_is_room(tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    assert unshare, "unshare (util-linux) is needed to mount a small disk for this test alone"
    spaces = ["--mount"] if os.geteuid() == 0 else ["--mount", "--map-root-user"]
    paths = os.pathsep.join([str(HERE.parents[1] / "src"), str(HERE.parent)])
    ended = subprocess.run(
        [unshare, *spaces, sys.executable, str(HERE / "full_disk.py"), str(tmp_path)],
        env=environment() | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert ended.returncode == 0, f"{ended.stdout[-2000:]}\n{ended.stderr[-6000:]}"
    print(ended.stdout)  # noqa: T201 - the sentence is the point
    assert ended.stdout.splitlines()[-1] == "done"
