"""Digests, of what is small without OpenSSL: loading that takes longer than the digests of most commands, and 2 MiB."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # As `typing` has it; this module is loaded by every verb.
if TYPE_CHECKING:
    from hashlib import _Hash, blake2b, sha1
    from hashlib import sha256 as _small
    from io import BufferedReader
    from typing import Final
else:
    # Python's own implementations, by the names that `random` and `hashlib` import them by.
    try:
        from _blake2 import blake2b
        from _sha1 import sha1

        if sys.version_info >= (3, 12):
            from _sha2 import sha256 as _small
        else:
            from _sha256 import sha256 as _small
    except ImportError:
        from hashlib import blake2b, sha1
        from hashlib import sha256 as _small

__all__ = ["LARGE", "blake2b", "of_file", "sha1", "sha256"]

LARGE: Final = 256 * 1024
"""Bytes from which on OpenSSL, which is faster, has earned its loading."""


def sha256(data: bytes = b"") -> _Hash:
    """The SHA-256 of *data*, to be asked or gone on with as one of :mod:`hashlib`."""
    if len(data) < LARGE:
        return _small(data)
    import hashlib

    return hashlib.sha256(data)


def of_file(file: BufferedReader) -> str:
    """The SHA-256 of all of *file*, which is open for reading and was not read yet, in hex."""
    first = file.read(LARGE)
    if len(first) < LARGE:
        return sha256(first).hexdigest()
    import hashlib

    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()
