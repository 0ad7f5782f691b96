"""The scene of `agent watch` as lines of text, at most as wide as the terminal; nothing is read or written here."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

from essentials import records
from essentials.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Final

    from agents.sightings import News, Scene, Seen, Step

BANDS: Final = ((0.90, "crisis"), (0.75, "dominant"), (0.55, "high"), (0.35, "present"), (0.0, "none"))
"""Lower edges of the bands of a load, inclusive (seed 004; F10)."""

_STYLES: Final = {"crisis": "bold red", "dominant": "red", "high": "yellow", "present": "cyan", "none": "green"}
_MARKS: Final = 10
_NEWS: Final = 8
_NARROW: Final = 30
"""Columns below which a terminal shows nothing that anybody could read; lines are then simply cut."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line and how it is coloured."""

    text: str
    style: str = ""


def band(load: float) -> str:
    """Return the name of the band of *load* (0 to 1)."""
    return next((name for edge, name in BANDS if load >= edge), "none")


def bar(share: float) -> str:
    """Return *share* (0 to 1) as a bar of ten marks; whatever is above nothing shows one (F2)."""
    marks = min(_MARKS, max(0, math.ceil(round(_MARKS * share, 6))))
    return f"[{'#' * marks}{'-' * (_MARKS - marks)}]"


def lines(scene: Scene, width: int, height: int | None = None) -> list[Line]:
    """Return *scene* as lines of at most *width* columns, and at most *height* of them (None: all).

    News give way first, then steps: load and goal of every agent stay as long as there is room for them.
    """
    head = [_head(scene), Line("")]
    if not any(map(_has_lived, scene.agents)):
        head.append(Line("No agent has lived yet. Try: ./agent cycle cedar"))
    # From the fullest picture to the barest; the first that fits is drawn.
    for steps, news in ((True, _NEWS), (True, 3), (True, 0), (False, 0)):
        body = [line for seen in scene.agents if _has_lived(seen) for line in _agent(seen, steps=steps)]
        drawn = [*head, *body, *_news(scene.news, news)]
        if height is None or len(drawn) <= height:
            break
    return [Line(clipped(line.text, width), line.style) for line in drawn[: height or None]]


def _head(scene: Scene) -> Line:
    at = datetime.fromtimestamp(scene.at, UTC).strftime("%H:%M:%S")
    waiting = f" · {_count(scene.pending, 'request')} for you" if scene.pending else ""
    return Line(f"{at} UTC · {_count(scene.running, 'run')} under way{waiting}", "bold")


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _has_lived(seen: Seen) -> bool:
    return seen.load is not None or bool(seen.goal or seen.run)


def _agent(seen: Seen, *, steps: bool) -> Iterator[Line]:
    yield _load(seen)
    if seen.stressors:
        yield Line("        " + " · ".join(f"{name} {severity:.2f}" for name, severity in seen.stressors))
    if seen.goal:
        share = seen.progress or 0.0
        yield Line(f"        goal {share:.2f} {bar(share)} {seen.goal}")
    if steps and seen.steps:
        yield Line("        " + "  ".join(map(_step, seen.steps[-3:])), "" if seen.alive else "dim")
    yield Line("")


def _load(seen: Seen) -> Line:
    at = f"  run {seen.run}" if seen.alive else ""
    if seen.load is None:
        return Line(f"{seen.agent:<7}{at or '  load not known'}")
    named = band(seen.load)
    return Line(f"{seen.agent:<7} load {seen.load:.2f} {bar(seen.load)} {named}{at}", _STYLES[named])


def _step(step: Step) -> str:
    mark = {None: "…", True: "✓", False: "✗"}[step.ok]
    return f"{mark} {step.name} {clipped(step.argument, 24)}".rstrip()


def _news(news: Iterable[News], most: int) -> list[Line]:
    told = list(news)[-most:] if most else []
    rows = [Line(f"  {one.time[11:19]} {one.agent or '-':<7} {one.event} {one.text}".rstrip(), "dim") for one in told]
    return [Line("Lately"), *rows] if rows else []


def clipped(text: str, width: int) -> str:
    """Return *text* cut to *width* characters, with a mark where something is missing."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"[: max(0, width)]


def plain(scene: Scene, width: int) -> str:
    """Return *scene* as plain text for a pipe, at most *width* columns wide."""
    return "\n".join(line.text.rstrip() for line in lines(scene, max(width, _NARROW))).rstrip()


def as_json(scene: Scene) -> str:
    """Return *scene* as JSON, each agent with the name of its band."""
    fields = records.asdict(scene)
    bands = [None if seen.load is None else band(seen.load) for seen in scene.agents]
    fields["agents"] = [{**seen, "band": named} for seen, named in zip(fields["agents"], bands, strict=True)]
    return json.dumps(fields, indent=1)
