"""Secrets at rest: the keys of this installation, and what is sealed with them.

Importing this package stays cheap; ``cryptography`` is loaded when something is sealed or opened.
"""
