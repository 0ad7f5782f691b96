"""Mailboxes and the operator's words: read as often as one likes, gone only when they were used."""

from __future__ import annotations

import json
import threading

import pytest

from hollow.memory.files import Files
from hollow.memory.host import HostWords
from hollow.memory.mail import LONGEST, Mail

NOW = 1_777_711_208.0


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path / "hollow")


@pytest.fixture
def mail(files):
    return Mail(files)


def texts(messages) -> list[str]:
    return [each.text for each in messages]


def test_a_message_stands_in_the_next_answered_prompt_once(mail):
    """T160: it is shown again until a prompt with it was answered, and then never more."""
    assert mail.send("cedar", "cipher", "look at shop.py", NOW) == ""
    for _failed_prompt in range(3):
        (message,) = mail.unread("cipher")
        assert (message.sender, message.to, message.text, message.at) == ("cedar", "cipher", "look at shop.py", NOW)
    mail.ack("cipher", message.number)
    assert mail.unread("cipher") == ()
    mail.send("cedar", "cipher", "and at cart.py", NOW)
    assert texts(mail.unread("cipher")) == ["and at cart.py"]


def test_what_comes_while_a_prompt_is_answered_stays(mail):
    """T160: only what stood in the prompt is acknowledged."""
    mail.send("cedar", "cipher", "one", NOW)
    seen = mail.unread("cipher")
    mail.send("vault", "cipher", "two", NOW)
    mail.ack("cipher", seen[-1].number)
    assert texts(mail.unread("cipher")) == ["two"]
    mail.ack("cipher", 10_000)
    mail.send("vault", "cipher", "three", NOW)
    assert texts(mail.unread("cipher")) == ["three"]


def test_there_is_one_mailbox_with_the_seeds_fields(files, mail):
    """T160: what is written is what is read, under the same names."""
    mail.send("cedar", "vault", "build it", NOW)
    (line,) = (files.root / "messages" / "vault" / "inbox.jsonl").read_text().splitlines()
    assert json.loads(line).items() >= {"from": "cedar", "to": "vault", "message": "build it",
                                        "timestamp": "2026-05-02T08:40:08.000000+00:00"}.items()  # fmt: skip


REFUSED = [
    ("cedar", "nobody", "x", "There is no agent 'nobody'; your peers are cipher, vault."),
    ("cedar", "../vault", "x", "There is no agent '../vault'"),
    ("cedar", "cedar", "x", "That is you"),
    ("cedar", "vault", "  ", "empty"),
    ("cedar", "vault", "x" * (LONGEST + 1), f"has {LONGEST + 1} characters"),
]


@pytest.mark.parametrize(("sender", "to", "text", "why"), REFUSED)
def test_what_cannot_be_delivered_is_refused_in_one_sentence(files, mail, sender, to, text, why):
    assert why in mail.send(sender, to, text, NOW)
    assert not files.root.exists() or not list(files.root.rglob("inbox.jsonl"))


def test_a_full_mailbox_refuses_and_loses_nothing(files):
    """T160: nothing that was accepted is dropped unread; reading makes room."""
    mail, sent = Mail(files, room=10), []
    while not (why := mail.send("cedar", "vault", f"message {len(sent)}", NOW)):
        sent.append(f"message {len(sent)}")
    assert "full" in why
    assert len(sent) == 9
    assert texts(mail.unread("vault")) == sent
    mail.ack("vault", mail.unread("vault")[-1].number)
    for turn in range(40):
        assert mail.send("cedar", "vault", f"later {turn}", NOW) == ""
        if turn % 8 == 7:
            found = mail.unread("vault")
            assert texts(found) == [f"later {number}" for number in range(turn - 7, turn + 1)]
            mail.ack("vault", found[-1].number)
    assert mail.unread("vault") == ()
    # W12: what was read goes when the file has grown.
    assert len((files.root / "messages" / "vault" / "inbox.jsonl").read_text().splitlines()) <= 20


def test_hand_placed_messages_and_damage(files, mail):
    """T160: lines with the seed's fields alone are messages; a broken one costs no other."""
    box = files.root / "messages" / "cedar" / "inbox.jsonl"
    box.parent.mkdir(parents=True)
    lines = [{"from": "vault", "to": "cedar", "message": "one", "timestamp": "2026-05-02 08:40"}, {"message": 7},
             {"from": None, "message": "two", "timestamp": NOW}]  # fmt: skip
    box.write_text("not json\n" + "".join(json.dumps(line) + "\n" for line in lines))
    found = mail.unread("cedar")
    assert [(each.sender, each.text, each.at) for each in found] == [("vault", "one", NOW - 8), ("", "two", NOW)]
    mail.ack("cedar", found[0].number)
    assert texts(mail.unread("cedar")) == ["two"]


def test_a_mailbox_that_was_replaced_is_unread(files, mail):
    """T160: a cursor beyond the end belongs to another file."""
    for turn in range(5):
        mail.send("cedar", "vault", f"message {turn}", NOW)
    mail.ack("vault", 5)
    (files.root / "messages" / "vault" / "inbox.jsonl").write_text('{"from": "cedar", "message": "anew"}\n')
    assert texts(mail.unread("vault")) == ["anew"]
    mail.ack("vault", mail.unread("vault")[-1].number)
    assert mail.unread("vault") == ()


def test_senders_at_once(files):
    """T160: two senders never take the same number."""

    def send(sender: str) -> None:
        mine = Mail(Files(files.root))
        for turn in range(20):
            assert mine.send(sender, "vault", f"{sender} {turn}", NOW) == ""

    threads = [threading.Thread(target=send, args=(name,)) for name in ("cedar", "cipher")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = Mail(files).unread("vault")
    assert sorted(each.number for each in found) == list(range(1, 41))
    assert sorted(texts(found)) == sorted(f"{name} {turn}" for name in ("cedar", "cipher") for turn in range(20))


def test_the_operators_words_reach_whom_they_are_for(files):
    """T160: each agent has a cursor of its own; what is for one is not shown to another."""
    words = HostWords(files)
    words.say("for all", NOW)
    last = words.say("for vault", NOW, "vault")
    assert texts(words.unread("cedar")) == ["for all"]
    assert texts(words.unread("vault")) == ["for all", "for vault"]
    words.ack("vault", last)
    assert words.unread("vault") == ()
    assert texts(words.unread("cedar")) == ["for all"]
    words.ack("cedar", words.unread("cedar")[-1].number)
    assert words.unread("cedar") == ()


def test_many_words_are_heard_one_prompt_after_the_other(files):
    """W12: what does not fit into one prompt stands in the next."""
    words, heard = HostWords(files), []
    for turn in range(50):
        words.say(f"word {turn}", NOW)
    while found := words.unread("cedar"):
        assert len(found) <= 20
        heard += texts(found)
        words.ack("cedar", found[-1].number)
    assert heard == [f"word {turn}" for turn in range(50)]


@pytest.mark.parametrize(("text", "to"), [("", None), (" \n", None), ("x" * 4001, None), ("x", "nobody"), ("x", "")])
def test_words_for_nobody_or_of_nothing_are_refused(files, text, to):
    with pytest.raises(ValueError, match=r"."):
        HostWords(files).say(text, NOW, to)
    assert HostWords(files).unread("cedar") == ()
