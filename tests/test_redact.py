"""What people are shown: secrets gone, code left alone, nothing that drives a terminal or a Markdown reader."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agents.redact import REDACTED, beginning, redact, visible

B64 = "MIIEpAIBAAKCAQEAx1y2z3A4b5C6d7E8f9G0hIjKlMnOpQrStUvWxYz0123456789"
HEX = "9fceb02d0ae598e95dc970b74767f19372d61af8"
ALNUM = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5hJ7k"


def key(kind: str, body: str = f"{B64}\n{B64}\nAbC=") -> str:
    # Assembled here: a scanner of the repository should not find a private key in its tests.
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----"


# Text with one secret, and the secret: it must be gone, what stands around it must stay.
SECRETS = [
    ("id {} here", "AKIAIOSFODNN7EXAMPLE"),
    ("{}", "ASIA" + "Q" * 16),
    ("aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("AWS_SECRET_ACCESS_KEY={}\nnext", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"),
    ("remote: {}.", "ghp_" + ALNUM[:36]),
    ("{}", "gho_" + ALNUM[:36]),
    ("{}", "github_pat_11ABCDEFG0" + "_" + ALNUM),
    ("<{}>", "glpat-" + ALNUM[:20]),
    ("{}", "glptt-" + HEX),
    ("slack {} x", "xoxb-123456789012-" + ALNUM[:24]),
    ("{}", "xapp-1-A0123-456-" + ALNUM[:10]),
    ("https://hooks.slack.com/services/{} now", "T00000000/B00000000/" + ALNUM[:24]),
    ("{}", "sk_live_" + ALNUM[:24]),
    ("{}", "rk_test_" + ALNUM[:24]),
    ("{}", "whsec_" + ALNUM[:32]),
    ("openai {}", "sk-" + ALNUM),
    ("{},", "sk-proj-" + ALNUM + "-_" + ALNUM),
    ("'{}'", "sk-ant-api03-" + ALNUM + "-AA"),
    ("{}", "AIza" + ALNUM[:35]),
    ("{}", "ya29." + ALNUM),
    ("{}", "npm_" + ALNUM[:36]),
    ("//host/:_authToken={}", "npm_" + ALNUM[:36]),
    ("//host/:_authToken={}", "12345678-1234-1234-1234-123456789012"),
    ("{}", "pypi-" + ALNUM * 2),
    ("{}", "hf_" + ALNUM[:34]),
    ("{}", "hvs." + ALNUM),
    ("{}", "SG." + ALNUM[:22] + "." + ALNUM),
    ("{}", "dop_v1_" + HEX + HEX[:24]),
    ("{}", "shpat_" + HEX[:32]),
    ("{}", "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2),
    ("jwt {} end", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"),
    ("{}", "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0NTY3ODkwIn0."),
    ("before\n{}\nafter", key("")),
    ("before {} after", key("RSA ")),
    ("{}", key("OPENSSH ")),
    ("{}", key("RSA ", f"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{HEX[:32].upper()}\n\n{B64}\n{B64}")),
    ('{{"key": "{}"}}', key("").replace("\n", "\\n")),
    ('{{"key": "{}"}}', key("").replace("\n", "\\\\n")),
    ("{}", key("EC ").replace("\n", "\r\n")),
    ("+{}", key("RSA ").replace("\n", "\n+")),
    ("-{}", key("RSA ").replace("\n", "\n-")),
    ("{}", key("", B64 + "\n" + B64).rpartition("\n")[0]),
    ("password={}", "hunter2"),
    ("password={}&user=bob", "swordfish"),
    ("password: {}\nuser: bob", "swordfish"),
    ("password: {}", "correct-horse"),
    ('password = "{}"', "correct horse battery staple"),
    ("password = '{}'", 'it"s-a-riddle'),
    ('password="{}"', "it's-a-riddle"),
    ('password = "{}"', 'quo\\"ted-inside'),
    ("DB_PASSWORD={}", "letmein"),
    ("export PGPASSWORD={}; psql", "letmein"),
    ("passwd = {}", "hunter2"),
    ("PWD_SECRET = {}", "hunter22"),
    ('"password": "{}",', "swordfish"),
    ('{{\\"password\\":\\"{}\\"}}', "hunter2x"),
    ("token: {}", "abc123def"),
    ("token={} ", "a1b2c3d4e5"),
    ("'token' => '{}',", "a1b2c3d4e5"),
    ("api_key: `{}`", "a1b2c3d4e5"),
    ('apiKey := "{}"', "a1b2c3d4e5"),
    ("X-Api-Key: {}", HEX),
    ("client_secret={}", "Zk9-aa_bb.cc"),
    ("AccountKey={};Endpoint=x", "q83vEjRWeJCrze8SNFZ4kA=="),
    ("Authorization: Bearer {}", "abcdef"),
    ("curl -H 'Authorization: Bearer {}' x", ALNUM),
    ('"Authorization": "Basic {}"', "dXNlcjpwYXNzd29yZA=="),
    ("authorization: token {}", HEX),
    ("sent Bearer {} to it", ALNUM),
    ("postgres://bob:{}@db.example/x", "s3cr3t"),
    ("see https://bob:{}@github.com/x.git", "p%40ss!w:rd"),
    ("redis://:{}@cache", "letmein"),
]


@pytest.mark.parametrize(("around", "secret"), SECRETS, ids=range(len(SECRETS)))
def test_a_secret_is_replaced_and_nothing_else(around: str, secret: str) -> None:
    assert redact(around.format(secret)) == around.format(REDACTED)


INNOCENT = """\
password = get_password()
password = getpass.getpass()
def login(user: str, password: str, token: Optional[str] = None) -> Token:
def f(password: SecretStr, secret: bytes = b"", api_key: str | None = None):
connect(password=password, token=token, secret=derive, api_key=settings.API_KEY2)
client = Client(token=os.environ["TOKEN"], api_key=os.getenv("API_KEY"))
token = tokens[0]; token = next(tokens); token = token1
token: Identifier
secret = sha256(data)
secret: bool = False
if password is None or password == "" or password == other:
max_tokens: 4096, "num_tokens": 123456, token_count=1234567
token = 400000
"token": "identifier", "password": "string", 'secret': 'required'
"token": "used to authenticate 2 users"
password: $DB_PASSWORD, password: ${{ secrets.DB_PASSWORD }}, PASSWORD=%s, password="{password}"
password: "********", password=xxxxxxxx, token: <your-token-1>
token_file: /run/secrets/token1, password: /run/secrets/db1, secret=~/x1/y2
The password: it must be long. The token: three letters and 2 digits. Bearer authentication is used.
Authorization: required. Authorization header, authorization: none
commit 9fceb02d0ae598e95dc970b74767f19372d61af8 (HEAD -> main), index 83db48f..bf2a3c1 100644
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
uuid 123e4567-e89b-12d3-a456-426614174000, 2025-11-22T14:30:00Z, 25-11-22_1430__fix-auth__a1b2
src/auth/password_reset.py:120: token = self.tokens.pop()
https://example.com:8080/a/b?x=1#frag, git@github.com:a/b.git, ssh://git@host/x, http://[::1]:80/, user@host:path
postgres://{user}:{password}@{host}/db, "postgres://$USER:$PASS@db", mysql://localhost:3306/x@y
if "-----BEGIN PRIVATE KEY-----" in text and not text.endswith("-----END PRIVATE KEY-----"):
-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAx1y2z3A4b5C6d7E8f9G0
-----END PUBLIC KEY-----
sk-estimator-doc-link-very-long-name sk-fold and task-sk-1 mask-abcdefghijklmnopqrstuvwxyz0123
npm_config_registry, npm_package_name, github_pat, ghp_, xoxb-, AKIA, AKIAshort, eyJhbGciOiJIUzI1NiJ9
class TokenError(Exception): pass
diff --git a/tests/test_secret.py b/tests/test_secret.py
x = a["password"]; y = form.password.data; del session['token']; keys = {'password', 'token'}
"""


@pytest.mark.parametrize("line", INNOCENT.splitlines())
def test_ordinary_code_and_prose_are_left_alone(line: str) -> None:
    assert redact(line) == line


def test_the_whole_corpus_at_once() -> None:
    assert redact(INNOCENT) == INNOCENT
    text = "\n".join(around.format(secret) for around, secret in SECRETS)
    assert not [secret for _, secret in SECRETS if secret in redact(text)]


PIECES = [
    *(around.format(secret) for around, secret in SECRETS),
    *(secret for _, secret in SECRETS),
    *INNOCENT.splitlines(),
    REDACTED, "[", "]", "password=", "token:", "secret => ", "'", '"', "\\", "`", "\n", " ", ",", "://", ":", "@", "://u:", "bearer ", "Authorization: Basic ",
    "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "sk-", "eyJ", ".", "-", "_", "A" * 20, "abc1234", "/", "(",
]  # fmt: skip


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=9).map("".join) | st.text(max_size=60))
@example("://u:token=ab/cd1234,@h")
@example("password=AKIAIOSFODNN7EXAMPLE password=[redacted]")
def test_a_second_time_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from(INNOCENT.splitlines()), max_size=3).map("\n".join),
    st.sampled_from(SECRETS[4:11] + SECRETS[12:21]),
)
def test_a_token_is_found_wherever_it_stands(before: str, sample: tuple[str, str]) -> None:
    assert sample[1] not in redact(f"{before}\n{sample[1]}\n{before}")


HOSTILE = [
    "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n", "-----BEGIN A A A A ", 'PRIVATE KEY-----\n"', "eyJaaaaaaaa-", "eyJaaaaaaaa.",
    "sk-", "x-sk-a1", "SG.aaaaaaaaaaaaaaaa.", 'token="', "token='\"", 'token=\\"', "token:`", "password = \\", "password=", "password", "secret_access_key",
    "://", "://a:", "://a:b", "bearer ", "authorization: bearer ", "hooks.slack.com/services/", "A", "-", " ", "\\n", "ghp_", REDACTED, "password=abcdef ",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_text_costs_linear_time(unit: str) -> None:
    # A quarter of a megabyte of it: linear is a tenth of a second, quadratic would be minutes.
    start = time.process_time()
    redact(unit * (250_000 // len(unit)))
    assert time.process_time() - start < 1


def test_a_megabyte_of_it_all_takes_a_moment() -> None:
    megabyte = "".join(unit * 500 for unit in HOSTILE)
    start = time.process_time()
    redact(megabyte * (1_000_000 // len(megabyte) + 1))
    assert time.process_time() - start < 3


# --- What a terminal may get ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ~ text", "plain ~ text"),
        ("é 日本 🎉 ½", "é 日本 🎉 ½"),
        ("\x1b[31mred\x1b]0;title\x07", r"\x1b[31mred\x1b]0;title\x07"),
        ("a\x00b\x7fc\x85d\x9be", r"a\x00b\x7fc\x85d\x9be"),
        ("a\tb\u00a0c\u3000d", "a b c d"),
        ("one\r\ntwo", r"one\r\ntwo"),
        ("user\u202egnp.exe", r"user\u202egnp.exe"),
        ("\u2066x\u2069\u200f", r"\u2066x\u2069\u200f"),
        ("zero\u200bwidth\u200d\ufeff\u00ad", r"zero\u200bwidth\u200d\ufeff\xad"),
        ("\u3164\u2800\u115f", r"\u3164\u2800\u115f"),
        ("line\u2028sep\u2029", r"line\u2028sep\u2029"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_what_drives_a_terminal_is_shown_instead(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_newlines_stay_where_asked() -> None:
    assert visible("a\nb\x1b\n", newlines=True) == "a\nb\\x1b\n"
    assert visible("a\nb") == r"a\nb"


FORBIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


@settings(max_examples=200)
@given(st.text() | st.text("\x1b\u202e\u200b\r\n\t\x9b\ud800 a"), st.booleans())
def test_nothing_visible_is_a_control(text: str, newlines: bool) -> None:
    shown = visible(text, newlines=newlines)
    assert not {unicodedata.category(char) for char in shown if char != "\n"} & FORBIDDEN
    assert shown.count("\n") == (text.count("\n") if newlines else 0)
    assert visible(shown, newlines=newlines) == shown
    assert shown.encode("utf-8").decode("utf-8") == shown


@pytest.mark.parametrize(("text", "most", "shown"), [
    ("short", 10, "short"),
    ("a" * 500, 10, "a" * 10),
    ("x " * 100 + "ghp_0123456789abcdefghij0123" + " y" * 100, 210, "x " * 100 + REDACTED),
    (" " * 3990 + "ghp_0123456789abcdefghij0123" * 9, 4000, " " * 3990 + REDACTED),
    ("ghp_" + "a1" * 200 + " x" * 400, 200, REDACTED + " x" * 400),
])  # fmt: skip
def test_a_beginning_holds_no_part_of_a_secret_that_was_cut(text: str, most: int, shown: str) -> None:
    assert beginning(text, most) == shown[: len(beginning(text, most))]
    assert len(beginning(text, most)) <= most
    assert "0123456789" not in beginning(text, most)
