"""The four requests that seed 000 tells of, as they lie in the queue when nothing but its seven fields is written."""

from __future__ import annotations

from typing import Any

FULFILLED = (
    "Implement the full Python file for /agentOS/workspace/router/cedar/classifier.py including the score_complexity "
    "function"
)
INVENTED = "Inject the explicit Void_Cathode capability definition into the agentOS system dictionary"
OPEN = "Modify /agentOS/agents/scout.py to implement a hardcoded recursion depth limit of 3"
EXAMPLES = {
    "req-c6aad6cb44d2": FULFILLED,
    "req-19ee2392d337": INVENTED,
    "req-2d459ff36838": "",
    "req-4ba31dbfc04c": OPEN,
}


def lines() -> list[dict[str, Any]]:
    """The lines of claude_requests.jsonl."""
    return [
        {
            "request_id": name, "timestamp": "2026-05-02 08:40:08", "description": words, "spec": "", "design_path": "",
            "request_type": "implement", "status": "pending",
        }
        for name, words in EXAMPLES.items()
    ]  # fmt: skip
