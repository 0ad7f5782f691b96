"""Engines of other programs: stand-ins for the servers that they talk to, and tests against the real programs."""
