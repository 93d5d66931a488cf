"""Nothing is forbidden to root, so a process of the tests' own root has to give that up."""

from __future__ import annotations

import ctypes
import os

_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 24, 1, 2
_CAPABILITY_VERSION_3 = 0x20080522


def give_up_overriding_permissions() -> None:
    """Let permissions of files hold for this process and for what it executes, also if root's."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    # Effective, permitted and inheritable; capabilities from 32 on are in the second three.
    sets = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
        assert libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0
        for which in range(3):
            sets[which] &= ~(1 << capability)
    assert libc.capset(header, sets) == 0
