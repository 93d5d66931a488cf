"""Text out of pictures by RapidOCR: scanned pages of a PDF, and pictures that are documents.

The models lie inside the package, so nothing is fetched. They read Latin letters with all their
accents, Chinese and Japanese; not Cyrillic or Greek. One dense page takes some seconds of a core:
only pages without any text of their own get here, and only so many of a file.
"""

from __future__ import annotations

from contextlib import closing
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.indexer.extract.detect import PDF
from drivefeed.indexer.extract.scans import Frames, PdfScans

if TYPE_CHECKING:
    from collections.abc import Callable

    from drivefeed.indexer.extract.pages import Draft
    from drivefeed.indexer.model import Limits

MEMORY_BYTES: Final = 1 << 30
"""Address space that OCR needs beyond what reading takes: 0.7 GB measured at most, and room."""
CHILD_RSS_BYTES: Final = 1 << 30
"""A child that has loaded the models holds about 0.5 GB; it is not worn because of that."""

# Where lines are looked for, the longer side of a page is brought to this; they are then read in
# full resolution. The package's own setting costs twice the time and finds no more.
_FINDING_PIXELS: Final = 1280
_NO_MEMORY: Final = ("bad_alloc", "failed to allocate", "insufficient memory", "out of memory")


def require_ocr() -> None:
    """Check that the extra is installed, without loading it.

    Raises:
        NeedsAttention: It is not.
    """
    missing = [name for name in ("rapidocr", "onnxruntime", "PIL") if find_spec(name) is None]
    if missing:
        raise NeedsAttention(
            "The setting extraction.ocr is on, but the packages for OCR are not installed "
            f"({', '.join(missing)}). Install drivefeed[ocr], or turn the setting off.",
            reason=Reason.MISCONFIGURED,
        )


def read_scans(path: Path, draft: Draft, limits: Limits, more_time: Callable[[], None]) -> None:
    """Fill those pages of a draft that have no text, in this very process.

    The first `limits.ocr_pages` of them are read; `draft.unread_pages` tells how many are left.

    Args:
        path: The file that the draft was read from.
        draft: All its pages are known.
        limits: As for the whole file.
        more_time: Called before each page that is read: it takes time of its own.

    Raises:
        Rejected: `corrupt`, `too_large`.
        MemoryError: The limit of memory does not suffice.
    """
    blank = draft.blank
    if not blank:
        return
    read = 0
    with closing(PdfScans(path) if draft.media_type == PDF else Frames(path)) as scans:
        for position, number in enumerate(blank):
            if read == limits.ocr_pages:
                draft.unread_pages = len(blank) - position
                return
            if not scans.shows(number):
                continue
            read += 1
            more_time()
            picture = scans.picture(number)
            if picture is not None:
                draft.fill(number, _text(picture))


def _text(picture: Any) -> str:
    """Read one picture (rows, columns, blue-green-red) into lines, from the top down."""
    try:
        return "\n".join(_engine()(picture).txts or ())
    except Exception as error:
        # Native libraries say it in their own ways.
        if any(sign in str(error).lower() for sign in _NO_MEMORY):
            raise MemoryError from error
        raise


@cache
def _engine() -> Any:
    """Load the models, once in the life of a process."""
    import cv2
    import rapidocr

    cv2.setNumThreads(1)
    models = Path(rapidocr.__file__).parent / "models"
    files = {
        "Det": "PP-OCRv6_det_small.onnx",
        "Cls": "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
        "Rec": "PP-OCRv6_rec_small.onnx",
    }
    return rapidocr.RapidOCR(
        params={
            "Global.log_level": "critical",
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            "Det.limit_type": "max",
            "Det.limit_side_len": _FINDING_PIXELS,
            # One line at a time takes half the memory of six, and no more time.
            "Rec.rec_batch_num": 1,
            # By their paths, for a model that is missing would be downloaded otherwise.
            **{f"{part}.model_path": str(models / name) for part, name in files.items()},
        }
    )
