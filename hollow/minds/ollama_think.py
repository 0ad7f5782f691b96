"""The ollama mind of a cycle: one question, one message, one answer in the shape of a JSON schema."""

from __future__ import annotations

from essentials.digests import sha256
from hollow.mind import Away, Thought, Usage
from hollow.minds.conversation import Meter
from hollow.minds.loop import CROWDED, Failure
from hollow.minds.ollama import Server, Settings, no_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Final

    from hollow.mind import Question
    from hollow.minds.loop import Reply

EMBEDDING_MODEL: Final = "nomic-embed-text"
"""What turns a text into a vector (facts 3.6)."""

EMBEDDING_WINDOW: Final = 2048
"""Tokens that it was trained with; sent with every call like any other window (W24)."""

EMBEDDING_SECONDS: Final = 30.0
"""Time that a slice of texts may take: the model is small, but may have to be loaded first."""

_EMBEDDED_AT_ONCE: Final = 64
_LONGEST_EMBEDDED: Final = 6000
"""Characters of a text that count; what a capability or a goal is about stands at its beginning."""

_UNLOAD_SECONDS: Final = 5.0

CREATIVE: Final = frozenset({"existence", "chat"})
"""Purposes that are asked warmly: an agent that is always asked coldly wants the same thing for ever."""

_WARMTH: Final = 0.7


class OllamaThinker:
    """Thinks with the model of *settings*; *fact* says what happens meanwhile.

    Every question goes out as one user message with its JSON schema as ``format``, the context window and the output
    limit. A transport error is tried again within the question's time, an answer never is (T82).
    """

    name = "ollama"

    def __init__(self, settings: Settings, fact: Callable[..., None] = lambda _kind, **_facts: None) -> None:
        self.model: str | None = settings.model
        self._settings = settings
        self._fact = fact
        self._meter = Meter()
        self._opened: Server | None = None
        self._embeds = True

    def think(self, question: Question) -> Thought:
        """Return the model's answer to *question*, as it wrote it; raises :class:`Away`, which is never a yes (T88)."""
        message = {"role": "user", "content": question.prompt}
        self._check_room(question)
        try:
            reply = self._server().chat(
                [message],
                options=options(question),
                seconds=question.seconds,
                format=dict(question.schema),
                think=False,
            )
        except Failure as why:
            raise Away(str(why)) from None
        self._note(question, reply)
        # Some models put all they have into their thinking, schema or not.
        text = reply.text if reply.text.strip() else reply.thinking
        return Thought(text=text, usage=Usage(input_tokens=reply.prompt_tokens, output_tokens=reply.output_tokens))

    def embed(self, texts: Sequence[str]) -> list[list[float]] | None:
        """Return one vector for each of *texts*, or None: then there is no such model, for the rest of this cycle."""
        found: list[list[float]] = []
        for start in range(0, len(texts), _EMBEDDED_AT_ONCE):
            part = [text[:_LONGEST_EMBEDDED] for text in texts[start : start + _EMBEDDED_AT_ONCE]]
            vectors = self._embedded(part)
            if vectors is None:
                return None
            found += vectors
        return found if self._embeds else None

    def unload(self) -> bool:
        """Have the server let go of the model; returns whether it said yes."""
        try:
            self._server().unload(_UNLOAD_SECONDS)
        except (Failure, Away):
            return False
        return True

    def close(self) -> None:
        """Close the connection; a later question opens a new one."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _server(self) -> Server:
        if self._opened is None:
            try:
                self._opened = Server(self._settings, self._fact)
            except ValueError:
                raise Away(no_address(self._settings)) from None
        return self._opened

    def _check_room(self, question: Question) -> None:
        """Refuse a prompt that the server would cut: its beginning, the rules, would be what goes (W24)."""
        room = self._settings.num_ctx - self._server().num_predict
        needed = self._meter.tokens([_size(question)])
        if needed > room:
            raise Away(f"The prompt takes about {needed} tokens, and the model's window has room for {room}.")

    def _note(self, question: Question, reply: Reply) -> None:
        if reply.prompt_tokens:
            self._meter = self._meter.learned([_size(question)], 0, reply.prompt_tokens)
        if reply.prompt_tokens >= CROWDED * self._settings.num_ctx:
            raise Away(f"The model's window of {self._settings.num_ctx} tokens cut the prompt's beginning away.")
        if reply.cut:
            # What is left is read as far as it goes; whoever looks at the stream must see why it ends there.
            self._fact("mind.cut", purpose=question.purpose, output_tokens=reply.output_tokens)

    def _embedded(self, texts: Sequence[str]) -> list[list[float]] | None:
        if not self._embeds:
            return None
        try:
            return self._server().embed(EMBEDDING_MODEL, texts, EMBEDDING_WINDOW, EMBEDDING_SECONDS)
        except (Failure, Away) as why:
            # Asked once a cycle: searching by words is the other way, and it costs no waiting.
            self._embeds = False
            self._fact("mind.no_embeddings", model=EMBEDDING_MODEL, reason=str(why)[:200])
            return None


def options(question: Question) -> dict[str, Any]:
    """Return the sampling options for *question*: cold for judgements, warm with a derived seed for new goals.

    The seed is that of ``question.facts["seed"]`` (any text or number), so a cycle that is repeated asks the same.
    """
    if question.purpose not in CREATIVE:
        return {"temperature": 0, "seed": 1}
    digest = sha256(repr(question.facts.get("seed", "")).encode("utf-8", "replace")).digest()
    # The server takes the seed as a signed number of 32 bits.
    return {"temperature": _WARMTH, "seed": int.from_bytes(digest[:4], "big") >> 1}


def _size(question: Question) -> int:
    return len(question.prompt.encode("utf-8", "replace"))
