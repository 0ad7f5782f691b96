"""How each language writes a definition: one table of line patterns, no parser."""

from __future__ import annotations

import re

from essentials.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_W: Final = r"[^\S\n]"
"""White space within a line."""
_JS_KEYWORDS: Final = r"(?!(?:if|for|while|switch|catch|function|return|with|do|else|new|await|typeof|super)\b)"
_C_KEYWORDS: Final = r"(?!(?:if|for|while|switch|return|else|sizeof|defined|do|case|typedef|catch|using)\b)"
_MODIFIERS: Final = (
    r"(?:(?:public|protected|private|internal|static|final|abstract|synchronized|override|async|virtual|sealed|partial"
    r"|readonly|open|default|native|unsafe|extern|inline|suspend|data|inner|tailrec|operator|const|fileprivate|mutating"
    rf"|export|declare|indirect){_W}+)"
)

# Each pattern names its groups "kind" (optional) and "name"; ^ is the start of a line. Every repetition is bounded by
# the line, and longer lines than 400 characters never get here: no input makes these slow.
_PATTERNS: Final[dict[str, tuple[str, ...]]] = {
    "python": (
        rf"^{_W}*(?:async{_W}+)?(?P<kind>def|class){_W}+(?P<name>\w+)",
        rf"^(?P<name>[A-Za-z_]\w{{2,}}){_W}*(?::[^=\n]*)?=(?!=)",
    ),
    "javascript": (
        rf"^{_W}*(?:export{_W}+)?(?:default{_W}+)?(?:declare{_W}+)?(?:async{_W}+)?(?P<kind>function){_W}*\*?{_W}*(?P<name>[\w$]+)",
        rf"^{_W}*(?:export{_W}+)?(?:default{_W}+)?(?:declare{_W}+)?(?:abstract{_W}+)?(?P<kind>class|interface|enum|type|namespace){_W}+(?P<name>[\w$]+)",
        rf"^{_W}*(?:export{_W}+)?(?P<kind>const|let|var){_W}+(?P<name>[\w$]+){_W}*(?::[^=\n]+)?={_W}*(?:async{_W}*)?(?:function\b|class\b|\(|[\w$]+{_W}*=>|require\()",
        rf"^{_W}*(?:[\w$]+\.)+(?P<name>[\w$]+){_W}*={_W}*(?:async{_W}*)?(?:function\b|\()",
        rf"^{_W}+(?:(?:static|async|get|set|public|private|protected|readonly|override){_W}+)*\*?{_JS_KEYWORDS}(?P<name>[\w$]+){_W}*\([^;\n]*\{{{_W}*$",
        rf"^{_W}*(?P<name>[\w$]+){_W}*:{_W}*(?:async{_W}+)?function\b",
    ),
    "go": (
        rf"^(?P<kind>func){_W}+(?:\([^)\n]*\){_W}*)?(?P<name>\w+)",
        rf"^(?P<kind>type){_W}+(?P<name>\w+)",
        rf"^(?P<kind>var|const){_W}+(?P<name>\w+)",
        rf"^\t(?P<name>\w+){_W}+(?P<kind>struct|interface){_W}*\{{",
    ),
    "rust": (
        rf"^{_W}*(?:pub(?:\([^)\n]*\))?{_W}+)?(?:default{_W}+)?(?:const{_W}+)?(?:async{_W}+)?(?:unsafe{_W}+)?(?:extern{_W}+\"\w+\"{_W}+)?(?P<kind>fn){_W}+(?P<name>\w+)",
        rf"^{_W}*(?:pub(?:\([^)\n]*\))?{_W}+)?(?P<kind>struct|enum|trait|type|mod|union|static|const){_W}+(?P<name>\w+)",
        rf"^{_W}*(?P<kind>macro_rules!){_W}*(?P<name>\w+)",
        rf"^(?P<kind>impl)\b(?:<[^\n{{]*?>)?{_W}+(?:[\w:<>', ]+{_W}for{_W}+)?(?P<name>\w+)",
    ),
    "java": (
        rf"^{_W}*{_MODIFIERS}*(?P<kind>class|interface|enum|record|@interface|trait){_W}+(?P<name>\w+)",
        rf"^{_W}+{_MODIFIERS}+(?:<[^>\n]*>{_W}*)?(?:[\w.]+(?:<[^\n(=]*>)?(?:\[\])*{_W}+)?(?P<name>\w+){_W}*\(",
    ),
    "csharp": (
        rf"^{_W}*{_MODIFIERS}*(?P<kind>class|interface|enum|record|struct|namespace|delegate){_W}+(?P<name>[\w.]+)",
        rf"^{_W}+{_MODIFIERS}+(?:[\w.?]+(?:<[^\n(=]*>)?(?:\[\])*\??{_W}+)?(?P<name>\w+){_W}*(?:\(|\{{|=>)",
    ),
    "kotlin": (
        rf"^{_W}*{_MODIFIERS}*(?P<kind>fun){_W}+(?:<[^>\n]*>{_W}*)?(?:[\w<>?]+\.)*(?P<name>\w+){_W}*\(",
        rf"^{_W}*{_MODIFIERS}*(?:(?:enum|annotation|value){_W}+)?(?P<kind>class|interface|object|typealias){_W}+(?P<name>\w+)",
        rf"^{_MODIFIERS}*(?P<kind>val|var){_W}+(?P<name>\w+)",
    ),
    "swift": (
        rf"^{_W}*(?:@\w+{_W}+)*{_MODIFIERS}*(?:class{_W}+)?(?P<kind>func|class|struct|enum|protocol|extension|actor|typealias){_W}+(?P<name>\w+)",
    ),
    "scala": (rf"^{_W}*(?:\w+{_W}+){{0,4}}?(?P<kind>def|class|trait|object){_W}+(?P<name>\w+)",),
    "c": (
        rf"^{_W}*#{_W}*(?P<kind>define){_W}+(?P<name>\w+)",
        rf"^{_W}*(?:typedef{_W}+)?(?P<kind>struct|union|enum(?:{_W}+class)?|class|namespace){_W}+(?P<name>\w+)[^;\n()]*$",
        rf"^{_C_KEYWORDS}(?:[\w:<>,&*~]+{_W}+){{0,6}}[*&]*{_C_KEYWORDS}(?P<name>[A-Za-z_~][\w:~]*){_W}*\([^;\n]*$",
        rf"^[-+]{_W}*\([^)\n]*\){_W}*(?P<name>\w+)",
    ),
    "ruby": (
        rf"^{_W}*(?P<kind>def){_W}+(?:self\.)?(?P<name>\w+[?!=]?)",
        rf"^{_W}*(?P<kind>class|module){_W}+(?:\w+::)*(?P<name>\w+)",
        rf"^{_W}*(?P<name>[A-Z][A-Z0-9_]+){_W}*=",
    ),
    "php": (
        rf"^{_W}*{_MODIFIERS}*(?P<kind>function){_W}+&?(?P<name>\w+)",
        rf"^{_W}*{_MODIFIERS}*(?P<kind>class|interface|trait|enum){_W}+(?P<name>\w+)",
    ),
    "shell": (
        rf"^{_W}*function{_W}+(?P<name>[\w:.-]+)",
        rf"^{_W}*(?P<name>[\w:.-]+){_W}*\({_W}*\)",
    ),
    "sql": (
        (
            rf"(?i:^{_W}*create{_W}+(?:or{_W}+replace{_W}+)?"
            rf"(?:unique{_W}+|temp(?:orary)?{_W}+|materialized{_W}+|virtual{_W}+)?"
            rf"(?P<kind>table|view|function|procedure|index|trigger|type|schema){_W}+"
            rf"(?:if{_W}+not{_W}+exists{_W}+)?[\"`\[]?(?P<name>[\w.]+))"
        ),
    ),
    "lua": (rf"^{_W}*(?:local{_W}+)?(?P<kind>function){_W}+(?:\w+[.:])*(?P<name>\w+)",),
    "perl": (rf"^{_W}*(?P<kind>sub|package){_W}+(?P<name>[\w:]+)",),
    "elixir": (rf"^{_W}*(?P<kind>defmodule|defp?|defmacro|defprotocol|defimpl){_W}+(?P<name>[\w.?!]+)",),
    "markdown": (rf"^(?P<kind>#{{1,6}}){_W}+(?P<name>[^\n]{{1,120}})",),
    "rst": (r"^(?P<name>\S[^\n]{1,100})\n(?P<kind>[=~^\"*+#-])(?P=kind){2,}$",),
    "config": (rf"^{_W}*\[+(?P<name>[^\]\n]{{1,80}})\]+", r"^(?P<name>[A-Za-z_][\w.-]*):(?:\s|$)"),
    "make": (r"^(?P<name>[A-Za-z][\w./-]*):(?!=)",),
}

PATTERNS: Final = {
    language: tuple(late(pattern, re.MULTILINE) for pattern in patterns) for language, patterns in _PATTERNS.items()
}
"""Language (see :func:`hollow.kinds.language`) to the compiled patterns of its definitions."""

COMMENT: Final = {
    **dict.fromkeys(("python", "ruby", "shell", "perl", "elixir", "config", "make"), "#"),
    **dict.fromkeys(("sql", "lua"), "--"),
}
"""Line comment marks; what is not listed uses ``//`` and ``/* */``."""
