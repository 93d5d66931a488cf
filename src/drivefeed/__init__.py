"""drivefeed keeps cloud folders flowing into a document ingestion pipeline."""

__version__ = "0.1.0"
