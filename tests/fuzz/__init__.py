"""Properties of what reads foreign input: a short sample in tests/run, the same each time; more by ``python -m tests.fuzz``."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

LONG = bool(os.environ.get("AGENT_BOX_FUZZ"))
"""Whether fresh examples are looked for, as ``python -m tests.fuzz`` does. Otherwise they are the same every time."""


def examples(count: int) -> settings:
    """The one setting of all properties here: *count* examples in the sample, five times as many in a long round."""
    return settings(
        max_examples=count * 5 if LONG else count, derandomize=not LONG, database=None, deadline=None,
        print_blob=True, suppress_health_check=[HealthCheck.too_slow],
    )  # fmt: skip
