"""What people may be shown: secrets replaced, control characters made visible, table cells made harmless."""

from __future__ import annotations

import re
import unicodedata

from essentials.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


REDACTED: Final = "[redacted]"
"""What stands where a secret stood: always the same, so that it tells nothing about what it hides."""

# Every pattern below must stay linear on hostile input and stable under a second pass. Hence: possessive quantifiers,
# a literal that anchors each alternative, no look-ahead that scans, and a greedy last class that contains all letters
# and digits, so that no second token can start exactly where one was replaced.
_TOKENS: Final = late(
    r"""(?<![A-Za-z0-9])(?:
      (?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA|AIPA)[A-Z0-9]{16}(?![A-Za-z0-9])   # AWS access key ids
    | gh[pousr]_[A-Za-z0-9]{20,}+ | github_pat_[A-Za-z0-9_]{20,}+              # GitHub
    | gl[a-z]{2,6}-[A-Za-z0-9_-]{20,}+                                         # GitLab
    | xox[a-z]-[A-Za-z0-9-]{10,}+ | xapp-[A-Za-z0-9-]{10,}+                    # Slack
    | (?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,}+ | whsec_[A-Za-z0-9+/=]{20,}+   # Stripe
    | AIza[A-Za-z0-9_-]{30,}+ | ya29\.[A-Za-z0-9_-]{20,}+ | GOCSPX-[A-Za-z0-9_-]{20,}+   # Google
    | npm_[A-Za-z0-9]{30,}+ | pypi-[A-Za-z0-9_-]{40,}+                         # package registries
    | hf_[A-Za-z0-9]{30,}+ | hvs\.[A-Za-z0-9_-]{20,}+                          # Hugging Face, Vault
    | shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}[A-Za-z0-9]*+ | do[opr]_v1_[a-f0-9]{40,}+[A-Za-z0-9]*+   # Shopify, DigitalOcean
    | AGE-SECRET-KEY-1[A-Z0-9]{40,}+[A-Za-z0-9]*+
    )"""
    # A look-behind that also excludes "-" and "_" starts these once in a run of such characters, not at every dash.
    r"""|(?<![A-Za-z0-9_-])(?:
      (?P<sk>sk-[A-Za-z0-9_-]{20,}+)                                           # OpenAI, Anthropic
    | eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+)?+         # JSON web tokens
    | SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+                             # SendGrid
    )""",
    re.VERBOSE,
)
_SLACK_HOOK: Final = late(r"(?<=hooks\.slack\.com/services/)[A-Za-z0-9_/-]{20,}+")
# The body may be cut off, quoted, part of a diff or folded into a JSON string: its lines are what looks like base64 or
# like a header. The markers alone, as code that looks for keys writes them, are no secret.
_GAP: Final = r"""(?:[ \t\r\n"'+>|,\#]|-(?!-)|\\{1,4}[nrt])"""
_KIND: Final = r"(?:[A-Z0-9]{1,12}\ ){0,4}PRIVATE\ KEY(?:\ BLOCK)?-----"
_END: Final = rf"(?:{_GAP}*+ [A-Za-z0-9+/=]{{1,80}}+){{0,3}}+ {_GAP}*+ -?-----END\ {_KIND}"
_PRIVATE_KEY: Final = late(
    rf"""-----BEGIN\ {_KIND}
        (?: (?:{_GAP}++ (?:[A-Za-z0-9+/=]{{16,}}+ | (?:Proc-Type|DEK-Info|Version|Comment):[^\n]*+))++ (?:{_END})?+
          | {_END} )""",
    re.VERBOSE,
)
# The password of ``scheme://user:password@host``; what begins like a placeholder of a template is none.
_URL_PASSWORD: Final = late(
    r"(?P<head>://[^\s/:@\"'<>`]{0,200}+:)(?!\[redacted\]@)(?P<value>[^\s/@\"'<>`{}$%*][^\s/@\"'<>`]*+)(?=@)"
)
_AUTHORIZATION: Final = late(
    r"""(?P<head>\bauthorization\\?["']?[ \t]{0,4}[:=][ \t]{0,4}\\?["']?(?:bearer|basic|token|digest|apikey)[ \t]{1,4})
        (?P<value>[A-Za-z0-9._~+/=-]{6,}+)""",
    re.VERBOSE | re.IGNORECASE,
)
_BEARER: Final = late(r"(?i)(?P<head>\bbearer[ \t]{1,4})(?P<value>[A-Za-z0-9._~+/=-]{16,}+)")
_KEYWORD: Final = (
    r"pass(?:word|wd|phrase)|pwd|secret(?:[_-]?access)?(?:[_-]?key)?|token|api[_-]?key|account[_-]?key"
    r"|access[_-]?key(?:[_-]?id)?|private[_-]?key|signing[_-]?key|encryption[_-]?key|credentials?"
)
_ASSIGNMENT: Final = late(
    rf"""(?P<head>(?P<key>{_KEYWORD})\\?["']?(?P<sep>[ \t]{{0,4}}(?:=>|:=|[:=])[ \t]{{0,4}}))
         (?: \\["'](?P<folded>[^"'\\\n]++)
           | "(?P<double>(?:[^"\\\n]|\\.)++) | '(?P<single>(?:[^'\\\n]|\\.)++) | `(?P<tick>[^`\n]++)
           | (?P<bare>[^\s"'`\\,;<>(){{}}\[\]|&]++) )""",
    re.VERBOSE | re.IGNORECASE,
)
_HAS_KEYWORD: Final = late(_KEYWORD, re.IGNORECASE)
# For these any value will do; the others name things that are often plain words in code ("token", "key").
_ANY_VALUE: Final = late(r"pass|pwd|secret", re.IGNORECASE)
_SHORTEST: Final = 6
# What a generator made is at least this long and no words.
_GENERATED: Final = 16
_PLACEHOLDER: Final = late(
    r"[$%*~./{<]|x{4,}|(?:string|bytes|boolean|number|integer|required|optional|default|unknown)\Z", re.IGNORECASE
)
_IDENTIFIER: Final = late(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
# One pass can uncover what another should have seen; more than two are only needed by texts built for it.
_ROUNDS: Final = 5


def redact(text: str) -> str:
    """Return *text* with every secret-looking value replaced by ``[redacted]``.

    For what is rendered for people (design, section 4); evidence stays exact. Best effort by shape: well-known tokens,
    private keys, credentials in URLs and headers, values assigned to names like ``password``. Linear in the length of
    *text*; applying it twice changes nothing more.
    """
    for _ in range(_ROUNDS):  # pragma: no branch - no text is known that needs them all
        before, text = text, _once(text)
        if text == before:
            break
    return text


MARGIN: Final = 128
"""Characters of which a pattern above needs no more to know a token by its beginning."""


def beginning(text: str, most: int) -> str:
    """Return at most *most* characters of the beginning of *text*, redacted.

    What is cut first and redacted then ends with a part of a secret that no pattern knows. So more is looked at than is
    returned, and what lies within :data:`MARGIN` of the place where the looking ended is not returned.
    """
    if len(text) <= most + MARGIN:
        return redact(text)[:most]
    shown = redact(text[: most + MARGIN])
    return shown[: max(0, min(most, len(shown) - MARGIN))]


def _once(text: str) -> str:
    text = _PRIVATE_KEY.sub(REDACTED, text)
    text = _SLACK_HOOK.sub(REDACTED, _TOKENS.sub(_token, text))
    for pattern in (_URL_PASSWORD, _AUTHORIZATION):
        text = pattern.sub(_keep_head, text)
    return _ASSIGNMENT.sub(_assignment, _BEARER.sub(_bearer, text))


def _keep_head(found: re.Match[str]) -> str:
    return found["head"] + REDACTED


def _token(found: re.Match[str]) -> str:
    # "sk-" begins ordinary hyphenated names too; keys have digits.
    return found[0] if found["sk"] and not _has_digit(found["sk"]) else REDACTED


def _bearer(found: re.Match[str]) -> str:
    return _keep_head(found) if _has_digit(found["value"]) else found[0]


def _has_digit(text: str) -> bool:
    return re.search(r"[0-9]", text) is not None


def _assignment(found: re.Match[str]) -> str:
    """Replace the value of an assignment if it is a secret rather than code."""
    form = found.lastgroup or "bare"
    key, value = found["key"], found[form]
    # Between quotes only a password may be several words; after "token:" a sentence explains it.
    data = _is_literal(found) if form == "bare" else " " not in value or _ANY_VALUE.match(key) is not None
    if not (data and _is_secret(key, value)):
        return found[0]
    return found[0][: found.start(form) - found.start()] + REDACTED


def _is_secret(key: str, value: str) -> bool:
    """Say whether *value*, given to a name that ends in *key*, looks like a secret, not like a placeholder or type."""
    if len(value) < _SHORTEST or _PLACEHOLDER.match(value) or value.startswith(REDACTED):
        return False
    names_itself = _HAS_KEYWORD.search(value) is not None
    if not _has_digit(value):
        return _ANY_VALUE.match(key) is not None and not names_itself
    # A number is a count for a token ("token=400000"), but may well be a password.
    return _ANY_VALUE.match(key) is not None or not (value.isdigit() or (names_itself and len(value) < _GENERATED))


def _is_literal(found: re.Match[str]) -> bool:
    """Say whether the unquoted value is data (a settings file, a query) rather than an expression of a program."""
    value = found["bare"]
    tight = found["sep"] == found["sep"].strip()
    following = found.string[found.end() : found.end() + 1]
    if following in {"(", "["}:
        return False
    # "PASSWORD=x" without blanks is how environments are written, and hardly ever how programs are.
    if not _IDENTIFIER.fullmatch(value) or (tight and found["key"].isupper()):
        return True
    return "." not in value and _is_plain_data(found, following, tight=tight)


def _is_plain_data(found: re.Match[str], following: str, *, tight: bool) -> bool:
    """Decide the same for a value that could be a variable's name as well."""
    value, colon = found["bare"], found["sep"].strip() == ":"
    if _has_digit(value):
        return tight or colon or _ANY_VALUE.match(found["key"]) is not None or len(value) >= _GENERATED
    # "f(password=given)" hands on a variable. "password: swordfish" alone on its line is a settings file; anything more
    # could be an annotation or prose.
    return following not in {")", ","} if tight else colon and following in {"", "\n"}


# Printable by Unicode's books, yet nothing is seen: joiners, fillers, Mongolian selectors, the braille blank.
_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_NOT_PLAIN: Final = late(r"[^ -~]")


def visible(text: str, *, newlines: bool = False) -> str:
    r"""Return *text* with nothing in it that could drive a terminal or hide: such characters become escapes (``\x1b``).

    That holds for control characters, bidirectional overrides, zero-width characters, lone surrogates and unassigned
    code points. A tab and other blanks become a space, a newline stays if *newlines* and else reads ``\n``.
    """
    return _NOT_PLAIN.sub(lambda found: _shown(found[0], newlines=newlines), text)


def _shown(char: str, *, newlines: bool) -> str:
    """Return what is shown for one character outside printable ASCII."""
    if char == "\t" or (char == "\n" and newlines):
        return char.replace("\t", " ")
    if char.isprintable() and char not in _INVISIBLE:
        return char
    return " " if unicodedata.category(char) == "Zs" else ascii(char)[1:-1]
