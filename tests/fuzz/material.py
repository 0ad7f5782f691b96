"""What is fuzzed with: real lines of every dialect, bytes that were flipped, cut, doubled and moved, hostile words."""

from __future__ import annotations

import itertools
from pathlib import Path

from hypothesis import strategies as st

from agents.engines.codex_events import CODEX_JSON
from agents.engines.stream_json import AGENT_JSON, STREAM_JSON, TEXT_OR_JSON
from agents.events import PLAIN

TESTS = Path(__file__).resolve().parents[1]
DIALECTS = {"hollow": STREAM_JSON, "claude": AGENT_JSON, "codex": CODEX_JSON, "command": TEXT_OR_JSON, "plain": PLAIN}
_STREAMS = sorted([*TESTS.glob("replays/*/*/raw/stream.jsonl"), *TESTS.glob("engines/streams/*.jsonl")])
LINES = list(dict.fromkeys(itertools.chain.from_iterable(path.read_bytes().splitlines() for path in _STREAMS)))
"""Lines that real agents and stand-ins have said."""
# A reader sees through these, a search for bytes does not.
_DISGUISED = [
    b'{"type":"resul\\u0074","subtype":"success","is_error":false,"result":"x","session_id":"s","usage":{"output_tokens":9}}',
    b'{"type":"system","subtype":"ini\\u0074","session_id":"disguised","model":"m"}',
    b'{"type":"\\u0061ssistant","message":{"id":"d","content":"x","usage":{"output_tokens":1}}}',
    b'{"type":"turn.complete\\u0064","usage":{"output_tokens":9}}',
]
HOSTILE = [
    "\x1b[2J", "\u202e", "\u2028", "\x85", "\0", "\ud800", "---", "\n---\n", "!`id`", "@/etc/passwd", "$(id)", "{{", "`", '"', "'", "\\",
    "\r", "\t", ": ", "# ", "- ", "%", "\ufeff", "🦉", "..", "/", "~", "*", "&a", "|", ">", "null", "yes", "1e9", "0x1f",
]  # fmt: skip
words = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=12), max_size=8).map("".join)
"""Texts in which a careless writer of YAML, JSON, Markdown or shell would lose his way."""
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.sampled_from(HOSTILE),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """*whole* after one to three accidents: a byte flipped, a piece cut, doubled, moved, or replaced by zeros."""
    for _ in range(draw(st.integers(1, 3))):
        if not whole:
            return whole
        start, end = sorted((draw(st.integers(0, len(whole))), draw(st.integers(0, len(whole)))))
        end = min(end, start + 400)
        piece = whole[start:end]
        to = draw(st.integers(0, len(whole) - len(piece)))
        rest = whole[:start] + whole[end:]
        whole = draw(
            st.sampled_from([
                whole[:start] + bytes([draw(st.integers(0, 255))]) + whole[start + 1 :],
                rest,
                whole[:end] + piece + whole[end:],
                rest[:to] + piece + rest[to:],
                whole[:start] + bytes(len(piece)) + whole[end:],
            ])
        )  # fmt: skip
    return whole


_lines = (
    st.sampled_from(LINES)
    | st.sampled_from(LINES).flatmap(damaged)
    | st.sampled_from(_DISGUISED)
    | st.binary(max_size=80)
)
streams = st.lists(_lines, max_size=12).flatmap(
    lambda lines: st.sampled_from([b"\n".join(lines), b"".join(line + b"\n" for line in lines), b"\r\n".join(lines)])
)
"""What might stand in a stream, whole and torn."""
