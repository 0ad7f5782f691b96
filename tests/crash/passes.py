"""All passes of the matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.crash.children import KillChild
from tests.crash.disk_full import FullDisk
from tests.crash.disk_power import PowerCut
from tests.crash.kill import Kill

if TYPE_CHECKING:
    from tests.crash.model import Pass

PASSES: Final[tuple[Pass, ...]] = (Kill(), KillChild(), PowerCut(), FullDisk())
"""In the order in which they are run."""
