"""Adapters of the Source port."""
