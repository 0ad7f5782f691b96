"""The order of the locks: waited for from the outside in, by each thread for itself; what is written of it is true."""

from __future__ import annotations

import re
import threading
from itertools import pairwise, product
from pathlib import Path

import pytest

from agents import lockorder, locks
from agents.lockorder import LockOrderError, Rank
from tests.support.boxes import child, ended, fork, until

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"


def lock(tmp_path, rank, name="a"):
    return locks.Lock(tmp_path / f"{rank.name}-{name}", rank)


def test_who_waits_for_ever_holds_only_what_stands_above(tmp_path):
    """Every pair: in order it is given, against the order and beside its like it is a fault of ours."""
    for outer, inner in product(Rank, Rank):
        with lock(tmp_path, outer):
            wanted = lock(tmp_path, inner, "b")
            if outer < inner:
                with wanted:
                    assert lockorder.held() == (outer, inner)
            else:
                with pytest.raises(LockOrderError, match=f"{inner.name}.*holds {outer.name}"):
                    wanted.acquire()
        assert lockorder.held() == ()


@pytest.mark.parametrize("timeout", [0, 0.01, lockorder.PATIENCE])
def test_who_gives_up_may_ask_in_any_order(tmp_path, timeout):
    with lock(tmp_path, Rank.LEDGER):
        out_of_order = lock(tmp_path, Rank.LIVE)
        assert out_of_order.acquire(timeout)
        assert lockorder.held() == (Rank.LEDGER, Rank.LIVE)
        out_of_order.release()


def test_a_long_wait_counts_as_one_for_ever(tmp_path):
    with lock(tmp_path, Rank.LEDGER), pytest.raises(LockOrderError):
        lock(tmp_path, Rank.STATE).acquire(timeout=lockorder.PATIENCE + 1)


def test_a_wait_that_was_refused_takes_nothing(tmp_path):
    inner = lock(tmp_path, Rank.STATE)
    with lock(tmp_path, Rank.LEDGER), pytest.raises(LockOrderError):
        inner.acquire()
    assert not locks.is_locked(tmp_path / "STATE-a")
    with inner:
        assert lockorder.held() == (Rank.STATE,)


def test_a_lock_that_is_held_already_is_not_waited_for(tmp_path):
    """It is given back when it was released as often as it was taken."""
    held = lock(tmp_path, Rank.OWNER)
    with held:
        with held:
            assert lockorder.held() == (Rank.OWNER,)
        assert locks.is_locked(tmp_path / "OWNER-a")
    assert not locks.is_locked(tmp_path / "OWNER-a")


def test_each_thread_has_an_order_of_its_own(tmp_path):
    came: list[bool] = []
    with lock(tmp_path, Rank.LEDGER):
        thread = threading.Thread(target=lambda: came.append(lock(tmp_path, Rank.LIVE).acquire()))
        thread.start()
        thread.join()
    assert came == [True]


def test_what_another_thread_gives_back_is_held_no_longer(tmp_path):
    held = lock(tmp_path, Rank.LEDGER)
    assert held.acquire()
    thread = threading.Thread(target=held.release)
    thread.start()
    thread.join()
    assert lockorder.held() == ()


def test_a_fork_holds_nothing_and_gives_nothing_back(tmp_path):
    """N12: its parent's lock stays its parent's, whatever the child does with the copy."""
    with lock(tmp_path, Rank.LEDGER) as held:

        def look() -> None:
            assert lockorder.held() == ()
            with lock(tmp_path, Rank.LIVE):
                held.release()

        assert ended(fork(look)) == 0
        assert locks.is_locked(tmp_path / "LEDGER-a")
        assert lockorder.held() == (Rank.LEDGER,)


def test_a_lock_that_was_forgotten_is_given_back(tmp_path):
    assert lock(tmp_path, Rank.OWNER).acquire()
    assert lockorder.held() == ()
    assert not locks.is_locked(tmp_path / "OWNER-a")


def test_who_waits_gets_it_when_it_is_free(tmp_path):
    """With and without an end to the wait."""
    path = tmp_path / "OWNER-a"
    for timeout in (-1, 30):
        released = tmp_path / "released"
        released.unlink(missing_ok=True)

        def hold(released=released) -> None:
            with lock(tmp_path, Rank.OWNER):
                until(released.exists)

        with child(hold):
            until(lambda: locks.is_locked(path), "the lock of the child")
            waiting = lock(tmp_path, Rank.OWNER)
            thread = threading.Timer(0.05, released.touch)
            thread.start()
            assert waiting.acquire(timeout)
            thread.join()
            waiting.release()


@pytest.mark.parametrize("gone", ["moved", "removed"])
def test_a_lock_on_a_file_that_is_no_longer_there_counts_for_nothing(tmp_path, gone):
    """N11: who was waiting for it takes the one that lies there now."""
    path, released = tmp_path / "OWNER-a", tmp_path / "released"

    def hold() -> None:
        with lock(tmp_path, Rank.OWNER):
            until(released.exists)

    with child(hold):
        until(lambda: locks.is_locked(path), "the lock of the child")
        waiting = lock(tmp_path, Rank.OWNER)

        def replace() -> None:
            path.rename(tmp_path / "elsewhere") if gone == "moved" else path.unlink()
            released.touch()

        thread = threading.Timer(0.1, replace)
        thread.start()
        assert waiting.acquire()
        thread.join()
        assert locks.is_locked(path)
        waiting.release()


def test_a_folder_that_is_not_there_is_not_made(tmp_path):
    """A lock must not bring back the box that was collected."""
    with pytest.raises(FileNotFoundError):
        locks.Lock(tmp_path / "gone" / "owner.lock", Rank.OWNER).acquire()
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("theirs", ["kernel", "package"])
def test_both_ways_of_locking_see_each_other(tmp_path, theirs):
    """Where Python has no `fcntl` the package does it; between the two nothing is different."""
    path = tmp_path / "lock"
    first, second = (locks._take_here, locks._take_elsewhere)[:: 1 if theirs == "kernel" else -1]
    give_back = first(path, 0)
    assert give_back
    assert second(path, 0) is None
    assert second(path, 0.05) is None
    assert locks.is_locked(path)
    give_back()
    assert path.stat().st_mode & 0o777 == 0o600
    again = second(path, 0)
    assert again
    again()


def test_no_lock_is_left_to_a_child(tmp_path):
    """N12: nothing in the supervisor forks without starting a program; but the guard, which holds no lock."""
    users = {path.name for path in (ROOT / "agents").rglob("*.py") if re.search(r"\bos\.fork\(", path.read_text())}
    assert users == {"guard.py"}
    with lock(tmp_path, Rank.OWNER):
        (handle,) = (
            each for each in Path("/proc/self/fd").iterdir() if each.exists() and each.samefile(tmp_path / "OWNER-a")
        )
        flags = re.search(r"^flags:\s+(\d+)$", Path(f"/proc/self/fdinfo/{handle.name}").read_text(), re.MULTILINE)
        assert flags
        assert int(flags[1], 8) & 0o2000000  # O_CLOEXEC


def test_the_page_says_the_same():
    """docs/architecture.md lists every lock, in its order."""
    rows = re.findall(r"^\| (\d+) \| `([A-Z]+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == [(str(rank.value), rank.name) for rank in Rank]
    assert all(one < other for one, other in pairwise(Rank))
