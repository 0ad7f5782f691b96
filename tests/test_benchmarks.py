"""The benchmarks work: short form, table, JSON, arithmetic, material. What they measure is no business of a test."""

from __future__ import annotations

import json
import math
import os
import random
import re
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
from benchmarks import installing, suite
from benchmarks.bench import FULL, QUICK, ROOT, Bench, Case, Row, Shared
from benchmarks.drivers import minds, mini
from benchmarks.installing import NotInstalledError, Peer
from benchmarks.material import Material, finished_runs
from benchmarks.measure import BenchmarkError, Command, Cost, Spread, answer, paired, piped, rounds, run, spread
from benchmarks.peers import peers
from benchmarks.results import BEGIN, END, HEAD, Result, beside, document, judge, load, measure, save, session, table
from benchmarks.running import run as run_case
from tests.support import needs

PAGE = ROOT / "docs" / "performance.md"
SPREAD = Spread(2.0, 1.5, 2.5)
RESULT = Result(name="a.b", what="a", floor="b", by="cpu", ratio=SPREAD, cpu_ms=1.0, wall_ms=2.0, verdict="–")
FACTS = {"quick": False, "began": 1_750_000_000.0, "took": 600.0}


def program(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "benchmarks" / "suite.py", *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=280)


def command(cwd: Path, *argv: str) -> Command:
    return Command(argv=argv, cwd=cwd, env={"PATH": os.environ["PATH"]})


# --- The program ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_short_form_measures_every_case_by_the_launcher(tmp_path):
    done = subprocess.run(
        [ROOT / "benchmarks" / "run", "--quick", "--cache", tmp_path / "cache", "--json", tmp_path / "out.json"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=580, cwd=tmp_path,
        env=os.environ | {"AGENT_BOX_VENV": sys.prefix},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows, facts = load(tmp_path / "out.json")
    assert facts["quick"] is True
    assert facts["machine"]["cores"] == os.cpu_count()
    names = [row.name for row in rows]
    assert {name.partition(".")[0] for name in names} == suite.CASES.keys() - suite.OPTIONAL
    assert len(names) == len(set(names))
    lines = done.stdout.splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == names
    assert {line.count("|") for line in lines} == {len(HEAD) + 1}
    assert len({len(line) for line in lines}) == 1
    for row in rows:
        assert row.ratio.low <= row.ratio.median <= row.ratio.high
        assert row.rounds == 1
        assert (row.target is None) == (row.verdict == "–")
    # Both with and without the wall, on every machine that has one.
    walled = [name for name in names if name.endswith(("-full", "-wall")) and name.startswith("run.")]
    assert len(walled) == (0 if needs.why_no_bwrap() else 6)
    by_name = {row.name: row for row in rows}
    # A run starts two processes at least, so it cannot be cheaper than they are; several set-ups at once all succeed.
    assert all(by_name[f"run.{kind}"].ratio.median > 1 for kind in ("no-op", "reflex", "fix"))
    assert by_name["airlock.failures"].ratio.median == 0
    # What the documentation shows are the rows that there are.
    shown = {line.split("|")[1].strip() for line in _figures().splitlines() if line.startswith("|")} - {HEAD[0]}
    assert {name for name in names if name not in walled} <= shown


def _figures():
    return PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]


def test_the_documentation_says_of_every_target_that_is_missed_why():
    cells = [[cell.strip() for cell in line.split("|")] for line in _figures().splitlines() if line.startswith("| ")]
    assert len(cells) > 50
    missed = {each[1] for each in cells if each[HEAD.index("verdict") + 1] in {"missed", "worse"}}
    section = PAGE.read_text("utf-8").partition("## Targets that are missed")[2].partition("\n## ")[0]
    assert missed <= set(re.findall(r"`([a-z]+\.[a-z0-9-]+)`", section))


@needs.needs_bwrap
def test_a_run_that_is_measured_behind_the_wall_has_one(tmp_path):
    """T147: the row's name is the truth: without a full sandbox there would be no figure at all."""
    material = Material(tmp_path / "cache")
    candidates = run_case(Bench(material, QUICK)).candidates
    for name, level in (("no-op", "none"), ("fix walled", "full")):
        candidates[name]()
        latest = material.history(0) / ".agents" / "latest" / "state.json"
        assert json.loads(latest.read_text("utf-8"))["isolation"] == level
    # An airlock that stayed would be found by the next round.
    assert list((material.history(0) / "agent_box" / "trees").iterdir()) == []


def test_only_and_peers_say_which_cases_are_measured():
    def named(*words):
        return suite.cases(suite.arguments(words))

    assert named() == [name for name in suite.CASES if name != "peers"]
    assert named("--peers") == list(suite.CASES)
    assert named("--only", "stream", "--only", "run") == ["run", "stream"]
    assert named("--only", "run", "--peers") == ["run", "peers"]
    assert named("--only", "peers") == ["peers"]


def test_an_unknown_case_is_refused(tmp_path):
    done = program("--only", "nonsense", "--cache", tmp_path, "--json", tmp_path / "out.json")
    assert done.returncode == 2
    assert "nonsense" in done.stderr
    assert not (tmp_path / "out.json").exists()


def test_what_cannot_be_measured_is_said_and_the_rest_is_kept(tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = program("--quick", "--only", "run", "--cache", tmp_path / "file", "--json", tmp_path / "out.json")
    assert done.returncode == 4
    assert done.stderr.splitlines()[-1].startswith("benchmarks: run: ")
    assert "Traceback" not in done.stderr
    assert load(tmp_path / "out.json")[0] == []


@pytest.mark.parametrize("name", ["start", "run", "pace", "history"])
def test_every_row_compares_candidates_that_are_there(name, tmp_path):
    case = suite.CASES[name](Bench(Material(tmp_path), QUICK))
    used = {each for row in case.rows for each in (row.over, row.under, row.less) if each}
    assert used == set(case.candidates)
    assert [row.name for row in case.rows if row.name.endswith(".noise")] == [f"{name}.noise"]
    assert 1 <= case.least <= case.most


def test_the_full_form_has_the_sizes_that_were_promised():
    assert (FULL.runs, FULL.files, FULL.tree, FULL.memory) == (100_000, 50_000, 10_000, 10_000)
    assert (FULL.huge, FULL.stream) == (100_000_000, 151_000_000)
    assert (FULL.several, FULL.parallel, FULL.steps) == (16, 30, 500)


# --- Rows -------------------------------------------------------------------------------------------------------------


def case(candidates, *rows, **more):
    return Case(candidates=candidates, rows=rows, least=2, most=2, **more)


def row(name, over, under, **more):
    return Row(name=name, what="w", floor="f", over=over, under=under, **more)


NOISE = row("c.noise", "one", "one")
ONE, TWO = (lambda: Cost(1.0, 1.0, 0, 1.0)), (lambda: Cost(4.0, 2.0, 0, 3.0))


def test_a_row_compares_what_it_says_and_takes_off_what_is_not_meant():
    rows = (
        row("c.cpu", "two", "one"),
        row("c.wall", "two", "one", by="wall"),
        row("c.count", "two", "one", by="count"),
    )
    found = measure(
        case({"one": ONE, "two": TWO}, NOISE, *rows, row("c.less", "two", "one", less="one")), random.Random(1)
    )
    assert [each.ratio.median for each in found] == [1.0, 2.0, 4.0, 3.0, 1.0]
    assert found[1].wall_ratio.median == 4.0
    assert (found[1].cpu_ms, found[1].wall_ms, found[3].cpu_ms) == (2000, 4000, None)


def test_something_that_costs_less_than_nothing_costs_nothing():
    found = measure(
        case({"one": ONE, "two": TWO}, NOISE, row("c.less", "one", "two", less="two", target=0.0)), random.Random(1)
    )
    assert (found[1].ratio.median, found[1].verdict) == (0.0, "met")


def test_a_candidate_that_fails_costs_the_rows_that_need_it_and_no_others():
    def broken():
        raise BenchmarkError("no luck")

    lost, kept = row("c.lost", "broken", "one", target=1.0), row("c.kept", "two", "one")
    found = measure(case({"one": ONE, "broken": broken, "two": TWO}, NOISE, lost, kept), random.Random(1))
    assert [each.verdict for each in found] == ["–", "failed: no luck", "–"]
    assert found[1].ratio is None
    assert "failed: no luck" in table(found)


def test_one_execution_answers_for_its_parts_once_each():
    done = []

    def work():
        done.append(None)
        return {"a": Cost(1.0), "b": Cost(float(len(done)))}

    shared = Shared(work)
    first, second = shared.piece("a"), shared.piece("b")
    assert [second().wall, first().wall, first().wall, second().wall] == [1.0, 1.0, 1.0, 2.0]
    assert len(done) == 2


@pytest.mark.parametrize(
    ("ratio", "noise", "verdict"),
    [(0.5, 0.0, "better"), (0.95, 0.0, "equal"), (1.05, 0.0, "equal"), (1.2, 0.0, "worse"), (1.2, 0.3, "equal")],
)
def test_beside_a_peer_there_is_better_and_worse_beyond_the_noise(ratio, noise, verdict):
    assert beside(ratio, noise) == verdict


def test_results_are_read_back_as_they_were_written(tmp_path):
    rows = [RESULT, Result(name="c", what="w", floor="f", by="cpu", ratio=None, verdict="absent: why")]
    here = tmp_path / "here"
    here.mkdir()
    save(here / "r.json", rows, **FACTS)
    found, facts = load(here / "r.json")
    assert found == rows
    assert {name: facts[name] for name in FACTS} == FACTS
    assert [path.name for path in here.iterdir()] == ["r.json"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rows": [{"name": "x"}]}'])
def test_a_file_without_results_is_refused(text, tmp_path):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(BenchmarkError, match="holds no results"):
        load(tmp_path / "r.json")


def test_the_figures_get_into_the_page_and_nothing_else_of_it_changes(tmp_path):
    page, results = tmp_path / "page.md", tmp_path / "r.json"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    save(results, [RESULT], **FACTS)
    assert suite.main(["--docs", str(page), "--json", str(results)]) == 0
    facts = load(results)[1]
    assert page.read_text() == f"before\n{BEGIN}\n\n{session(facts)}\n\n{table([RESULT])}\n\n{END}\nafter\n"
    page.write_text("no place")
    with pytest.raises(BenchmarkError, match="no place for the figures"):
        document(page, [RESULT], facts)


# --- Peers ------------------------------------------------------------------------------------------------------------


def test_every_peer_is_pinned_and_comes_from_a_registry():
    known = installing.peers()
    assert {"sandcastle", "mini-swe-agent", "cli-agent-orchestrator"} <= known.keys()
    for name, each in known.items():
        assert each.name == name
        assert each.source in {"npm", "pypi"}
        assert each.version[0].isdigit()


def test_a_peer_that_is_not_to_be_had_is_a_row_that_says_why(tmp_path, monkeypatch):
    table_ = tmp_path / "peers.json"
    wanted = {"name": "mini-swe-agent", "from": "pypi", "package": "no-such-package-of-ours", "version": "0"}
    table_.write_text(json.dumps([wanted]))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    found = peers(Bench(Material(tmp_path / "cache"), QUICK), table_)
    absent = {each.name: each.why for each in found.absent}
    assert all("could not be installed" in absent[name] for name in ("peers.start-mini-swe-agent", "peers.step-mini-6"))
    # Only what is in the table is looked for; what cannot be driven is said whatever there is.
    assert "peers.start-llm" not in absent
    assert "server" in absent["peers.session-cao"]
    assert [each.name for each in found.rows] == ["peers.noise"]


def test_an_installation_is_done_once_and_begun_anew_after_an_interruption(tmp_path, monkeypatch):
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    npm = bin_ / "npm"
    npm.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/said\nmkdir -p "$3/node_modules"\n')
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(bin_), prepend=os.pathsep)
    peer = Peer(name="p", source="npm", package="@own/p", version="1.2")
    left = tmp_path / "cache" / "p-1.2" / "half"
    left.mkdir(parents=True)
    place = installing.install(peer, tmp_path / "cache")
    assert not left.exists()
    assert (place / "node_modules").is_dir()
    assert installing.install(peer, tmp_path / "cache") == place
    said = (tmp_path / "said").read_text().splitlines()
    assert len(said) == 1
    assert {"--ignore-scripts", "@own/p@1.2", str(place)} <= set(said[0].split())
    npm.write_text("#!/bin/sh\necho 'npm error no such thing' >&2\nexit 1\n")
    with pytest.raises(NotInstalledError, match="npm error no such thing"):
        installing.install(Peer(name="q", source="npm", package="q", version="1"), tmp_path / "cache")


@pytest.mark.parametrize("parts", [minds.parts, mini.parts])
def test_the_cost_of_a_step_is_told_early_late_and_on_average(parts):
    marks = [(0.0, 0.0)]
    for step in range(1, 41):
        marks.append((marks[-1][0] + 2.0, marks[-1][1] + (1.0 if step <= 20 else 3.0)))
    found = parts(marks)
    assert [found[name]["cpu"] for name in ("early", "late", "all")] == [1.0, 3.0, 2.0]
    assert {each["wall"] for each in found.values()} == {2.0}


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


def test_without_a_warm_up_every_execution_counts():
    order = []
    work = {"a": lambda: order.append("a") or Cost(1.0)}
    found = rounds(work, least=1, most=1, steady=lambda _: True, chance=random.Random(1), warm=False)
    assert (len(order), len(found["a"])) == (1, 1)


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
    first, second = (Layout(Material(tmp_path / name).boxes(5)) for name in "ab")
    assert first.ledger.read_bytes() == second.ledger.read_bytes()
    # With its evidence a history is one that `agent verify` accepts.
    assert len(list(first.runs.glob("*/raw/stream.jsonl"))) == 5
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
