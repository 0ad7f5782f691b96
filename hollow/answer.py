"""What a cycle ends with."""

from __future__ import annotations

from essentials.records import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of a cycle as the model server counted them."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, more: Usage) -> Usage:
        """What both took together."""
        return Usage(
            input_tokens=self.input_tokens + more.input_tokens, output_tokens=self.output_tokens + more.output_tokens
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a cycle ends with; becomes the stream's ``result`` event."""

    text: str
    """Markdown. The supervisor makes report.md (or plan.md) of it."""
    subtype: str = "success"
    """success, error_max_turns or error_during_execution."""
    turns: int = 1
    usage: Usage = field(default_factory=Usage)

    @property
    def is_error(self) -> bool:
        """Whether the cycle failed."""
        return self.subtype != "success"
