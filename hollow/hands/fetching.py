"""The one door to the web: a page at an address that the operator has configured, as text, bounded in size and time."""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.request
from html.parser import HTMLParser

from hollow.confine import Refusal
from hollow.minds.bounded import Overdue, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from email.message import Message
    from typing import IO, Any, Final

SECONDS: Final = 10.0
"""Wall clock for one page, drip by drip servers included."""
MAX_BYTES: Final = 2 * 1024 * 1024
"""Bytes of a page that are read."""
_SILENT: Final = frozenset({"script", "style", "noscript", "svg", "template"})
_BLOCKS: Final = frozenset("p div li tr h1 h2 h3 h4 h5 h6 pre br section article td th dt dd title".split())  # noqa: SIM905 - words read better than quotes
_TEXT: Final = ("text/", "application/json", "application/xml", "application/xhtml")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A configured address is one place; wherever it points is not configured."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        """Never follow; urllib then raises the answer as an error."""


def fetched(address: str, configured: Collection[str], seconds: float = SECONDS) -> str:
    """Return the text of the page at *address*, read in *seconds* at most, without markup.

    Raises :class:`Refusal` unless it is one of the *configured* ones, answers in time, and is text.
    """
    if address not in configured or not address.startswith(("http://", "https://")):
        raise Refusal(f"{address} is no configured source.")
    # Nothing of the environment: a proxy named there would see what nobody has configured.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)
    try:
        return within(seconds, lambda: _read(opener, address, seconds), lambda: None)
    except Overdue:
        raise Refusal(f"{address} took longer than {seconds:g} s.") from None
    except urllib.error.HTTPError as why:
        why.close()
        raise Refusal(f"{address} answered with {why.code}.") from None
    except (OSError, http.client.HTTPException, ValueError) as why:
        raise Refusal(f"{address} cannot be read: {why}.") from None


def _read(opener: urllib.request.OpenerDirector, address: str, seconds: float) -> str:
    request = urllib.request.Request(address, headers={"Accept": "text/*", "User-Agent": "agent-box"})  # noqa: S310 - the scheme was checked
    with opener.open(request, timeout=seconds) as page:
        kind = page.headers.get_content_type()
        if not kind.startswith(_TEXT):
            raise Refusal(f"{address} is {kind}, not text.")
        data: bytes = page.read(MAX_BYTES)
        charset = page.headers.get_content_charset() or "utf-8"
    try:
        text = data.decode(charset, "replace")
    except LookupError:
        text = data.decode("utf-8", "replace")
    return plain_text(text) if kind in {"text/html", "application/xhtml+xml"} else text


def plain_text(page: str) -> str:
    """Return what a person would read of the HTML text *page*, one block a line."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    lines = (re.sub(r"\s+", " ", line).strip() for line in "".join(reader.said).split("\n"))
    return "\n".join(line for line in lines if line)


class _Reader(HTMLParser):
    """Collects the words of a page, not its programs and styles."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.said: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:  # noqa: ARG002 - the parser gives them by position
        """Begin a line where a block begins."""
        self._silent += tag in _SILENT
        if tag in _BLOCKS:
            self.said.append("\n")

    def handle_endtag(self, tag: str) -> None:
        """End what was silent."""
        self._silent = max(0, self._silent - (tag in _SILENT))
        if tag in _BLOCKS:
            self.said.append("\n")

    def handle_data(self, data: str) -> None:
        """Keep words."""
        if not self._silent:
            self.said.append(data)
