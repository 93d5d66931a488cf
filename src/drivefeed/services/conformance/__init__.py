"""The conformance kit: whether a team's ingestion backend keeps the published contract."""
