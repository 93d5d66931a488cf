"""Workbooks of the binary formats (XLS, XLSB): a page per sheet, a line per row, no empty cells."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

from drivefeed.domain.reasons import Reason
from drivefeed.indexer.extract.package import Package, Properties
from drivefeed.indexer.extract.pages import Draft
from drivefeed.indexer.extract.values import shown
from drivefeed.indexer.model import Rejected

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from drivefeed.indexer.model import Limits


def read_sheets(path: Path, *, media_type: str, limits: Limits) -> Draft:
    """Read a workbook's values as they were last calculated.

    Raises:
        Rejected: `corrupt`, `encrypted`, `too_large`.
    """
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    draft = Draft(media_type, limits)
    if zipfile.is_zipfile(path):
        # calamine unpacks whole parts into memory, so their sizes are checked first.
        with Package(path, limits) as package:
            package.verify_parts((".xml", ".bin", ".rels"))
            draft.title = Properties.of(package).title
    try:
        with CalamineWorkbook.from_path(str(path)) as workbook:
            for name in workbook.sheet_names:
                try:
                    sheet = workbook.get_sheet_by_name(name)
                except CalamineError:
                    draft.add("", name)  # a chart sheet, or one that is damaged: the others count
                    continue
                draft.add(_lines(sheet.iter_rows(), draft), name)
    except PasswordError as error:
        raise Rejected(Reason.ENCRYPTED, "The workbook opens only with a password.") from error
    except (CalamineError, OSError) as error:
        raise Rejected(Reason.CORRUPT, f"The workbook is damaged ({error}).") from error
    return draft


def _lines(rows: Iterable[Sequence[object]], draft: Draft) -> str:
    lines = []
    size = 0
    for row in rows:
        line = " | ".join(text for cell in row if (text := shown(cell)))
        if line:
            lines.append(line)
            size += len(line) + 1
            draft.check_size(size)
    return "\n".join(lines)
