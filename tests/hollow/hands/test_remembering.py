from __future__ import annotations

import json

import pytest

from hollow.memory import keys
from hollow.memory.files import Files
from hollow.memory.keys import Full, Keys
from hollow.substrate.model import Trouble
from tests.support.hands import do, scene


@pytest.fixture
def book(tmp_path):
    return Keys(Files(tmp_path / "state"))


@pytest.mark.parametrize("value", ["text", 1.5, None, True, [1, {"a": "ü"}], {"b": []}, ""])
def test_a_value_comes_back_as_it_was(book, value):
    assert book.set("cedar", "k", value) is True
    assert book.get("cedar", "k") == value
    assert book.set("cedar", "k", value) is False
    assert book.names("vault") == ()
    with pytest.raises(KeyError):
        book.get("vault", "k")


def test_another_process_sees_it_at_once(book, tmp_path):
    book.set("cedar", "k", 1)
    assert Keys(Files(tmp_path / "state")).get("cedar", "k") == 1
    assert json.loads((tmp_path / "state/memory/cedar.json").read_text()) == {"k": 1}


@pytest.mark.parametrize("key", ["", "   ", "x" * (keys.MAX_KEY + 1), "a\nb", "a\0b"])
def test_a_key_that_is_none_is_refused(book, key):
    with pytest.raises(Full):
        book.set("cedar", key, 1)


def test_what_does_not_fit_is_refused_and_nothing_changes(book, tmp_path):
    with pytest.raises(Full, match="16384 fit"):
        book.set("cedar", "k", "x" * keys.MAX_VALUE)
    (tmp_path / "state/memory").mkdir(parents=True, exist_ok=True)
    many = {f"k{number}": number for number in range(keys.MAX_KEYS)}
    (tmp_path / "state/memory/cedar.json").write_text(json.dumps(many))
    with pytest.raises(Full, match="'k0'"):
        book.set("cedar", "one more", 1)
    assert book.set("cedar", "k7", "again")
    assert len(book.names("cedar")) == keys.MAX_KEYS


def test_a_damaged_file_gives_the_last_good_one(tmp_path):
    warned = []
    files = Files(tmp_path / "state", lambda kind, **_facts: warned.append(kind))
    book = Keys(files)
    book.set("cedar", "a", 1)
    book.set("cedar", "b", 2)
    (tmp_path / "state/memory/cedar.json").write_text('{"a": 1, "b"')
    assert book.names("cedar") == ("a",)
    assert warned == ["memory.damaged"]
    (tmp_path / "state/memory/vault.json").write_text('["no", "keys"]')
    assert book.names("vault") == ()


def test_the_capabilities_remember_for_the_caller_alone(tmp_path):
    """W14: nothing is ambient; who calls is whose memory it is."""
    stage = scene(tmp_path)
    set_ = do(stage.hands(), "memory_set", key="k", value={"a": 1})
    assert (set_.ok, set_.left) == (True, ("memory:k",))
    assert do(stage.hands(), "memory_get", key="k").output == {"a": 1}
    assert not do(stage.hands(agent="vault"), "memory_get", key="k").ok
    nearly = do(stage.hands(), "memory_get", key="kk")
    assert (nearly.trouble, nearly.error) == (Trouble.FAILED, "You remember nothing under 'kk'. Your keys are k.")
    big = do(stage.hands(), "memory_set", key="big", value="x" * 20_000)
    assert (big.trouble, big.left) == (Trouble.USAGE, ())
