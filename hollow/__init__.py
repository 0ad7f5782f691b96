"""Hollow: the built-in engine. Spawned as a process by the supervisor; speaks NDJSON on stdout."""

__version__ = "0.1.0"
