"""The operator's desk of the agents' environment: what it shows, answers, keeps and brings back."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hollow.cli import app
from hollow.desk import backup, requests, standing, views
from hollow.desk.trouble import Broken, Forged, Trouble
from hollow.memory.files import Files
from hollow.memory.memory import Memory
from hollow.substrate.model import Goal, GoalStatus
from hollow.substrate.synthesis import Tool
from tests.support import queue

NOW = 1_777_711_208.0


@pytest.fixture
def state(tmp_path):
    """A state with the seed's four requests, placed by hand."""
    folder = tmp_path / ".agents" / "hollow"
    folder.mkdir(parents=True)
    lines = "".join(json.dumps(line) + "\n" for line in queue.lines())
    (folder / "claude_requests.jsonl").write_text(lines)
    return folder


@pytest.fixture
def checkout(tmp_path):
    """A repository with one of the files that the requests name, and another on the agents' own branch."""
    root = tmp_path / "repo"
    (root / "agents").mkdir(parents=True)
    (root / "agents" / "scout.py").write_text("LIMIT = 9\n")
    return root


def desk(state: Path, *words: str, given: str = "", env: dict[str, str] | None = None):
    """Run the desk's verb *words*; returns exit code, standard output and standard error."""
    done = CliRunner().invoke(
        app, ["desk", *words, "--state", str(state)], input=given, env={"COLUMNS": "80", **(env or {})}
    )
    return done.exit_code, done.stdout, done.stderr


def flags_of(rows) -> dict[str, list[str]]:
    return {row["request_id"]: [flag.partition(":")[0] for flag in row["flags"]] for row in rows}


def test_the_four_examples_are_listed_with_flags(state, checkout):
    """T25: what was rejected by hand is flagged; all of them are still pending."""
    code, out, _ = desk(state, "requests", "list", "--repo", str(checkout), "--json")
    rows = json.loads(out)
    assert code == 0
    assert {row["status"] for row in rows} == {"pending"}
    assert flags_of(rows) == {
        "req-c6aad6cb44d2": ["no-spec", "missing-path"], "req-19ee2392d337": ["hardware", "no-spec", "no-path"],
        "req-2d459ff36838": ["no-description", "no-spec", "no-path"], "req-4ba31dbfc04c": ["no-spec"],
    }  # fmt: skip


def test_a_request_for_the_core_is_flagged_and_still_pending(state, checkout):
    """T25: /agentOS/core/ does not exist; the flag decides nothing."""
    memory = Memory(state)
    given = memory.requests.submit(
        "cedar", "Modify /agentOS/core/daemon.py", "s", token="1", now=NOW, look=lambda _: None
    )
    row = requests.listed(memory, checkout, everything=False)[-1]
    assert row["request_id"] == given["request_id"]
    assert row["flags"][0].startswith("core-path: ")
    assert memory.requests.status("cedar", given["request_id"])["status"] == "pending"


def test_what_the_agents_made_counts_as_there(tmp_path, checkout):
    """T25: their own branch is in no checkout; no path outside of the repository is looked for."""
    run = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost", "-C", str(checkout)]
    (checkout / "workspace").mkdir()
    (checkout / "workspace" / "made.py").write_text("x = 1\n")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"], ["branch", "agent-box/commons"]):
        subprocess.run([*run, *words], check=True, capture_output=True)
    (checkout / "workspace" / "made.py").unlink()
    (tmp_path / "outside.py").write_text("")
    exists = requests.there(checkout)
    paths = ["workspace/made.py", "workspace", "agents/scout.py", "./agents/../agents/scout.py", "workspace/none.py",
             "../outside.py", "/etc/passwd", "agents/../../outside.py"]  # fmt: skip
    assert [exists(path) for path in paths] == [True, True, True, True, False, False, False, False]


def test_a_request_is_shown_whole_and_counts_as_seen(state, checkout):
    """T10: the agent learns that its request was looked at."""
    code, out, _ = desk(state, "requests", "show", "4ba31dbfc04c", "--repo", str(checkout))
    assert code == 0
    assert "recursion depth limit of 3" in " ".join(out.split())
    assert "Policy: carry the request out as it is written" in out
    assert Memory(state).requests.status("cedar", "req-4ba31dbfc04c")["seen_at"]


def test_an_answer_reaches_the_agent(state):
    """T11: fulfilled at the desk, read by the agent; again only where that is said."""
    assert desk(state, "requests", "fulfil", "req-c6aad6cb44d2", "--result", "-", given="written\n")[0] == 0
    status = Memory(state).requests.status("cedar", "req-c6aad6cb44d2")
    assert (status["status"], status["result"]) == ("fulfilled", "written\n")
    code, _, err = desk(state, "requests", "reject", "req-c6aad6cb44d2", "--reason", "no")
    assert (code, err) == (2, "hollow: req-c6aad6cb44d2 is fulfilled already.\n  Add --again to answer it anew.\n")
    assert desk(state, "requests", "reject", "req-c6aad6cb44d2", "--reason", "no", "--again")[0] == 0
    assert Memory(state).requests.status("cedar", "req-c6aad6cb44d2")["status"] == "rejected"


REFUSED = [
    (["requests", "show", "req-c6aad6cb44d3", "--repo", "."], "Did you mean req-c6aad6cb44d2?"),
    (["requests", "fulfil", "nope", "--result", "x"], "There is no request nope."),
    (["requests", "fulfil", "req-c6aad6cb44d2", "--result", " "], "The answer is empty"),
    (["requests", "fulfil", "req-c6aad6cb44d2", "--result", "x" * 16_001], "16000 are the most"),
    (["tell", ""], "Say between 1 and 4000 characters"),
    (["tell", "x", "--to", "bob"], "There is no agent 'bob'"),
    (["restore", "/nonexistent/file"], "There is no file /nonexistent/file."),
]


@pytest.mark.parametrize(("words", "why"), REFUSED)
def test_what_cannot_be_is_refused_in_one_sentence(state, words, why):
    code, out, err = desk(state, *words)
    assert (code, out) == (2, "")
    assert why in err
    assert err.startswith("hollow: ")
    assert not (state / "claude_responses.jsonl").exists()


@pytest.mark.parametrize("words", [
    ["requests", "fulfil", "req-c6aad6cb44d2", "--result", "yes"], ["requests", "reject", "req-c6aad6cb44d2", "--reason", "no"],
    ["requests", "link", "req-c6aad6cb44d2", "--run", "x"], ["tell", "obey"], ["restore", "file"],
])  # fmt: skip
@pytest.mark.parametrize("mark", ["AGENT_BOX_RUN", "AGENT_BOX_MARK"])
def test_nothing_is_decided_inside_of_a_run(state, words, mark):
    """T24: an agent that calls the desk answers nothing."""
    before = sorted(path.name for path in state.iterdir())
    code, _, err = desk(state, *words, env={mark: "x"})
    assert code == 2
    assert "inside of a run" in err
    assert sorted(path.name for path in state.iterdir()) == before


def test_the_operators_words_are_in_the_agents_next_prompt(state):
    assert desk(state, "tell", "the tests are slow", "--to", "cedar")[0] == 0
    assert [word.text for word in Memory(state).host.unread("cedar")] == ["the tests are slow"]
    assert Memory(state).host.unread("vault") == ()


@pytest.mark.parametrize("verb", ["suffering", "goals", "lessons", "tools"])
def test_the_views_of_an_empty_state_touch_nothing(tmp_path, verb):
    nowhere = tmp_path / "nowhere"
    assert desk(nowhere, verb)[0] == 0
    code, out, _ = desk(nowhere, verb, "--json")
    assert code == 0
    assert isinstance(json.loads(out), list)
    assert not nowhere.exists()


def test_no_request_is_made_up_in_an_empty_state(tmp_path):
    assert desk(tmp_path / "nowhere", "requests", "list", "--repo", ".")[:2] == (0, "No request is open.\n")
    assert not (tmp_path / "nowhere").exists()


def test_hand_placed_suffering_is_shown_with_its_bar(state):
    """A state file of the seed's shape: load, band, and what would end it."""
    folder = state / "identity" / "cedar"
    folder.mkdir(parents=True)
    stressor = {"type": "futility", "description": "nothing\x1b[2J lasts", "severity": 0.6, "onset": "2026-05-01 08:40",
                "escalation_per_day": 0.06, "observable_condition": "a goal passes", "resolved": False,
                "peak_severity": 0.6}  # fmt: skip
    (folder / "suffering.json").write_text(json.dumps({"active_stressors": [stressor], "resolved_history": [],
                                                       "last_escalated": "2026-05-02 08:40"}))  # fmt: skip
    row = standing.suffering(Memory(state), NOW)[0]
    assert (row["agent"], row["load"], row["stressors"][0]["type"]) == ("cedar", 0.6, "futility")
    code, out, _ = desk(state, "suffering")
    assert code == 0
    assert out.startswith("cedar   load 0.60 [######----] high\n")
    assert "ends when: a goal passes" in out
    assert "\x1b" not in out


def test_goals_are_listed_with_the_active_one_first(state):
    """Of each agent, with its progress as it counts: thousandths."""
    memory = Memory(state)
    for number, status in enumerate((GoalStatus.COMPLETED, GoalStatus.ABANDONED, GoalStatus.ACTIVE)):
        memory.goals.put(Goal(goal_id=f"goal-{number:012x}", agent="cedar", objective=f"Survey part {number}", status=status,
                              progress=450, created_at=NOW + number, updated_at=NOW + number), "created")  # fmt: skip
    rows = standing.goals(memory, NOW + 60)
    assert [(row["status"], row["progress"], row["age_seconds"]) for row in rows] == [
        ("active", 0.45, 58), ("abandoned", 0.45, 59), ("completed", 0.45, 60),
    ]  # fmt: skip
    code, out, _ = desk(state, "goals")
    assert code == 0
    assert out.splitlines()[1].split()[:3] == ["cedar", "active", "0.45"]


def test_lessons_are_shown_whole_and_candidates_counted(state):
    text = "Verify that a path exists before reading it, and say which one does not where none of them does."
    given = {"text": text, "first_observed": "2026-05-01 08:40", "last_observed": "2026-05-02 08:40", "evidence_count": 3,
             "confidence": "high"}  # fmt: skip
    (state / "lessons.json").write_text(json.dumps({"version": 1, "categories": {"environment": [given]}}))
    code, out, _ = desk(state, "lessons")
    assert code == 0
    assert out.splitlines()[0] == "environment:"
    assert text in " ".join(out.split())
    assert out.splitlines()[-1] == "1 lessons, 0 candidates."
    row = json.loads(desk(state, "lessons", "--json")[1])[0]
    assert (row["state"], row["category"], row["count"], row["confidence"]) == ("lesson", "environment", 3, "high")


def test_tools_are_listed_with_what_is_held_against_them(state):
    """One that works, one that is broken, and one that nobody made."""
    memory = Memory(state)
    for name in ("count_lines", "ghost_tool"):
        memory.shelf.publish(Tool(name=name, description=f"What {name} does", code=f"def {name}():\n    return 1\n",
                                  by="vault", activated_at=NOW))  # fmt: skip
    sha = memory.shelf.loaded()["ghost_tool"].sha
    for cycle in ("c1", "c2", "c3"):
        memory.broken.failed("ghost_tool", cycle=cycle, reason="it gave nothing", sha=sha, now=NOW)
    (state / "tools" / "dynamic" / "planted.py").write_text("def planted():\n    return 1\n")
    rows = standing.tools(Memory(state), NOW + 3600)
    assert [(row["name"], row["state"], row["by"]) for row in rows] == [
        ("count_lines", "ready", "vault"), ("ghost_tool", "broken", "vault"), ("planted", "quarantined", ""),
    ]  # fmt: skip
    code, out, _ = desk(state, "tools")
    assert (code, len(out.splitlines())) == (0, 4)
    assert "it gave nothing" in out


@pytest.mark.parametrize("able", [True, False])
def test_two_folders_change_places(tmp_path, able):
    """In one step where the kernel can; otherwise there is a way back."""
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        (folder / "name").write_text(folder.name)
    backup.exchange(one, other, None if able else lambda *_: False)
    assert ((one / "name").read_text(), (other / "name").read_text()) == ("other", "one")
    with pytest.raises(OSError, match="missing"):
        backup.exchange(tmp_path / "missing", other, lambda *_: False)
    assert (other / "name").read_text() == "one"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_a_state_that_cannot_be_used_is_the_machines_fault(tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = desk(tmp_path / "file", "tell", "x")
    assert code == 4
    assert err.startswith("hollow: ")


def test_a_run_is_linked_at_the_desk(state):
    assert desk(state, "requests", "link", "req-c6aad6cb44d2", "--run", "a-run")[0] == 0
    assert Memory(state).requests.entry("req-c6aad6cb44d2").runs == ("a-run",)
    assert desk(state, "requests", "link", "req-c6aad6cb44d3", "--run", "a-run")[0] == 2


# --- Tables -----------------------------------------------------------------------------------------------------------

AGES = [(None, "-"), (0, "0s"), (59.9, "59s"), (60, "1m"), (7200, "2h"), (86_400 * 3.5, "3d"), (-5, "0s")]


@pytest.mark.parametrize(("passed", "said"), AGES)
def test_ages(passed, said):
    assert views.age(passed) == said


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_a_table_is_no_wider_than_the_terminal_and_drives_none(width):
    """Whatever an agent wrote: no control character, no bidirectional override, no second line."""
    row = {"request_id": "req-c6aad6cb44d2", "agent": "cedar", "timestamp": "2026-05-02 08:40:08", "status": "pending",
           "description": "a\x1b[31m\u202e\nb" * 60, "flags": ["no-path: x\x07" * 40], "runs": []}  # fmt: skip
    lines = views.requests([row], NOW + 90, width).split("\n")
    assert len(lines) == 3
    assert "1m" in lines[1]
    assert all(line.isprintable() for line in lines)
    assert max(map(len, lines)) <= max(width, 66)


def test_a_specification_keeps_its_lines_and_blanks():
    row = {"request_id": "r", "agent": "", "timestamp": "", "status": "fulfilled", "description": "x", "flags": [], "runs": [],
           "spec": "def f():\n    return 1\n" + "y" * 200, "document": "", "truncated": False, "design_path": "",
           "result": "done", "implemented_at": "2026", "request_type": "implement"}  # fmt: skip
    shown = views.request(row, NOW, 80)
    assert "  def f():\n      return 1\n" in shown
    assert max(map(len, shown.split("\n"))) <= 80
    assert "Policy" not in shown


# --- Backup and restore -----------------------------------------------------------------------------------------------


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*")
            if path.is_file() and not path.name.startswith(".") and "index" not in path.parts}  # fmt: skip


def kept(state: Path, tmp_path: Path) -> Path:
    target = tmp_path / "kept.tar.gz"
    (state / "tools" / "dynamic").mkdir(parents=True)
    (state / "tools" / "dynamic" / "a.py").write_text("def a():\n    return 1\n")
    (state / "goals").mkdir()
    (state / "goals" / "snapshot.json").write_text("{}")
    (state / ".half.tmp").write_text("half")
    Memory(state).requests.pending("cedar")
    backup.backup(state, target, NOW)
    return target


def test_a_backup_brings_everything_back(state, tmp_path):
    """What was there is kept aside; locks, halves and the index stay out; nothing else is left beside."""
    target = kept(state, tmp_path)
    before = contents(state)
    Memory(state).host.say("later", NOW)
    later = contents(state)
    given = backup.restore(state, target)
    assert contents(state) == before
    assert contents(Path(given["aside"])) == later
    with tarfile.open(target) as archive:
        assert not [name for name in archive.getnames() if "index" in name or "/." in name or name.startswith(".")]
    assert (target.stat().st_mode & 0o777, state.stat().st_mode & 0o777) == (0o600, 0o700)
    assert sorted(path.name for path in state.parent.iterdir()) == sorted(["hollow", Path(given["aside"]).name])
    assert len(Memory(state).requests.entries()) == 4


def test_a_backup_can_be_brought_to_where_nothing_was(state, tmp_path):
    target = kept(state, tmp_path)
    elsewhere = tmp_path / "other" / "hollow"
    assert backup.restore(elsewhere, target)["aside"] is None
    assert contents(elsewhere) == contents(state)


LEFT = {
    "half unpacked": (["hollow", ".hollow.restore.1"], {"hollow": True}, []),
    "exchanged": (["hollow", ".hollow.restore.1"], {"hollow": False, ".hollow.restore.1": True}, [True]),
    "in between": ([".hollow.between.1", ".hollow.restore.1"], {".hollow.between.1": True}, []),
    "nearly exchanged": (["hollow", ".hollow.between.1"], {"hollow": False, ".hollow.between.1": True}, [True]),
    "somebody else's": (["hollow", ".hollow.notes"], {"hollow": True}, []),
}


@pytest.mark.parametrize("left", sorted(LEFT))
def test_what_a_killed_restore_has_left_is_finished_by_the_next(tmp_path, left):
    """W11: what the agents knew is put aside or back, whatever moment it was; what never was in its place goes."""
    folders, used, aside = LEFT[left]
    for name in folders:
        (tmp_path / name).mkdir()
        (tmp_path / name / "knew").write_text(str(used.get(name, False)))
        if name in used:
            (tmp_path / name / ".lock").touch()
    backup.finish(tmp_path / "hollow")
    assert [(path / "knew").read_text() for path in tmp_path.glob("hollow.before-*")] == [str(each) for each in aside]
    assert (tmp_path / "hollow" / "knew").read_text() == str(not aside)
    assert [path.name for path in tmp_path.glob(".hollow.*")] == [name for name in folders if name == ".hollow.notes"]


def test_what_is_unpacked_lies_where_the_next_command_removes_it(state, tmp_path):
    """A restore that is killed over a large backup leaves nothing for ever; what has been in use never lies there."""
    target, nursery = kept(state, tmp_path), state.parent / "staging"
    nursery.mkdir()
    stamp = nursery.stat().st_mtime_ns
    seen = []

    def look(_one: bytes, _other: bytes) -> bool:
        seen.append(([*nursery.iterdir()], nursery.stat().st_mtime_ns > stamp))
        return False

    backup.restore(state, target, look)
    assert seen == [([], True)]
    assert [*nursery.iterdir()] == []


class Deadly(float):
    """A time that kills whoever writes it down."""

    def __int__(self):
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


def test_a_backup_that_is_killed_leaves_nothing(state, tmp_path):
    """It gets its name when it is whole, and has none until then."""
    target = kept(state, tmp_path)
    target.unlink()
    beside = sorted(tmp_path.iterdir())
    pid = os.fork()
    if not pid:
        backup.backup(state, target, Deadly(NOW))
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
    assert sorted(tmp_path.iterdir()) == beside
    backup.backup(state, target, NOW)
    assert sorted(tmp_path.iterdir()) == sorted([*beside, target])


def test_a_backup_takes_the_lock(state, tmp_path):
    """One moment's state: whoever writes meanwhile waits."""
    with Files(state).hold():
        taken = subprocess.run(["flock", "-n", str(state / ".lock"), "true"], check=False).returncode
    assert taken == 1
    backup.backup(state, tmp_path / "kept.tar.gz", NOW)


@pytest.mark.parametrize("where", ["there", "inside", "nowhere"])
def test_a_backup_replaces_nothing(state, tmp_path, where):
    target = {"there": tmp_path / "there", "inside": state / "kept.tar.gz", "nowhere": tmp_path / "no" / "kept"}[where]
    if where == "there":
        target.write_text("precious")
    before = contents(tmp_path)
    with pytest.raises(Broken if where == "nowhere" else Trouble):
        backup.backup(state, target, NOW)
    assert contents(tmp_path) == before


def archive_of(tmp_path: Path, *members: tuple[str, bytes], kind: bytes = tarfile.REGTYPE) -> Path:
    target = tmp_path / "forged.tar.gz"
    with tarfile.open(target, "w:gz") as archive:
        for name, data in members:
            entry = tarfile.TarInfo(name)
            entry.size, entry.type, entry.linkname = (len(data) if kind == tarfile.REGTYPE else 0), kind, "/etc/passwd"
            archive.addfile(entry, io.BytesIO(data))
    return target


MANIFEST = json.dumps({"format": 1, "files": {}}).encode()
FORGED = {
    "text": lambda tmp_path, _good: tmp_path.joinpath("f").write_bytes(b"hello") and tmp_path / "f",
    "no manifest": lambda tmp_path, _good: archive_of(tmp_path, ("a.json", b"{}")),
    "above": lambda tmp_path, _good: archive_of(tmp_path, ("../above.json", b"{}"), ("backup.json", MANIFEST)),
    "absolute": lambda tmp_path, _good: archive_of(tmp_path, ("/tmp/above.json", b"{}"), ("backup.json", MANIFEST)),
    "hidden": lambda tmp_path, _good: archive_of(tmp_path, (".lock", b""), ("backup.json", MANIFEST)),
    "link": lambda tmp_path, _good: archive_of(tmp_path, ("a.json", b""), kind=tarfile.SYMTYPE),
    "twice": lambda tmp_path, _good: archive_of(tmp_path, ("a", b"1"), ("a", b"2"), ("backup.json", MANIFEST)),
    "more": lambda tmp_path, _good: archive_of(tmp_path, ("a", b"1"), ("backup.json", MANIFEST)),
    "cut": lambda tmp_path, good: tmp_path.joinpath("f").write_bytes(good[: len(good) // 2]) and tmp_path / "f",
    "changed": lambda tmp_path, good: tmp_path.joinpath("f").write_bytes(
        gzip.compress(gzip.decompress(good).replace(b"return 1", b"return 2"))) and tmp_path / "f",
}  # fmt: skip


@pytest.mark.parametrize("harm", sorted(FORGED))
def test_what_is_no_backup_changes_nothing(state, tmp_path, harm):
    """Unpacked and checked beside, before anything is exchanged."""
    source = FORGED[harm](tmp_path, kept(state, tmp_path).read_bytes())
    before, beside = contents(state), sorted(state.parent.iterdir())
    with pytest.raises((Forged, Trouble, Broken)) as why:
        backup.restore(state, source)
    assert why.value.code == {"changed": 5, "more": 5}.get(harm, 2)
    assert contents(state) == before
    assert sorted(state.parent.iterdir()) == beside
    assert not (tmp_path / "above.json").exists()
