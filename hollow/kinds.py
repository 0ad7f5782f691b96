"""What sort of file a path is: language, and whether source, test, documentation, configuration, generated."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from essentials.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_SUFFIXES: Final = {
    "python": "py pyi pyx pxd pyw",
    "javascript": "js jsx mjs cjs ts tsx mts cts vue svelte",
    "go": "go",
    "rust": "rs",
    "java": "java groovy",
    "kotlin": "kt kts",
    "csharp": "cs",
    "swift": "swift",
    "c": "c h cc cpp cxx hpp hh hxx ino m mm cu cuh",
    "ruby": "rb rake gemspec",
    "php": "php",
    "shell": "sh bash zsh ksh fish",
    "sql": "sql",
    "lua": "lua",
    "perl": "pl pm",
    "elixir": "ex exs",
    "scala": "scala sc",
    "markdown": "md markdown mdx",
    "rst": "rst",
    "text": "txt adoc asciidoc org tex",
    "config": "toml ini cfg conf yaml yml json json5 xml properties gradle cmake mk tf proto graphql",
    "web": "html htm css scss sass less jinja j2 tmpl erb haml",
}
_LANGUAGE: Final = {suffix: language for language, names in _SUFFIXES.items() for suffix in names.split()}
_BARE_NAMES: Final = {"makefile": "make", "dockerfile": "config", "rakefile": "ruby", "gemfile": "ruby"}
_PROSE: Final = frozenset({"markdown", "rst", "text"})
_CODE: Final = frozenset(_SUFFIXES) - _PROSE - {"config", "web"}


class Kind(StrEnum):
    """What sort of file a path is."""

    SOURCE = "source"
    TEST = "test"
    DOC = "doc"
    CONFIG = "config"
    EXAMPLE = "example"
    GENERATED = "generated"
    OTHER = "other"


def _folder(names: str) -> str:
    return rf"(?:^|/)(?:{names})/"


# The folders that frameworks of many languages look in, then the file names that they take for tests.
_TEST: Final = late(
    _folder(r"tests?|testing|__tests__|specs?|testdata|fixtures|e2e|src/test|\w+[_-]tests?|tests?[_-]\w+")
    + r"|(?:^|/)(?:test_[^/]*|conftest\.py|tests?\.\w+|[^/]*Tests?\.\w+"
    + r"|[^/]*(?:_test|_spec|\.test|\.spec|_unittest)\.\w+)$"
)
# Library code that helps people to test ("flask/testing.py") is source; a folder of that name mostly holds tests.
_CHANGELOG: Final = late(
    r"(?:^|/)(?:changelog|changes|history|news|release|authors|contributors|todo)[^/]*$", re.IGNORECASE
)
_DOC: Final = late(_folder(r"docs?|documentation|doc-src|man|website|changes|changelog\.d|news|newsfragments"))
_EXAMPLE: Final = late(_folder(r"examples?|samples?|demos?|tutorials?|benchmarks?|benches|docs_src"))
# What nobody edits by hand. Lock files are here, not in the configuration: their words are package names.
_GENERATED: Final = late(
    _folder(r"vendor|vendored|_vendor|third_party|node_modules|dist|build|generated|locale|locales|translations")
    + r"|(?:^|/)(?:package-lock\.json|[^/]*\.lock|go\.sum|pnpm-lock\.yaml|[^/]*\.min\.(?:js|css)|[^/]*\.map"
    + r"|[^/]*_pb2(?:_grpc)?\.py|[^/]*\.pb\.go|[^/]*\.snap|[^/]*\.svg|[^/]*\.po)$"
)


@lru_cache(maxsize=1 << 17)
def language(path: str) -> str:
    """Return the language of *path* by its name, "" where it is not known."""
    name = path.rsplit("/", 1)[-1].lower()
    # By name first: Makefile and Dockerfile have no ending to go by.
    return _BARE_NAMES.get(name) or _LANGUAGE.get(name.rsplit(".", 1)[-1] if "." in name else "", "")


@lru_cache(maxsize=1 << 17)
def kind(path: str) -> Kind:
    """Return what sort of file *path* (relative, "/"-separated) is."""
    # The order decides: a vendored test is vendored, a test's README is a test, an example's README is documentation.
    spoken = language(path)
    if _GENERATED.search(path):
        return Kind.GENERATED
    if _is_test(path, spoken):
        return Kind.TEST
    if spoken in _PROSE or _CHANGELOG.search(path) or _DOC.search(path):
        return Kind.DOC
    if _EXAMPLE.search(path):
        return Kind.EXAMPLE
    return _by_language(spoken)


def _is_test(path: str, spoken: str) -> bool:
    # A hidden folder (".github/workflows/test/") holds settings, unless it is program text.
    return (spoken in _CODE or not path.startswith(".")) and bool(_TEST.search(path))


def _by_language(spoken: str) -> Kind:
    if spoken in _CODE:
        return Kind.SOURCE
    return Kind.CONFIG if spoken else Kind.OTHER


def is_code(path: str) -> bool:
    """Whether *path* is a program text in a language whose symbols we know, tests and examples included."""
    return language(path) in _CODE
