"""Channels: ways by which people are told. Each takes a message, and says what was answered."""
