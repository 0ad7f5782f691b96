"""Run names: what they look like, that they parse back, and which run a typed target means."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.errors import HostError, OperatorError
from agents.naming import RunName, parse, resolve, run_name, short_ids, slugify

MINUTE = datetime(2025, 11, 22, 14, 30, tzinfo=UTC).timestamp()
AT = MINUTE + 59
TOKEN = "a1b2c3d4e5f60718293a4b5c6d7e8f90"

slugs = st.from_regex(r"[a-z0-9]{1,9}(-[a-z0-9]{1,9}){0,3}", fullmatch=True)
ids = st.from_regex(r"[0-9a-f]{4,12}", fullmatch=True)
times = st.integers(*(int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (2000, 2099)))


@pytest.mark.parametrize(
    ("task", "slug"),
    [
        ("Optimize auth middleware!", "optimize-auth-middleware"),
        ("  why is  db latency high?\n", "why-is-db-latency-high"),
        ("don't break O’Reilly's build", "dont-break-oreillys-build"),
        ("Größe über alles — naïve café", "grosse-uber-alles-naive-cafe"),
        ("Œuvre, Łódź, smørrebrød", "oeuvre-lodz-smorrebrod"),
        ("№5 ™ ﬁx", "no5-tm-fix"),
        ("日本語 🎉 !!!", "task"),
        ("", "task"),
        ("../../etc/passwd", "etc-passwd"),
        ("--help", "help"),
        ("a\x00b\x1b[31mc", "a-b-31mc"),
        ("why is the database latency so high in production", "why-is-the-database-latency-so-high-in"),
        ("x" * 60, "x" * 40),
        ("a " + "x" * 60, "a-" + "x" * 38),
        ("one two three four five six seven eight-n", "one-two-three-four-five-six-seven-eight"),
    ],
)
def test_a_slug_is_the_task_in_plain_letters(task: str, slug: str) -> None:
    assert slugify(task) == slug


def test_a_slug_can_be_shorter() -> None:
    assert slugify("optimize auth middleware", 10) == "optimize"
    assert slugify("!!!", 3) == "tas"


def test_a_task_of_a_megabyte_is_no_work() -> None:
    assert slugify("ﷺ" * 1_000_000) == "task"
    assert slugify("word " * 200_000) == "word-word-word-word-word-word-word-word"


@given(st.text(max_size=200) | st.text("aZ0 -_'é", max_size=120), st.integers(4, 40))
def test_every_slug_is_safe_as_a_file_name(task: str, limit: int) -> None:
    slug = slugify(task, limit)
    assert re.fullmatch(r"[a-z0-9-]{1,40}", slug)
    assert len(slug) <= limit
    assert slug.strip("-") == slug
    assert "--" not in slug
    assert slugify(slug, limit) == slug


def test_a_run_name_has_time_slug_and_hash() -> None:
    """T117: the name of `fix "Optimize auth middleware!"` at a fixed time."""
    name = run_name(AT, slugify("Optimize auth middleware!"), "a1b2")
    assert name == "25-11-22_1430__optimize-auth-middleware__a1b2"
    assert re.fullmatch(r"\d\d-\d\d-\d\d_\d{4}__[a-z0-9-]+__[0-9a-f]{4,}", name)


def test_a_run_name_is_in_utc() -> None:
    assert run_name(datetime(2024, 12, 31, 23, 5, tzinfo=UTC).timestamp(), "x", "abcd").startswith("24-12-31_2305__")


@pytest.mark.parametrize(
    ("slug", "short_id"),
    [("", "a1b2"), ("a--b", "a1b2"), ("x" * 41, "a1b2"), ("a/b", "a1b2"), ("a", "a1"), ("a", "A1B2"), ("a\n", "a1b2")],
)
def test_parts_that_would_not_parse_back_are_refused(slug: str, short_id: str) -> None:
    with pytest.raises(ValueError, match="do not make a run name"):
        run_name(AT, slug, short_id)


@pytest.mark.parametrize("year", [1970, 2100])
def test_a_clock_outside_the_century_is_the_machines_fault(year: int) -> None:
    with pytest.raises(HostError, match=str(year)):
        run_name(datetime(year, 6, 1, tzinfo=UTC).timestamp(), "x", "a1b2")


@given(times, slugs, ids)
def test_a_name_parses_back(started: float, slug: str, short_id: str) -> None:
    name = run_name(started, slug, short_id)
    assert parse(name) == RunName(name, started // 60 * 60, slug, short_id)


@given(times, times, slugs, slugs)
def test_names_sort_as_start_times(one: float, other: float, slug: str, other_slug: str) -> None:
    """T118: sorting names sorts runs by the minute of their start."""
    first, second = sorted((one, other))
    if second - first >= 60:
        assert run_name(first, slug, "ffff") < run_name(second, other_slug, "0000")


def test_the_long_year_of_the_seeds_examples_is_read_too() -> None:
    found = parse("2025-11-22_1430__fix-auth__a1b2")
    assert found == RunName("2025-11-22_1430__fix-auth__a1b2", MINUTE, "fix-auth", "a1b2")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "latest",
        "25-11-22_1430__fix-auth__a1b2\n",
        "25-11-22_1430__fix-auth__a1b2/",
        "../25-11-22_1430__fix-auth__a1b2",
        "25-11-22_1430__fix.auth__a1b2",
        "25-11-22_1430__fix/auth__a1b2",
        "25-11-22_1430__fix--auth__a1b2",
        "25-11-22_1430__-fix__a1b2",
        "25-11-22_1430__fix_auth__a1b2",
        "25-11-22_1430__" + "x" * 41 + "__a1b2",
        "25-11-22_1430__fix__A1B2",
        "25-11-22_1430__fix__a1b",
        "25-11-22_1430__fix__" + "a" * 65,
        "25-13-22_1430__fix__a1b2",
        "25-02-30_1430__fix__a1b2",
        "25-11-22_2460__fix__a1b2",
        "125-11-22_1430__fix__a1b2",
        "0000-11-22_1430__fix__a1b2",
        "٢٥-11-22_1430__fix__a1b2",
        ".new-25-11-22_1430__fix__a1b2",
    ],
)
def test_anything_else_is_no_run_name(name: str) -> None:
    assert parse(name) is None


def test_short_ids_start_short_and_end_with_the_whole_token() -> None:
    candidates = list(short_ids(TOKEN))
    assert [len(one) for one in candidates] == [4, 4, 5, 6, 8, 12, 16, 32]
    assert candidates[0] == TOKEN[:4]
    assert candidates[-1] == TOKEN


@given(st.text("01", min_size=32, max_size=64))
def test_short_ids_never_repeat_and_are_valid(token: str) -> None:
    candidates = list(short_ids(token))
    assert len(set(candidates)) == len(candidates)
    assert [len(one) for one in candidates] == sorted(len(one) for one in candidates)
    assert all(parse(run_name(AT, "x", one)) for one in candidates)


def test_equal_tokens_still_give_twenty_runs_a_minute_their_own_id() -> None:
    """T119: with distinct tokens that all begin alike, twenty starts of the same task get twenty names."""
    taken: set[str] = set()
    for number in range(20):
        taken.add(next(one for one in short_ids("a1b2" * 7 + f"{number:04x}") if one not in taken))
    assert len({run_name(AT, "same-task", one) for one in taken}) == 20


@pytest.mark.parametrize("token", ["", "a1b2", TOKEN.upper(), TOKEN[:-1] + "g", TOKEN + "\n", "0" * 65])
def test_a_token_must_be_random_hex(token: str) -> None:
    with pytest.raises(ValueError, match="hex"):
        list(short_ids(token))


FIX = "25-11-22_1430__fix-auth__a1b2"
SCOUT = "25-11-22_1431__scout-auth__a1c3"
OLD = "2025-01-01_0000__old-form__beef"
LONG = "25-11-23_0900__again__a1b2c"
NAMES = (FIX, SCOUT, OLD, LONG, ".DS_Store", "a1zz", "25-11-22_9999__x__dead")
POINTERS = {"latest": SCOUT, "last-fail": FIX, "last-review": "25-11-22_1430__gone__ffff", "beef": FIX}


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("latest", SCOUT),
        ("last-fail", FIX),
        (FIX, FIX),
        (OLD, OLD),
        ("a1b2", FIX),
        ("a1b2c", LONG),
        ("a1c", SCOUT),
        ("25-11-22_1431", SCOUT),
        ("2025", OLD),
        ("25-11-23", LONG),
    ],
)
def test_a_target_is_a_pointer_a_name_an_id_or_a_unique_prefix(target: str, name: str) -> None:
    """T146: `latest`, full name, short id, unique prefix all resolve; an exact id beats a longer one."""
    assert resolve(target, iter(NAMES), POINTERS) == name


def test_a_pointer_beats_a_short_id() -> None:
    assert resolve("beef", NAMES, POINTERS) == FIX
    assert resolve("beef", NAMES, {}) == OLD


def test_latest_without_a_pointer_is_the_newest_name() -> None:
    assert resolve("latest", NAMES, {}) == LONG
    assert resolve("latest", (FIX, OLD), {}) == FIX


def test_no_run_yet() -> None:
    with pytest.raises(OperatorError, match="no run yet") as caught:
        resolve("latest", (".DS_Store",), {})
    assert "./agent scout" in caught.value.hint


@pytest.mark.parametrize(
    "target", ["ffff", "fix-auth", "a1zz", "dead", "25-11-22_9999__x__dead", "LATEST", "last-pass"]
)
def test_an_unknown_run_is_said_so(target: str) -> None:
    with pytest.raises(OperatorError, match="There is no run") as caught:
        resolve(target, NAMES, POINTERS)
    assert target[:10] in caught.value.message
    assert "./agent list" in caught.value.hint


@pytest.mark.parametrize("pointer", ["last-review", "evil", "empty"])
def test_a_pointer_to_nothing_leads_nowhere(pointer: str) -> None:
    pointers = {**POINTERS, "evil": "../../x", "empty": ""}
    with pytest.raises(OperatorError, match=f"`{pointer}` points to a run that is gone"):
        resolve(pointer, (*NAMES, "../../x", ""), pointers)


def test_an_ambiguous_target_lists_some_of_what_it_fits() -> None:
    """T146: ambiguous -> error."""
    names = [f"25-11-22_1430__same__abcd{number:02d}" for number in range(7)]
    with pytest.raises(OperatorError, match="'abcd' fits 7 runs") as caught:
        resolve("abcd", names, {})
    assert [name for name in names if name in caught.value.message] == names[:5]
    assert caught.value.message.endswith(", ….")
    with pytest.raises(OperatorError, match=r"fits 2 runs: \S+__abcd00, \S+__abcd01\.$"):
        resolve("abc", names[:2], {})


@pytest.mark.parametrize(
    "target", ["", " ", "../../x", "latest/../..", "a1b2\n", "a\x1b[31m", "\ud800", "*", "-rf", "x" * 10_000]
)
def test_odd_input_is_refused_and_shown_escaped(target: str) -> None:
    with pytest.raises(OperatorError, match="cannot be the name of a run") as caught:
        resolve(target, NAMES, {target: FIX})
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 100
    assert caught.value.code == 2


@settings(max_examples=60)
@given(
    st.text(max_size=12) | st.sampled_from(NAMES) | st.text("0123456789abcdef-_", max_size=8),
    st.lists(st.sampled_from(NAMES) | st.text(max_size=20)),
    st.dictionaries(st.text(max_size=6) | st.just("latest"), st.sampled_from(NAMES) | st.text(max_size=9), max_size=3),
)
def test_resolving_gives_a_known_run_or_the_operators_error(
    target: str, names: list[str], pointers: dict[str, str]
) -> None:
    try:
        found = resolve(target, names, pointers)
        helpful = found in names and parse(found) is not None
    except OperatorError as error:
        helpful = bool(error.hint)
    assert helpful


@given(
    st.lists(st.builds(run_name, times, slugs, ids), min_size=1, max_size=6, unique_by=lambda name: name[-4:]),
    st.data(),
)
def test_a_unique_prefix_finds_its_run(names: list[str], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(names))
    length = data.draw(st.integers(1, len(name)))
    rivals = [
        other
        for other in names
        if other.startswith(name[:length]) or other.rpartition("__")[2].startswith(name[:length])
    ]
    if rivals == [name]:
        assert resolve(name[:length], names, {}) == name
