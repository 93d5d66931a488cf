"""Where the running daemon leaves word of its socket; known without loading the web server."""

from __future__ import annotations

DOOR_FILE = "daemon.json"
"""A file in the data folder: ``{"socket": path, "pid": number}``, there while the daemon runs."""
