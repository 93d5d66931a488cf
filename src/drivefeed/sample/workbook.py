"""Manuscripts as XLSX: a worksheet for each heading, with the table below it."""

from __future__ import annotations

import re
from datetime import datetime
from io import BytesIO

from drivefeed.sample.containers import WRITTEN_AT, with_fixed_times
from drivefeed.sample.manuscript import Block, Heading, Table

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def render_xlsx(blocks: list[Block]) -> bytes:
    """Return a workbook; what looks like a number or a date becomes one."""
    import xlsxwriter

    target = BytesIO()
    with xlsxwriter.Workbook(target, {"in_memory": True}) as workbook:
        workbook.set_properties(
            {"author": "Lindmoor Instruments", "created": WRITTEN_AT.replace(tzinfo=None)}
        )
        bold = workbook.add_format({"bold": True, "bottom": 1})
        date = workbook.add_format({"num_format": "yyyy-mm-dd"})
        sheet = None
        for block in blocks:
            if isinstance(block, Heading):
                sheet = workbook.add_worksheet(block.text)
                sheet.freeze_panes(1, 0)
            elif isinstance(block, Table) and sheet is not None:
                sheet.write_row(0, 0, block.rows[0], bold)
                sheet.set_column(0, len(block.rows[0]) - 1, 24)
                for y, row in enumerate(block.rows[1:], start=1):
                    for x, text in enumerate(row):
                        value = _value(text)
                        sheet.write(y, x, value, date if isinstance(value, datetime) else None)
    return with_fixed_times(target.getvalue())


def _value(text: str) -> str | float | datetime:
    if _NUMBER.fullmatch(text):
        return float(text)
    if _DATE.fullmatch(text):
        # A cell has no time zone: it is the date as people wrote it.
        return datetime.fromisoformat(text)
    return text
