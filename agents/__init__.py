"""Agent Box: the supervisor. Trusted; it never imports :mod:`hollow`, it spawns it."""

__version__ = "0.1.0"
