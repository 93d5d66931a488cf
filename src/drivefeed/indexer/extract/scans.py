"""Pages as pictures, in bounded resolution: of a PDF, and of picture files."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from drivefeed.domain.reasons import Reason
from drivefeed.indexer.extract.detect import TIFF
from drivefeed.indexer.extract.pages import Draft
from drivefeed.indexer.model import Rejected

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.indexer.model import Limits

MOST_PIXELS: Final = 2_000
"""The longer side of a picture that is read; A4 comes to 171 dots per inch."""
_MOST_SCALE: Final = 200 / 72  # small pages get 200 dots per inch
_FORMATS: Final = ("PNG", "JPEG", "TIFF")
_DAMAGED: Final = (SyntaxError, ValueError, EOFError, IndexError, KeyError, struct.error)


class PdfScans:
    """The pages of a PDF, drawn."""

    def __init__(self, path: Path) -> None:
        import pypdfium2 as pdfium

        self._error = pdfium.PdfiumError
        self._document = pdfium.PdfDocument(path)

    def close(self) -> None:
        """Close the file."""
        self._document.close()

    def shows(self, number: int) -> bool:
        """Tell whether anything is on a page, counted from 1."""
        from pypdfium2 import raw

        try:
            page = self._document[number - 1]
        except self._error:
            return False
        try:
            return bool(raw.FPDFPage_CountObjects(page) > 0)
        finally:
            page.close()

    def picture(self, number: int) -> Any | None:
        """Draw a page (rows, columns, blue-green-red); None if it is damaged."""
        try:
            page = self._document[number - 1]
        except self._error:
            return None
        try:
            scale = min(_MOST_SCALE, MOST_PIXELS / max(1.0, *page.get_size()))
            bitmap = page.render(scale=scale)
            try:
                return bitmap.to_numpy().copy()
            finally:
                bitmap.close()
        except self._error:
            return None
        finally:
            page.close()


class Frames:
    """The pictures in one file: one, or in TIFF any number.

    Raises:
        Rejected: `corrupt`, `too_large`.
    """

    def __init__(self, path: Path) -> None:
        from PIL import Image

        self._image: Any = _guarded(Image.open, path, formats=_FORMATS)

    def close(self) -> None:
        """Close the file."""
        self._image.close()

    def count(self, limits: Limits) -> int:
        """Count them, up to one more than the limit of pages."""
        if self._image.format != _FORMATS[2]:
            return 1
        count = 0
        while count <= limits.pages:
            try:
                _guarded(self._image.seek, count, past_the_end=EOFError)
            except EOFError:
                break
            count += 1
        return count

    def shows(self, number: int) -> bool:  # noqa: ARG002 - as PdfScans has it
        """Tell that there is a picture: the file is nothing else."""
        return True

    def picture(self, number: int) -> Any:
        """Decode one (rows, columns, blue-green-red), on white where it is transparent.

        Raises:
            Rejected: `corrupt`, `too_large`.
        """
        return _guarded(self._decode, number)

    def _decode(self, number: int) -> Any:
        import numpy as np
        from PIL import Image, ImageOps

        self._image.seek(number - 1)
        self._image.draft("RGB", (MOST_PIXELS, MOST_PIXELS))
        image = ImageOps.exif_transpose(self._image)  # cameras store pictures lying on a side
        image.thumbnail((MOST_PIXELS, MOST_PIXELS))
        if image.has_transparency_data:
            image = image.convert("RGBA")
            white = Image.new("RGBA", image.size, "white")
            image = Image.alpha_composite(white, image)
        return np.asarray(image.convert("RGB"))[:, :, ::-1].copy()


def read_picture(path: Path, *, media_type: str, limits: Limits) -> Draft:
    """Make a draft of as many empty pages as the file has pictures; OCR fills them.

    Raises:
        Rejected: `corrupt`, `too_large`.
    """
    draft = Draft(media_type, limits)
    frames = Frames(path)
    try:
        draft.add_all([""] * (frames.count(limits) if media_type == TIFF else 1))
    finally:
        frames.close()
    return draft


def _guarded(call: Any, *args: Any, past_the_end: type[Exception] | None = None, **kw: Any) -> Any:
    """Call into Pillow and turn its many errors for bad files into ours."""
    from PIL import Image

    try:
        return call(*args, **kw)
    except Image.DecompressionBombError as error:
        raise Rejected(Reason.TOO_LARGE, "The picture has too many pixels.") from error
    except (OSError, *_DAMAGED) as error:
        if past_the_end is not None and isinstance(error, past_the_end):
            raise
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's fault, not the picture's
        raise Rejected(Reason.CORRUPT, "The picture is damaged and can't be opened.") from error
