"""What the fork server loads before its first fork."""

from support.loaded import load

load()
