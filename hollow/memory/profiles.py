"""Who the agents are, on disk: ``identity/<agent>/profile.json``."""

from __future__ import annotations

from hollow.memory.moments import iso, seconds
from hollow.substrate import identity
from hollow.substrate.model import Opinion, Profile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hollow.memory.files import Files


class Profiles:
    """The profiles below *files*, one file an agent."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def load(self, agent: str) -> Profile:
        """Return the profile of *agent*, within the bounds; one that has not lived yet is as it was born."""
        value = self._files.read(_name(agent)).value
        return _profile(agent, value) if isinstance(value, dict) else identity.born(agent)

    def save(self, profile: Profile, now: float) -> None:
        """Keep *profile* as of *now* (seconds since the epoch); what else the file holds stays in it.

        Raises :class:`hollow.memory.files.MemoryFault` where the lock is not to be had.
        """
        with self._files.hold():
            old = self._files.read(_name(profile.agent)).value
            kept = old if isinstance(old, dict) else {"name": profile.agent.capitalize(), "created_at": iso(now)}
            told = {} if kept.get("narrative") == profile.narrative else {"narrative_updated_at": iso(now)}
            # The mapping is the older form of the list; two of them could contradict each other.
            kept = {key: value for key, value in kept.items() if key != "opinions"}
            self._files.write(_name(profile.agent), {**kept, **_written(profile), **told})


def _name(agent: str) -> str:
    return f"identity/{agent}/profile.json"


def _profile(agent: str, value: dict[str, Any]) -> Profile:
    given = Profile(
        agent=agent, traits=_texts(value.get("traits")), narrative=_text(value.get("narrative")),
        worldview=_text(value.get("worldview")), open_questions=_texts(value.get("open_questions")),
        opinions=_opinions(value),
    )  # fmt: skip
    return identity.bounded(given if given.traits or "traits" in value else _as_born(given))


def _as_born(profile: Profile) -> Profile:
    born = identity.born(profile.agent)
    return Profile(
        agent=profile.agent, traits=born.traits, narrative=profile.narrative, worldview=profile.worldview,
        open_questions=profile.open_questions, opinions=profile.opinions,
    )  # fmt: skip


def _opinions(value: dict[str, Any]) -> tuple[Opinion, ...]:
    """The opinions, one by one, from the list, or from the mapping of domains that is the older form of it."""
    listed = value.get("opinions_list")
    if not isinstance(listed, list):
        older = value.get("opinions")
        pairs = older.items() if isinstance(older, dict) else ()
        listed = [{"domain": domain, "opinion": opinion} for domain, opinion in pairs]
    found = []
    for each in listed:
        given = each if isinstance(each, dict) else {"opinion": each}
        if isinstance(given.get("opinion"), str) and given["opinion"].strip():
            found.append(
                Opinion(
                    opinion=given["opinion"], domain=_text(given.get("domain")) or "general",
                    formed=seconds(given.get("formed")) or 0.0,
                )
            )  # fmt: skip
    return tuple(found)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _written(profile: Profile) -> dict[str, Any]:
    return {
        "agent_id": profile.agent,
        "traits": list(profile.traits),
        "narrative": profile.narrative,
        "worldview": profile.worldview,
        "open_questions": list(profile.open_questions),
        "opinions_list": [
            {"opinion": each.opinion, "domain": each.domain, "formed": iso(each.formed)} for each in profile.opinions
        ],
    }
