"""What people and other programs are shown: slash commands that stay commands, and no secret, however it is cut."""

from __future__ import annotations

import json
import re

import yaml
from hypothesis import given
from hypothesis import strategies as st

from agents import loops, plan, settle, transcript
from agents.differing import Difference
from agents.engines.stream_json import STREAM_JSON
from agents.errors import BoxError
from agents.events import Progress, Result, Said, ToolCall, reduce
from agents.layout import Box
from agents.pump import Ending
from agents.redact import redact
from tests.fuzz import examples
from tests.fuzz.material import words
from tests.support.plans import planned

SECRETS = [
    "ghp_Zq9xW8vU7tS6rQ5pO4nM3lK2jI1h",
    "sk-ant-api03-Zq9xW8vU7tS6rQ5pO4nM3l",
    "AKIAZQ9XW8VU7TS6RQ5P",
    "glpat-Zq9xW8vU7tS6rQ5pO4nM",
]
borders = st.tuples(st.sampled_from([80, 200, 300, 320, 500, 2000, 4000]), st.integers(0, 40)).map(
    lambda pair: max(0, pair[0] - pair[1])
)
fillings = words | borders.map(lambda count: ("x " * count)[:count]) | borders.map(lambda count: " " * count)
"""What stands around a secret; often so much that the secret lies where something is cut."""


def leaks(shown, secret):
    """Whether half of *secret* or more can be read in *shown*."""
    part = len(secret) // 2
    return any(secret[at : at + part] in shown for at in range(len(secret) - part + 1))


@examples(60)
@given(task=words.filter(str.strip), run_type=st.sampled_from(["scout", "plan", "fix"]))
def test_commands_stay_commands_whatever_the_task_says(task, run_type):
    """T128: front matter of the same keys, nothing that is run or read while a file is rendered."""
    try:
        made = planned(run_type, task)
    except BoxError:
        return
    for file in made.commands:
        head, fields, body = file.text.split("---\n", 2)
        assert head == ""
        assert set(yaml.safe_load(fields)) >= {"description"}
        assert not re.search(r"(?m)!`|^@|\s@", body)
        # The run's name stands in a path, and a task may be its own slug.
        assert task.strip() not in file.text.replace(made.meta.run_name, "") or len(task.strip()) < 9
    assert re.fullmatch(r"[a-z0-9-]+", made.meta.slug)
    shown = plan.title(task)
    assert (len(shown) <= 200, shown.isprintable() or not shown) == (True, True)


@examples(100)
@given(before=fillings, after=fillings, secret=st.sampled_from(SECRETS), tight=st.booleans())
def test_no_part_of_a_token_is_shown_wherever_it_is_cut(before, after, secret, tight):
    """T145: what is shortened for people is shortened without leaving the half of a secret that no pattern knows."""
    text = f"{before} {secret}{'' if tight else ' '}{after}"
    # One that others touch is another word, and nobody's token.
    if tight and re.match(r"[A-Za-z0-9_-]", after):
        return
    said = {
        "type": "assistant",
        "message": {"content": [{"type": "tool_use", "name": "Bash", "input": {"command": text}}]},
    }
    progress = reduce(Progress(), Said(text))
    called = reduce(Progress(), ToolCall("Bash", text))
    failed = Ending(exit_code=1, progress=Progress(result=Result(text=text, is_error=True, subtype="error")))
    shown = {
        "title": plan.title(text),
        "status line": plan.title(progress.said),
        "status line of a call": plan.title(called.said),
        "complaint": settle.decide(failed, STREAM_JSON)[2],
        "logs": transcript.render(json.dumps(said).encode(), STREAM_JSON) or "",
        "circle": loops._shown(text),
        "difference": "".join(Difference("x", text, "other").shown()),
    }
    assert [where for where, what in shown.items() if leaks(what, secret)] == []


@examples(40)
@given(before=words, after=words, secret=st.sampled_from(SECRETS), plan_run=st.booleans())
def test_no_report_holds_a_token(before, after, secret, plan_run, tmp_path_factory):
    """D14: report.md and plan.md are for people."""
    made = planned("plan" if plan_run else "scout")
    ending = Ending(exit_code=0, progress=Progress(result=Result(text=f"{before}\n{secret}\n{after}")))
    written = settle.reports(Box(tmp_path_factory.getbasetemp()), made.meta, ending, "")
    assert len(written) == 1 + plan_run
    assert not [name for name, data in written.items() if leaks(data.decode(), secret)]
    assert redact(redact(before + secret)) == redact(before + secret)
