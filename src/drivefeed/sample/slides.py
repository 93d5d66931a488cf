"""Manuscripts as PPTX: a slide for each heading, with tables, grouped shapes and notes."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from drivefeed.sample.containers import WRITTEN_AT, with_fixed_times
from drivefeed.sample.manuscript import (
    Aside,
    Block,
    Bullets,
    Heading,
    PageBreak,
    Paragraph,
    Table,
    title_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_TITLE_SLIDE, _TITLE_ONLY = 0, 5
_LEFT_CM, _TOP_CM, _WIDTH_CM = 1.5, 5.0, 22.0
_BULLET_CM, _ROW_CM, _GROUP_CM, _GAP_CM = 1.3, 1.1, 2.5, 0.6


def render_pptx(blocks: list[Block]) -> bytes:
    """Return a presentation."""
    from pptx import Presentation

    presentation = Presentation()
    properties = presentation.core_properties
    properties.title = title_of(blocks)
    properties.author = properties.last_modified_by = "Lindmoor Instruments"
    properties.created = properties.modified = WRITTEN_AT.replace(tzinfo=None)
    slide: Any = None
    top_cm = _TOP_CM
    for block in blocks:
        if isinstance(block, Heading):
            layout = _TITLE_SLIDE if block.level == 1 else _TITLE_ONLY
            slide = presentation.slides.add_slide(presentation.slide_layouts[layout])
            slide.shapes.title.text = block.text
            top_cm = _TOP_CM
        else:
            top_cm += _add_block(slide, block, top_cm)
    target = BytesIO()
    presentation.save(target)
    return with_fixed_times(target.getvalue())


def _add_block(slide: Any, block: Block, top_cm: float) -> float:
    """Add one block to a slide and return the height it took, in centimetres."""
    match block:
        case Paragraph(text):
            return _add_lines(slide, [text], top_cm)
        case Bullets(items):
            return _add_lines(slide, [f"• {item}" for item in items], top_cm)
        case Table(rows):
            return _add_table(slide, rows, top_cm)
        case Aside("group"):
            return _add_group(slide, block.parts, top_cm)
        case Aside("notes", text):
            slide.notes_slide.notes_text_frame.text = text
            return 0.0
        case Aside() | PageBreak() | Heading():
            return 0.0


def _add_lines(slide: Any, lines: Sequence[str], top_cm: float) -> float:
    from pptx.util import Cm, Pt

    height_cm = _BULLET_CM * len(lines)
    box = slide.shapes.add_textbox(Cm(_LEFT_CM), Cm(top_cm), Cm(_WIDTH_CM), Cm(height_cm))
    frame = box.text_frame
    frame.word_wrap = True
    frame.text = "\n".join(lines)
    for paragraph in frame.paragraphs:
        paragraph.font.size = Pt(22)
    return height_cm + _GAP_CM


def _add_table(slide: Any, rows: tuple[tuple[str, ...], ...], top_cm: float) -> float:
    from pptx.util import Cm

    height_cm = _ROW_CM * len(rows)
    frame = slide.shapes.add_table(
        len(rows), len(rows[0]), Cm(_LEFT_CM), Cm(top_cm), Cm(_WIDTH_CM), Cm(height_cm)
    )
    for y, row in enumerate(rows):
        for x, text in enumerate(row):
            frame.table.cell(y, x).text = text
    return height_cm + _GAP_CM


def _add_group(slide: Any, parts: Sequence[str], top_cm: float) -> float:
    from pptx.enum.shapes import MSO_SHAPE
    from pptx.util import Cm

    group = slide.shapes.add_group_shape()
    step_cm = _WIDTH_CM / len(parts)
    for number, text in enumerate(parts):
        shape = group.shapes.add_shape(
            MSO_SHAPE.CHEVRON,
            Cm(_LEFT_CM + number * step_cm),
            Cm(top_cm),
            Cm(step_cm),
            Cm(_GROUP_CM),
        )
        shape.text_frame.text = text
    return _GROUP_CM + _GAP_CM
