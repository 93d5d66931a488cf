"""A small folder of documents to try drivefeed on: a made-up company's, written for it.

The texts are in `manuscripts/`; the modules here turn each into the file type it is shown as. The
renderers need the packages of the extra `local` and load them when a file is rendered.
"""

from drivefeed.sample.catalogue import SAMPLE_DOCUMENTS, SampleDocument
from drivefeed.sample.folder import write_sample
from drivefeed.sample.questions import SAMPLE_QUESTIONS, SampleQuestion

__all__ = [
    "SAMPLE_DOCUMENTS",
    "SAMPLE_QUESTIONS",
    "SampleDocument",
    "SampleQuestion",
    "write_sample",
]
