"""Nothing is forbidden to root, so a process of the tests' own root has to give that up."""

from __future__ import annotations

import ctypes
import os

_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 24, 1, 2


def give_up_overriding_permissions() -> None:
    """Let permissions of files hold for the process about to be executed, also if it is root's."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
            assert libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0
