"""Durations and sizes: what is read, what is refused, and that writing and reading agree."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import OperatorError
from agents.units import LARGEST, LONGEST_S, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5m", 300),
        ("90s", 90),
        ("1h30m", 5400),
        ("1 h 30 m", 5400),
        (" 250ms ", 0.25),
        ("2d", 172_800),
        ("2w", 1_209_600),
        ("1d2h3m4s5ms", 93_784.005),
        ("1.5h", 5400),
        ("12", 12),
        ("0.5", 0.5),
        ("0", 0),
        (300, 300),
        (0.25, 0.25),
        (1e-7, 1e-7),
        (2.0, 2),
        ("3650d", LONGEST_S),
    ],
)
def test_a_duration_is_read_in_seconds(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


BAD_DURATIONS = [
    "", " ", "m", "5x", "5 minutes", "-5m", "-1", "+5", "nan", "inf", "1e3", "5,5s", "5m5m", "30m1h", "5ms1s", ".5s", "5.s", "٣s",
    "5m\x00", "1w" + " " * 60 + "x", "9" * 10_000, "1" * 30, -1, -0.5, math.nan, math.inf, -math.inf, True, 10**5000, "3651d", LONGEST_S + 1, 10**15,
]  # fmt: skip


@pytest.mark.parametrize("text", BAD_DURATIONS, ids=range(len(BAD_DURATIONS)))
def test_what_is_no_duration_is_the_operators_error(text: str | float) -> None:
    with pytest.raises(OperatorError, match=r"is not a duration|longer than ten years") as caught:
        parse_duration(text)
    assert "1h30m" in caught.value.hint
    assert len(caught.value.message) < 80
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GiB", 2 * 1024**3),
        ("512KiB", 512 * 1024),
        ("10MB", 10_000_000),
        ("1024", 1024),
        ("7 B", 7),
        ("1.5 mib", 1_572_864),
        ("3tb", 3 * 10**12),
        ("1TiB", 1024**4),
        ("0", 0),
        (4096, 4096),
        (2048.0, 2048),
        (LARGEST, LARGEST),
        (str(2**53 + 1), 2**53 + 1),
    ],
)
def test_a_size_is_read_in_bytes(text: str | float, size: int) -> None:
    assert parse_size(text) == size
    assert isinstance(parse_size(text), int)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "B",
        "2G",
        "2Gi",
        "2XB",
        "-1",
        "-1KiB",
        "1e6",
        "nan",
        "2GiB ram",
        math.inf,
        True,
        -5,
        10**5000,
        LARGEST + 1,
        "9999999TiB",
    ],
    ids=range(16),
)
def test_what_is_no_size_is_the_operators_error(text: str | float) -> None:
    with pytest.raises(OperatorError, match=r"is not a size|larger than a file") as caught:
        parse_size(text)
    assert "2GiB" in caught.value.hint


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1_048_524, "1023.9 KiB"),
        (1_048_575, "1.0 MiB"),
        (1_500_000, "1.4 MiB"),
        (2 * 1024**3, "2.0 GiB"),
        (5 * 1024**4, "5.0 TiB"),
        (5000 * 1024**4, "5000.0 TiB"),
    ],
)
def test_a_size_is_written_in_powers_of_1024(size: int, text: str) -> None:
    assert format_size(size) == text


@given(st.integers(0, 2**50))
def test_a_written_size_reads_back_within_a_twentieth_of_its_unit(size: int) -> None:
    assert parse_size(format_size(size)) == pytest.approx(size, rel=0.05)


@given(st.integers(0, 9), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_units_add_up(days: int, hours: int, minutes: int, seconds: int, millis: int) -> None:
    text = f"{days}d{hours}h{minutes}m{seconds}s{millis}ms"
    assert parse_duration(text) == pytest.approx(days * 86_400 + hours * 3600 + minutes * 60 + seconds + millis / 1000)


@given(st.text(max_size=20) | st.text("0123456789. dhmsKMGiB", max_size=70) | st.floats() | st.integers())
def test_reading_gives_a_number_or_the_operators_error(text: str | float) -> None:
    for parse in (parse_duration, parse_size):
        try:
            helpful = 0 <= parse(text) < math.inf
        except OperatorError as error:
            helpful = bool(error.hint)
        assert helpful


def test_hostile_text_is_refused_at_once() -> None:
    start = time.perf_counter()
    for text in ("1 " * 500_000, " " * 1_000_000 + "x", "1w 1d 1h 1m 1s 1ms " * 50_000, "1" * 63 + "x"):
        with pytest.raises(OperatorError):
            parse_duration(text)
    assert time.perf_counter() - start < 0.5
