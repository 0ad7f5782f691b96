"""The benchmarks work: short form, table, JSON, arithmetic, material. What they measure is no business of a test."""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import ledger, naming, views
from agents.layout import Layout
from agents.model import RunState, Status
from agents.store import Store
from benchmarks.cases import CASES, FULL, QUICK, ROOT, Bench
from benchmarks.material import Material, finished_runs
from benchmarks.measure import BenchmarkError, Command, Cost, answer, paired, piped, rounds, run, spread
from benchmarks.suite import judge, table
from tests.support import needs

COLUMNS = 10


def suite(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "benchmarks" / "suite.py", *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=280)


def command(cwd: Path, *argv: str) -> Command:
    return Command(argv=argv, cwd=cwd, env={"PATH": os.environ["PATH"]})


# --- The program ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_short_form_measures_every_case(tmp_path):
    done = suite("--quick", "--cache", tmp_path / "cache", "--json", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert report["quick"] is True
    assert report["machine"]["cores"] == os.cpu_count()
    names = [row["name"] for row in report["rows"]]
    assert {name.partition(".")[0] for name in names} == set(CASES)
    assert len(names) == len(set(names))
    lines = done.stdout.splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == names
    assert {line.count("|") for line in lines} == {COLUMNS + 1}
    assert len({len(line) for line in lines}) == 1
    for row in report["rows"]:
        assert row["ratio"]["low"] <= row["ratio"]["median"] <= row["ratio"]["high"]
        assert row["rounds"] >= 1
        assert (row["target"] is None) == (row["verdict"] == "–")


def test_only_measures_one_case_and_the_launcher_of_the_suite_finds_its_python(tmp_path):
    done = subprocess.run(
        [ROOT / "benchmarks" / "run", "--quick", "--only", "run", "--cache", tmp_path / "c", "--json", tmp_path / "j"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=110, cwd=tmp_path,
        env=os.environ | {"AGENT_BOX_VENV": sys.prefix},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "j").read_text("utf-8"))["rows"]
    names = [row["name"] for row in rows]
    kinds = ["no-op", "reflex", "fix"]
    assert names[:4] == ["run.noise", *(f"run.{kind}" for kind in kinds)]
    walled = [*(f"run.{kind}-full" for kind in kinds), *(f"run.{kind}-wall" for kind in kinds)]
    # Both with and without the wall, on every machine that has one.
    assert names[4:] == ([] if needs.why_no_bwrap() else walled)
    # A run starts two processes at least, so it cannot be cheaper than they are.
    assert all(row["ratio"]["median"] > 1 for row in rows[1:] if not row["name"].endswith("-wall"))
    assert all(row["cpu_ms"] > 0 for row in rows)


@needs.needs_bwrap
def test_a_run_that_is_measured_behind_the_wall_has_one(tmp_path):
    """T147: the row's name is the truth: without a full sandbox there would be no figure at all."""
    bench = Bench(Material(tmp_path / "cache"), QUICK)
    candidates = bench.run().candidates
    for name, level in (("no-op", "none"), ("no-op walled", "full"), ("fix walled", "full")):
        candidates[name]()
        latest = bench._material.history(0) / ".agents" / "latest" / "state.json"
        assert json.loads(latest.read_text("utf-8"))["isolation"] == level
    # An airlock that stayed would be found by the next round.
    assert list((bench._material.history(0) / "agent_box" / "trees").iterdir()) == []


def test_an_unknown_case_is_refused(tmp_path):
    done = suite("--only", "nonsense", "--cache", tmp_path, "--json", tmp_path / "out.json")
    assert done.returncode == 2
    assert "nonsense" in done.stderr
    assert not (tmp_path / "out.json").exists()


def test_what_cannot_be_measured_is_said_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = suite("--quick", "--only", "run", "--cache", tmp_path / "file", "--json", tmp_path / "out.json")
    assert done.returncode == 4
    assert done.stderr.splitlines()[-1].startswith("benchmarks: ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize("name", [name for name in CASES if name not in {"stream", "scout"}])
def test_every_row_compares_candidates_that_are_there(name, tmp_path):
    case = CASES[name](Bench(Material(tmp_path), QUICK))
    used = {each for row in case.rows for each in (row.over, row.under, row.less) if each}
    assert used == set(case.candidates)
    assert [row.name for row in case.rows if row.name.endswith(".noise")] == [f"{name}.noise"]
    assert 1 <= case.least <= case.most


def test_the_full_form_has_the_sizes_that_were_promised():
    assert (FULL.runs, FULL.files) == (100_000, 50_000)
    assert FULL.huge == 100_000_000
    assert FULL.stream == 151_000_000


# --- Measuring --------------------------------------------------------------------------------------------------------


def test_cpu_and_wall_time_of_a_child_and_its_children_are_told_apart(tmp_path):
    busy = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
    nested = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {busy!r}])"
    assert run(command(tmp_path, sys.executable, "-c", nested)).cpu >= 0.2
    idle = run(command(tmp_path, "sleep", "0.2"))
    assert idle.wall >= 0.2
    assert idle.cpu < 0.1


def test_the_peak_is_that_of_the_largest_process(tmp_path):
    cost = run(command(tmp_path, sys.executable, "-c", "x = b'x' * 200_000_000"))
    assert cost.peak > 190_000


def test_a_command_runs_where_it_is_told_to_and_this_process_stays_where_it_is(tmp_path):
    before = Path.cwd()
    _, said = answer(command(tmp_path, "pwd"))
    assert said.decode().strip() == str(tmp_path)
    assert Path.cwd() == before


def test_a_command_sees_its_own_environment_alone(tmp_path):
    _, said = answer(command(tmp_path, "env"))
    assert [line.partition("=")[0] for line in said.decode().splitlines()] == ["PATH"]


def test_a_failure_is_not_taken_for_speed(tmp_path):
    with pytest.raises(BenchmarkError, match="ended with 3: so it is"):
        run(command(tmp_path, "sh", "-c", "echo so it is >&2; exit 3"))


def test_a_program_that_is_not_there_is_no_measurement(tmp_path):
    with pytest.raises(FileNotFoundError):
        run(command(tmp_path, "no-such-program"))


def test_a_pipe_is_the_consumers_cost_alone(tmp_path):
    busy = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\nprint('done')"
    cost = piped(command(tmp_path, sys.executable, "-c", busy), command(tmp_path, "cat"), tmp_path / "out")
    assert (tmp_path / "out").read_text() == "done\n"
    assert cost.wall >= 0.3
    assert cost.cpu < 0.2


def test_a_feeder_that_fails_is_noticed(tmp_path):
    with pytest.raises(BenchmarkError, match="false"):
        piped(command(tmp_path, "false"), command(tmp_path, "cat"), tmp_path / "out")


def test_every_round_measures_everything_once_in_an_order_of_its_own():
    order = []

    def work(name):
        return lambda: order.append(name) or Cost(1.0, 1.0)

    names = [str(number) for number in range(6)]
    samples = rounds(
        {name: work(name) for name in names}, least=4, most=9, steady=lambda _: True, chance=random.Random(1)
    )
    assert {name: len(costs) for name, costs in samples.items()} == dict.fromkeys(names, 4)
    passes = [order[start : start + 6] for start in range(0, len(order), 6)]
    assert len(passes) == 5, "one to warm up, four that count"
    assert all(sorted(each) == names for each in passes)
    assert len({tuple(each) for each in passes[1:]}) > 1


def test_rounds_go_on_until_the_ratios_are_steady_or_the_cap_is_reached():
    def count(steady):
        return len(rounds({"a": Cost}, least=3, most=7, steady=steady, chance=random.Random(1))["a"])

    assert count(lambda samples: len(samples["a"]) >= 5) == 5
    assert count(lambda _: False) == 7


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=30), st.floats(0.1, 10))
def test_a_disturbance_that_strikes_both_of_a_pair_cancels_out(disturbance, factor):
    ratio = paired([each * factor for each in disturbance], disturbance)
    assert ratio.low == pytest.approx(factor)
    assert ratio.high == pytest.approx(factor)


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=30))
def test_the_quartiles_enclose_the_median(values):
    found = spread(values)
    assert found.median == pytest.approx(statistics.median(values))
    assert found.low <= found.median <= found.high
    assert found.width >= 0


def test_a_floor_of_nothing_gives_no_ratio():
    with pytest.raises(BenchmarkError):
        paired([1.0, 2.0], [0.0, -1.0])


def test_costs_add_up_but_peaks_do_not():
    assert Cost(1, 2, 30) + Cost(10, 20, 3) == Cost(11, 22, 30)


@pytest.mark.parametrize(
    ("ratio", "target", "noise", "verdict"),
    [
        (5.0, None, 0.0, "–"),
        (1.0, 1.0, 0.0, "met"),
        (1.09, 1.0, 0.0, "near"),
        (1.11, 1.0, 0.0, "missed"),
        (1.11, 1.0, 0.2, "near"),
        (1.21, 1.0, 0.2, "missed"),
    ],
)
def test_a_target_is_met_or_missed_beyond_the_noise(ratio, target, noise, verdict):
    assert judge(ratio, target, noise) == verdict


def test_the_table_of_nothing_is_a_head():
    assert len(table([]).splitlines()) == 2


# --- Material ---------------------------------------------------------------------------------------------------------


def git(place: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=place, capture_output=True, text=True, check=True).stdout


def test_a_repository_is_the_same_every_time_clean_and_settled(tmp_path):
    first, second = (Material(tmp_path / name).repository(120) for name in "ab")
    assert git(first, "rev-parse", "HEAD") == git(second, "rev-parse", "HEAD")
    assert len(git(first, "ls-files").splitlines()) == 120
    assert len(git(first, "log", "--format=%H").splitlines()) > 10
    assert git(first, "--no-optional-locks", "status", "--porcelain") == ""
    newest = max(path.stat().st_mtime_ns for path in first.rglob("*.py"))
    assert (first / ".git" / "index").stat().st_mtime_ns - newest > 10**9, "git would read every file again"


def test_a_history_is_what_the_box_itself_would_read(tmp_path):
    here = Layout(Material(tmp_path).history(40))
    lines = here.ledger.read_bytes().splitlines()
    flaw, head, entries = ledger.check(lines)
    assert flaw is None
    assert head.seq == len(lines) == 80
    rows = views.fold(entries)
    assert len(rows) == 40
    assert {row["status"] for row in rows} == {"DONE"}
    store = Store(here)
    assert set(store.names()) == {row["run"] for row in rows}
    assert store.resolve("latest") == rows[0]["run"]
    for row in rows:
        assert store.resolve(row["id"]) == row["run"]
        assert store.load(row["run"]).status is Status.DONE
    assert store.active() == {}


def test_a_history_is_the_same_every_time(tmp_path):
    first, second = (Layout(Material(tmp_path / name).history(5)) for name in "ab")
    assert first.ledger.read_bytes() == second.ledger.read_bytes()
    assert git(first.root, "rev-parse", "HEAD") == git(second.root, "rev-parse", "HEAD")


def test_finished_runs_have_names_of_their_own_that_parse():
    runs = list(finished_runs(300))
    assert len({run.name for run in runs}) == len({run.short_id for run in runs}) == 300
    for each in runs:
        parsed = naming.parse(each.name)
        assert parsed is not None
        assert parsed.short_id == each.short_id
        assert RunState.from_json(each.state.to_json()) == each.state


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [("small", 115, 130), ("typical", 300, 600), ("wide", 2**20, 2**20), ("huge", 3_000_000, 3_000_000)],
)
def test_a_stream_has_lines_of_its_kind_and_ends_with_a_result(kind, low, high, tmp_path):
    stream = Material(tmp_path / "a").stream(kind, 3_000_000)
    data = stream.read_bytes()
    *lines, result = data.splitlines(keepends=True)
    assert low <= statistics.median(map(len, lines)) <= high
    assert 3_000_000 <= len(data) <= 3_000_000 + max(map(len, lines)) + len(result)
    assert json.loads(result)["type"] == "result"
    assert all("type" in json.loads(line) for line in lines)
    assert Material(tmp_path / "b").stream(kind, 3_000_000).read_bytes() == data


def test_material_is_built_once_and_never_half(tmp_path):
    material = Material(tmp_path / "cache")
    first = material.stream("small", 1000)
    stamp = first.stat().st_mtime_ns
    time.sleep(0.02)
    assert Material(tmp_path / "cache").stream("small", 1000) == first
    assert first.stat().st_mtime_ns == stamp
    with pytest.raises(KeyError):
        material.stream("nonsense", 1000)
    whole = [path for path in first.parent.iterdir() if not path.name.startswith(".")]
    assert whole == [first]
    assert material.stream("small", 1000) == first


def test_the_quick_sizes_are_a_small_part_of_the_full_ones():
    for name in ("stream", "huge", "runs", "files"):
        assert math.log10(getattr(FULL, name) / getattr(QUICK, name)) >= 1.5
