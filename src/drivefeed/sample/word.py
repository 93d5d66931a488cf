"""Manuscripts as DOCX: header, headings, lists, tables, a real text box, page breaks."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from drivefeed.sample.containers import WRITTEN_AT, with_fixed_times
from drivefeed.sample.manuscript import (
    Aside,
    Block,
    Bullets,
    Heading,
    PageBreak,
    Paragraph,
    Table,
    header_of,
    title_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_EMU_PER_CM = 360_000
_BOX_CM = (15, 2)

_TEXT_BOX = """\
<w:p xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"
     xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"
     xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"
     xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"
     xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><w:r>
<mc:AlternateContent><mc:Choice Requires="wps"><w:drawing>
<wp:inline distT="0" distB="0" distL="0" distR="0"><wp:extent cx="{cx}" cy="{cy}"/>
<wp:docPr id="{number}" name="Text box {number}"/><a:graphic>
<a:graphicData uri="http://schemas.microsoft.com/office/word/2010/wordprocessingShape">
<wps:wsp><wps:cNvSpPr txBox="1"/><wps:spPr><a:xfrm><a:off x="0" y="0"/>
<a:ext cx="{cx}" cy="{cy}"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom>
<a:ln w="9525"><a:solidFill><a:srgbClr val="5B6B7B"/></a:solidFill></a:ln></wps:spPr>
<wps:txbx><w:txbxContent><w:p><w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>
</w:txbxContent></wps:txbx><wps:bodyPr/></wps:wsp></a:graphicData></a:graphic></wp:inline>
</w:drawing></mc:Choice></mc:AlternateContent></w:r></w:p>
"""


def render_docx(blocks: list[Block]) -> bytes:
    """Return a Word document."""
    from docx import Document

    document = Document()
    properties = document.core_properties
    properties.title = title_of(blocks)
    properties.author = properties.last_modified_by = "Lindmoor Instruments"
    properties.created = properties.modified = WRITTEN_AT.replace(tzinfo=None)
    document.sections[0].header.paragraphs[0].text = header_of(blocks)
    _add_blocks(document, blocks)
    target = BytesIO()
    document.save(target)
    return with_fixed_times(target.getvalue())


def _add_blocks(document: Any, blocks: Iterable[Block]) -> None:
    for number, block in enumerate(blocks, start=1):
        match block:
            case Heading(level, text):
                document.add_heading(text, level=level)
            case Paragraph(text):
                document.add_paragraph(text)
            case Bullets(items):
                for item in items:
                    document.add_paragraph(item, style="List Bullet")
            case Table(rows):
                _add_table(document, rows)
            case PageBreak():
                document.add_page_break()
            case Aside("box", text):
                _add_text_box(document, text, number)
            case Aside():
                pass  # the header is not part of the body; groups and notes are for slides


def _add_table(document: Any, rows: tuple[tuple[str, ...], ...]) -> None:
    table = document.add_table(rows=len(rows), cols=len(rows[0]), style="Light Grid Accent 1")
    for row, cells in zip(rows, table.rows, strict=True):
        for text, cell in zip(row, cells.cells, strict=True):
            cell.text = text
    document.add_paragraph()


def _add_text_box(document: Any, text: str, number: int) -> None:
    from docx.oxml import parse_xml

    cx, cy = (side * _EMU_PER_CM for side in _BOX_CM)
    xml = _TEXT_BOX.format(cx=cx, cy=cy, number=number, text=escape(text))
    # The section's properties must stay the last element of the body.
    document.element.body.sectPr.addprevious(parse_xml(xml))
