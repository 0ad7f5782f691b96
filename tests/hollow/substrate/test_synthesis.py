"""What is accepted as a tool: names, descriptions, the six patterns, the shape of the code."""

from __future__ import annotations

import ast
import keyword

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hollow.substrate import lexical, synthesis, toolcode
from hollow.substrate.synthesis import Refused, Tool
from tests.support.forges import BUILTINS

NOW = 1_800_000_000.0


def prepare(name="tool", description="counts the words of a text", code="", **more) -> Tool:
    given = {"by": "vault", "now": NOW, "builtins": BUILTINS, "similar": lexical.likeness, **more}
    return synthesis.prepare(name, description, code, **given)


def refusal(*words, **more) -> dict:
    with pytest.raises(Refused) as why:
        prepare(*words, **more)
    assert why.value.answer["ok"] is False
    return why.value.answer


def error(code, name="tool") -> str:
    return refusal(name, code=code)["error"]


def value_of(tool: Tool, **kwargs):
    """Runs code that this very file has written."""
    space: dict = {}
    exec(compile(tool.code, "tool", "exec"), space)
    return space[tool.name](**kwargs)


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "clean"),
    [("My Tool (v2)", "my_tool__v2_"), ("a" * 80, "a" * 60), ("ÄÖ-x", "___x"), ("ok_1", "ok_1"), ("", "")],
)
def test_a_name_is_sanitized_to_the_letter_of_the_seed(name, clean):
    """T92: what is no letter, digit or underscore becomes one; 60 characters; lower case."""
    assert synthesis.sanitized(name) == clean


@given(st.text(max_size=100))
@settings(max_examples=50)
def test_a_sanitized_name_is_sane_and_stays_so(name):
    """T92: whatever the name, and twice is once."""
    clean = synthesis.sanitized(name)
    assert len(clean) <= 60
    assert set(clean) <= set("abcdefghijklmnopqrstuvwxyz0123456789_")
    assert synthesis.sanitized(clean) == clean
    if synthesis.name_fault(clean, BUILTINS) is None:
        assert clean.isidentifier()
        assert not keyword.iskeyword(clean)


@pytest.mark.parametrize("name", ["123abc", "class", "fs_write", "FS Write", "!!!", "None"])
def test_a_bad_name_is_rejected(name):
    """T93: no identifier, a word of Python, a built-in, nothing but underscores."""
    if name == "None":  # lower-cased it is an ordinary name
        assert prepare(name).name == "none"
    else:
        assert refusal(name)["error"].startswith("rejected: ")


@pytest.mark.parametrize(("name", "description"), [("", "something"), ("  ", "something"), ("tool", "")])
def test_a_missing_name_is_said_as_the_seed_does(name, description):
    """T98: no name, or neither a description nor code."""
    assert refusal(name, description) == {"ok": False, "error": "name and code are required"}


def test_strict_tools_need_code():
    """T98: with the strict switch, a tool without code is refused instead of becoming a stub."""
    assert refusal(strict=True)["error"] == "name and code are required"
    assert prepare(code="def tool():\n    return 1\n", strict=True).stub is False


# --- the six patterns -------------------------------------------------------------------------------------------------

BAD = {
    "ellipsis": "def tool():\n    x = ...\n    return x\n",
    "double pass": "def tool():\n    if 1:\n        return 1\n    pass\n    pass\n",
    "todo": "def tool():\n    return 1  # TODO finish\n",
    "placeholder": "def tool():\n    # placeholder\n    return 1\n",
    "json": '{"ok": true, "result": 1}',
    "unimplemented": "def tool():\n    raise NotImplementedError('later')\n",
}


@pytest.mark.parametrize("kind", BAD)
def test_each_of_the_six_patterns_is_rejected(kind):
    """T94: as code."""
    assert error(BAD[kind]).startswith("rejected: ")


@pytest.mark.parametrize(
    "code",
    [
        "def tool():\n    return 'loading...'\n",
        "def tool():\n    '''Counts # TODO marks.'''\n    return '# TODO'.count('# TODO')\n",
        "def tool():\n    return '{\"ok\": true'\n",
        "def tool():\n    return 'raise NotImplementedError'\n",
        "def tool():\n    return {'ok': True}\n",
    ],
)
def test_a_pattern_inside_of_a_string_is_no_pattern(code):
    """T94: "loading..." is a text."""
    assert prepare(code=code).code == code


def test_text_that_is_no_python_has_no_pattern():
    assert toolcode.pattern_in("def f(:\n") is None
    assert toolcode.pattern_in("'''never ended") is None


@pytest.mark.parametrize(
    "code",
    ["def f(:", "def tool():\n  return 1\n   x", "x = 'a\n", "def tool():\n    break\n", "a\0b", "\ud800", "(" * 5000],
)
def test_what_python_cannot_read_is_a_syntax_error(code):
    """T95: the error begins with SyntaxError."""
    assert error(code).startswith("SyntaxError: ")


# --- the shape --------------------------------------------------------------------------------------------------------

SHAPELESS = {
    "a method": "def tool(self, x):\n    return x\n",
    "bare pass": "def tool():\n    pass\n",
    "pass after a docstring": "def tool():\n    '''Works.'''\n    pass\n",
    "docstring only": "def tool():\n    '''Works.'''\n",
    "docstring only, beside a good one": "def other():\n    'x'\ndef tool():\n    return 1\n",
    "nested and never called": "def tool():\n    def inner():\n        return 1\n",
    "another name": "def helper():\n    return 1\n",
    "async": "async def tool():\n    return 1\n",
    "generator": "def tool():\n    yield 1\n    return 2\n",
    "a comment": "# nothing here\n",
    "too long": f"def tool():\n    return '{'x' * synthesis.MAX_CODE}'\n",
}


@pytest.mark.parametrize("kind", SHAPELESS)
def test_code_without_substance_is_rejected(kind):
    """T96: judged for every function at the top, not the tool's alone."""
    assert error(SHAPELESS[kind]).startswith("rejected: ")


@pytest.mark.parametrize(
    "code",
    [
        "def tool():\n    def inner():\n        return 1\n    return inner()\n",
        "def tool():\n    def inner(n):\n        return inner(n - 1) if n else 0\n    return list(map(inner, [1]))\n",
        "import functools\ndef tool(f=None):\n    @functools.wraps(f)\n    def inner():\n        return 1\n    return 2\n",
        "class Box:\n    size: int = 1\n    def get(self):\n        return self.size\ndef tool():\n    return Box().get()\n",
        "import functools\n@functools.lru_cache(maxsize=8)\ndef f(x=1):\n    return x\ndef tool():\n    return f()\n",
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass P:\n    x: int\ndef tool():\n    return P(1).x\n",
        "'''A tool.'''\nLIMITS = {'a': (1, 2), 'b': -3}\ndef tool(n: int = 3) -> int:\n    return n\n",
    ],
)
def test_ordinary_code_is_used_as_it_is(code):
    """T100: what has a function is not touched."""
    assert prepare(code=code).code == code


@pytest.mark.parametrize(
    "line",
    [
        "open('{target}', 'w')",
        "x = open('{target}', 'w')",
        "def f(x=open('{target}', 'w')):\n    return x",
        "def f(x: open('{target}', 'w')):\n    return x",
        "@open('{target}', 'w').write\ndef f():\n    return 1",
        "@lru_cache(open('{target}', 'w'))\ndef f():\n    return 1",
        "class C(open('{target}', 'w')):\n    x = 1",
        "class C:\n    x = open('{target}', 'w')",
        "x: int = open('{target}', 'w')",
        "with open('{target}', 'w') as f:\n    f.write('')",
        "for x in open('{target}', 'w'):\n    y = x",
        "if open('{target}', 'w'):\n    x = 1",
        "x = [open(n, 'w') for n in ['{target}']]",
        "x = f'{{open(\"{target}\")}}'",
        "assert open('{target}', 'w')",
    ],
)
def test_nothing_is_done_when_a_tool_is_loaded(line, tmp_path):
    """T108: outside of functions stand imports, definitions and constants only."""
    target = tmp_path / "registry.py"
    target.write_text("precious")
    code = line.format(target=target) + "\ndef tool():\n    return 1\n"
    ast.parse(code)
    assert error(code).startswith("rejected: line 1: ") or error(code).startswith("rejected: line 2: ")
    assert target.read_text() == "precious"


def test_returns_and_arguments_are_seen():
    cases = {
        "def tool():\n    return 1": (True, False),
        "def tool():\n    return None": (False, False),
        "def tool():\n    return": (False, False),
        "def tool(x):\n    print(x)": (False, True),
        "def tool(x):\n    if x:\n        return x\n    return None": (True, True),
        "def tool(**kw):\n    return 1": (True, False),
        "def tool(**kw):\n    return [k for k in kw]": (True, True),
        "def tool():\n    f = lambda: 1\n    def g():\n        return 2\n    print(f, g)": (False, False),
    }
    for code, (gives, reads) in cases.items():
        tree = ast.parse(code)
        assert toolcode.returns_value(tree, "tool") is gives, code
        assert toolcode.reads_arguments(tree, "tool") is reads, code
    assert not toolcode.returns_value(ast.parse(""), "tool")
    assert not toolcode.reads_arguments(ast.parse(""), "tool")


# --- wrapping and stubs -----------------------------------------------------------------------------------------------


def test_a_body_without_a_function_is_wrapped():
    """T100: callable with any arguments; a string over several lines stays what it was."""
    tool = prepare(code="import json\ntext = '''a\n  b'''\nreturn json.dumps([text, kwargs.get('x')])\n")
    assert value_of(tool, x=1) == '["a\\n  b", 1]'
    assert tool.code.startswith("def tool(**kwargs):")


def test_an_import_may_stand_before_the_function():
    """T100: the tree decides, not the first word."""
    code = "import json\n\ndef tool(x=1):\n    return json.dumps(x)\n"
    assert prepare(code=code).code == code


@pytest.mark.parametrize("code", ["```python\ndef tool():\n    return 1\n```", "\n    def tool():\n        return 1\n"])
def test_a_fence_and_a_margin_are_taken_off(code):
    assert value_of(prepare(code=code)) == 1


@given(st.text(max_size=80))
@settings(max_examples=50)
def test_any_description_makes_a_valid_stub(text):
    """T97: quotes, backslashes and whatever else; the stub says what it was called with."""
    line = " ".join(text.split())
    code = toolcode.stub("tool", line)
    compile(code, "tool", "exec")
    tool = Tool(name="tool", description=line, code=code, by="", activated_at=0, stub=True)
    assert value_of(tool, a=1) == {"ok": True, "capability": "tool", "description": line, "kwargs": "{'a': 1}"}


def test_a_stub_is_flagged_and_bounded():
    """T97: 200 characters of what it was given."""
    tool = prepare(description="says \"hello\" to 'you'")
    assert tool.stub
    assert len(value_of(tool, a="x" * 500)["kwargs"]) == 200


# --- descriptions -----------------------------------------------------------------------------------------------------


def test_a_description_like_a_built_ins_is_refused():
    """T109: nothing may stand in for a built-in by saying the same (W3)."""
    said = refusal("safer_writer", BUILTINS["fs_write"] + " !")["error"]
    assert said.startswith("rejected: ")
    assert "fs_write" in said
    assert prepare("safer_writer", "secure file write operations").description == "secure file write operations"
    assert refusal("x", "anything at all", similar=lambda _a, _b: 0.9)["error"].startswith("rejected: ")
    assert prepare("x", "anything at all", similar=lambda _a, _b: 0.89).name == "x"


def test_a_description_is_one_line_and_bounded():
    assert prepare(description="two\nlines\there").description == "two lines here"
    assert "characters" in refusal(description="x " * synthesis.MAX_DESCRIPTION)["error"]
    assert (
        prepare(description="", code="def tool():\n    '''Counts words.\n\n    More.'''\n    return 1\n").description
        == "Counts words."
    )
    assert prepare("my_tool", "", "return 1").description == "my tool"


# --- specs ------------------------------------------------------------------------------------------------------------


def test_a_spec_has_the_five_keys_and_reads_back():
    """T102: five keys, additional properties open, the time in ISO 8601."""
    tool = prepare(code="return 1")
    made = synthesis.spec(tool, "sig")
    assert {key: made[key] for key in synthesis.KEYS} == {
        "name": "tool",
        "description": "counts the words of a text",
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": True},
        "activated_at": "2027-01-15T08:00:00+00:00",
        "proposed_by": "agent",
    }
    assert synthesis.from_spec("tool", made, tool.code) == tool


@pytest.mark.parametrize(
    "change", [{"name": "other"}, {"activated_at": "soon"}, {"inputSchema": None}, "none", ["list"], None]
)
def test_what_is_no_spec_makes_no_tool(change):
    made = synthesis.spec(prepare(code="return 1"), "sig")
    if isinstance(change, dict):
        made |= change
        if change.get("inputSchema", "") is None:
            del made["inputSchema"]
    else:
        made = change
    assert isinstance(synthesis.from_spec("tool", made, "code"), str)


def test_the_signature_covers_all_that_decides_about_a_tool():
    """T110: a changed description, code, author or flag is another tool."""
    tool = prepare(code="return 1")
    from essentials.records import replace

    others = [
        replace(tool, **change)
        for change in (
            {"name": "b"},
            {"description": "b"},
            {"code": "b"},
            {"by": "b"},
            {"stub": True},
            {"untested": True},
        )
    ]
    assert len({synthesis.sealed(each) for each in [tool, *others]}) == 7
