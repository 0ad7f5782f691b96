from __future__ import annotations

import pytest

from hollow.substrate.model import Kind, Trouble
from tests.support.hands import do, scene


@pytest.fixture
def stage(tmp_path):
    made = scene(tmp_path)
    (made.repo / "workspace/vault/way").symlink_to("../../agents")
    return made


def told(result):
    return [(each.kind, dict(each.facts)) for each in result.happenings if each.kind is not Kind.STEP]


def test_a_message_is_in_the_one_mailbox(stage):
    """T160: what the producer sends is what the consumer reads, by the sender's name, once."""
    result = do(stage.hands(), "agent_message", to="Vault", message=" the wick is wet ")
    assert (result.ok, result.left) == (True, ("message:vault",))
    mail = stage.memory.mail.unread("vault")
    assert [(each.sender, each.text) for each in mail] == [("cedar", "the wick is wet")]
    assert told(result) == [
        (Kind.PEER, {"peer": "vault", "how": "message"}),
        (Kind.PEER, {"peer": "cedar", "how": "message", "of": "vault"}),
    ]
    assert stage.memory.mail.unread("cipher") == ()
    stage.memory.mail.ack("vault", mail[-1].number)
    assert stage.memory.mail.unread("vault") == ()


@pytest.mark.parametrize(
    ("to", "message"),
    [("cedar", "hi"), ("oak", "hi"), ("", "hi"), ("vault", ""), ("vault", "x" * 4_001), ("../vault", "hi")],
)
def test_a_message_to_nobody_or_of_nothing_is_refused(stage, to, message):
    result = do(stage.hands(), "agent_message", to=to, message=message)
    assert (result.ok, result.trouble, result.left, told(result)) == (False, Trouble.USAGE, (), [])
    assert stage.memory.mail.unread("vault") == ()


def test_a_full_mailbox_is_told(stage):
    """W17: what is not delivered is said to be so."""
    box = stage.memory.root / "messages/vault/inbox.jsonl"
    box.parent.mkdir(parents=True)
    box.write_text("".join(f'{{"from": "cipher", "to": "vault", "message": "{number}"}}\n' for number in range(1_000)))
    result = do(stage.hands(), "agent_message", to="vault", message="one more")
    assert (result.ok, result.trouble, result.left) == (False, Trouble.FAILED, ())


def test_a_peers_work_is_listed_and_read(stage):
    listed = do(stage.hands(), "read_peer", agent="vault")
    assert "made.py (6 bytes)" in listed.output
    assert told(listed) == [(Kind.PEER, {"peer": "vault", "how": "read"})]
    for path in ("made.py", "workspace/vault/made.py", "/agentOS/workspace/vault/made.py"):
        read = do(stage.hands(), "read_peer", agent="vault", path=path)
        assert read.output.endswith("X = 1")
        assert [each[0] for each in told(read)] == [Kind.PEER, Kind.REFERENCE]
    assert do(stage.hands(), "read_peer", agent="vault", path="/agentOS/workspace/vault").output == listed.output
    assert do(stage.hands(), "read_peer", agent="cipher").output == "cipher has made nothing yet."


@pytest.mark.parametrize(
    ("agent", "path"),
    [
        ("vault", "../cedar/note.md"),
        ("vault", "../../agents/core.py"),
        ("vault", "/etc/passwd"),
        ("vault", "none.py"),
        ("cedar", ""),
        ("oak", ""),
    ],
)
def test_nothing_but_a_peers_work_is_read_so(stage, agent, path):
    result = do(stage.hands(), "read_peer", agent=agent, path=path)
    assert (result.trouble, told(result)) == (Trouble.USAGE, [])


def test_a_link_out_of_a_workspace_is_no_reference_to_it(stage):
    """S4: the core is nobody's artifact, whatever way leads there."""
    assert told(do(stage.hands(), "read_peer", agent="vault", path="way/core.py")) == []
