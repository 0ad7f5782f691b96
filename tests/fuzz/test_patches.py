"""Patches: any tree that an agent can leave comes back from base and patch, in one commit and in two."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given

from tests.fuzz import examples
from tests.support.trees import clear, edits, expected, listing, make_exact, place, write


@examples(4)
@given(pair=edits())
def test_a_second_export_of_the_same_tree_is_the_same_patch(pair):
    """T127: the record does not depend on when it was made, and base and patch give the very tree each time."""
    old, new = pair
    with tempfile.TemporaryDirectory() as folder:
        airlock = place(make_exact(Path(folder) / "repo", old)).open()
        clear(airlock.path)
        write(airlock.path, new)
        tree = airlock.room.snapshot(airlock.path)
        patch = airlock.room.difference(airlock.base, tree)
        assert listing(airlock, tree) == expected(new)
        # Written anew, with other times and other inodes.
        clear(airlock.path)
        write(airlock.path, new)
        assert airlock.room.snapshot(airlock.path) == tree
        assert airlock.room.difference(airlock.base, tree) == patch
