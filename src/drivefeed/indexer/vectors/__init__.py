"""The vector index: Qdrant Edge in a child process, or a Qdrant server.

Nothing is imported here, so that neither library loads before it is used.
"""
