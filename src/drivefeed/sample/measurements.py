"""A table of river measurements as CSV: a spring with one flood in it."""

from __future__ import annotations

import csv
import math
from datetime import UTC, datetime, timedelta
from io import StringIO

_FIRST = datetime(2026, 3, 14, tzinfo=UTC)
_STEP = timedelta(hours=4)
_ROWS = 180
_FLOOD_PEAK, _FLOOD_WIDTH = 77, 9.0
_REMARKS = {
    20: "wiper cleaned by hand, leaves on the window",
    77: "peak of the flood after the snow melt, bridge closed",
    96: "gauge moved half a metre upstream",
    140: "calibrated against a bottle sample, 14.2 NTU",
    171: "fishermen report dead trout, sample sent to the institute",
}


def render_measurements() -> bytes:
    """Return 180 rows, one each four hours: time, site, level, turbidity, temperature, remark."""
    text = StringIO(newline="")
    table = csv.writer(text, lineterminator="\r\n")
    table.writerow(["time", "site", "level_cm", "turbidity_ntu", "water_temp_c", "remark"])
    for number in range(_ROWS):
        flood = math.exp(-(((number - _FLOOD_PEAK) / _FLOOD_WIDTH) ** 2))
        ripple = math.sin(number * 1.7) + math.sin(number * 0.31)
        day = math.sin(2 * math.pi * (number % 6) / 6)
        table.writerow(
            [
                (_FIRST + number * _STEP).strftime("%Y-%m-%dT%H:%MZ"),
                "Upper Orna, footbridge",
                round(62 + 3 * ripple + 148 * flood),
                f"{8 + ripple + 390 * flood:.1f}",
                f"{5.5 + number / 60 + 0.8 * day - 1.5 * flood:.1f}",
                _REMARKS.get(number, ""),
            ]
        )
    return text.getvalue().encode("utf-8")
