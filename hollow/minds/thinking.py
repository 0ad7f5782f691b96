"""Makes what thinks inside a cycle by its name."""

from __future__ import annotations

from hollow.minds.scripted_think import BadScript, ScriptedThinker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hollow.mind import Thinker

__all__ = ["BadScript", "make"]


def _silent(_kind: str, **_facts: object) -> None:
    """Nobody listens."""


def make(
    mind: str,
    *,
    agent: str,
    repo: Path,
    index: Path | None = None,
    fact: Callable[..., None] = _silent,
    model: str = "qwen3.5:9b",
    num_ctx: int = 32768,
    keep_alive: str = "10m",
    call_timeout: float = 600.0,
    script: Path | None = None,
    cursor: Path | None = None,
) -> Thinker:
    """Return the thinker called *mind* (ollama, reflex or scripted) for *agent* in the airlock *repo*.

    *fact* hears signs of life and mishaps; *num_ctx* is in tokens, *call_timeout* in seconds. The scripted one plays
    *script* and keeps its place in *cursor*. Raises :class:`BadScript`, and ValueError for a name that is none.
    """
    # Imported where it is needed: the client library alone takes longer to load than a reflex cycle thinks.
    if mind == "ollama":
        from hollow.minds.ollama import Settings
        from hollow.minds.ollama_think import OllamaThinker

        settings = Settings(model=model, num_ctx=num_ctx, keep_alive=keep_alive, call_timeout=call_timeout)
        return OllamaThinker(settings, fact)
    if mind == "reflex":
        from hollow.minds.reflex_think import ReflexThinker

        return ReflexThinker(agent=agent, repo=repo, index=index)
    if mind == "scripted":
        if script is None:
            raise BadScript("The scripted mind needs --script PATH.")
        return ScriptedThinker(script, agent=agent, cursor=cursor)
    raise ValueError(f"There is no mind called {mind}.")
