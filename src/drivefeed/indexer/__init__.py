"""The embedded ingestion backend: text out of files, chunks, vectors."""
