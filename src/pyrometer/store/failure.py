"""What the system says when a store cannot be used, in one line with the next step."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

import msgspec

from pyrometer.errors import StoreError
from pyrometer.redaction import STAND_IN, redacted
from pyrometer.store.run import DamagedRunError

_ELSEWHERE = "pass --store DIR or --no-store"
_FULL = f"the disk is full, so nothing was written; free some space, {_ELSEWHERE}"
_READ_ONLY = f"cannot be written; {_ELSEWHERE}"
_DAMAGED_RUN = "a run is damaged, and others can be read; take the file from a backup, or pass --store DIR"
_BY_ERRNO = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EROFS: _READ_ONLY,
    errno.EACCES: _READ_ONLY,
    errno.EPERM: _READ_ONLY,
    errno.EEXIST: f"a store is a folder; {_ELSEWHERE}",
    errno.ENOTDIR: f"a part of this path is a file; {_ELSEWHERE}",
}
# SQLite's messages are part of its interface; its numeric codes reach Python only from 3.11 on.
_BY_MESSAGE = {
    "is full": _FULL,
    "readonly": _READ_ONLY,
    "not a database": "not a store that Pyrometer can read; move the file away, or pass --store DIR",
    "malformed": "the database is damaged; move the file away, or pass --store DIR",
    "locked": f"another process kept the store locked for too long; try again, {_ELSEWHERE}",
    "unable to open": f"cannot be opened; check that the folder may be written, or {_ELSEWHERE}",
    "disk I/O": f"the disk is full or failing, so nothing was written; {_ELSEWHERE}",
}
# SQLSTATE: what a server says beside it is in the language of the server.
_BY_SQLSTATE = {
    "25006": f"cannot be written: this user, or this server, only reads; {_ELSEWHERE}",
    "42501": f"this user may not do that; ask for the right, or {_ELSEWHERE}",
    "53100": f"the server's disk is full, so nothing was written; {_ELSEWHERE}",
    "55P03": f"another process kept the store locked for too long; try again, {_ELSEWHERE}",
    "22021": f"the text of the run does not fit the database; {_ELSEWHERE}",
}
# The server is leaving, or has no room: the same statement may succeed later.
_AWAY = ("08", "57P", "53300", "53200")


class UnreachableError(StoreError):
    """A server that does not answer: what was to be stored there may be sent later."""


@contextmanager
def server_errors(name: str, address: str) -> Iterator[None]:
    """Turn what a server says, and what hinders us from hearing it, into a `StoreError` without secrets.

    Args:
        name: of the server, as it may be read by anyone.
        address: with its password, of which nothing is repeated.

    Raises:
        StoreError: anything of that kind happened inside; an `UnreachableError`, the server did not answer.
    """
    from sqlalchemy.exc import DBAPIError, OperationalError

    try:
        yield
    except OSError as error:
        raise StoreError(f"{error.filename or name}: {error.strerror or error}: {_ELSEWHERE}") from error
    except msgspec.MsgspecError as error:
        raise DamagedRunError(f"{name}: {error}: {_DAMAGED_RUN}") from error
    except DBAPIError as error:
        state = getattr(error.orig, "sqlstate", None) or ""
        said = redact_address((str(error.orig).strip() or "the connection is lost").splitlines()[0], address)
        # What libpq raises before it is connected has no state, and neither has a connection that broke.
        away = state.startswith(_AWAY) if state else isinstance(error, OperationalError)
        if away:
            raise UnreachableError(
                f"{name}: {said}: is the server running, and the user known there?"
            ) from None
        raise StoreError(f"{name}: {said}: {_BY_SQLSTATE.get(state, _ELSEWHERE)}") from None


def redact_address(message: str, address: str) -> str:
    """A message without the password of an address, as written and as the server gets it.

    >>> redact_address('failed: "hun@ter2" is wrong', "postgresql://ci:hun%40ter2@db/perf")
    'failed: "REDACTED" is wrong'
    """
    parts = urlsplit(address)
    secrets = [unquote(parts.password or ""), *parse_qs(parts.query).get("password", [])]
    for secret in {form for one in secrets for form in (one, quote(one, safe=""))} - {""}:
        message = message.replace(secret, STAND_IN)
    return redacted(message)


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn errors of the system and of the database into a `StoreError` that names the path.

    Raises:
        StoreError: anything of that kind happened inside; a `DamagedRunError`, what a run holds cannot be decoded.
    """
    from sqlalchemy.exc import DBAPIError  # takes longer to import than a small trace to report on

    try:
        yield
    except OSError as error:
        where = Path(error.filename) if isinstance(error.filename, str) else path
        said = error.strerror or str(error)
        raise StoreError(f"{where}: {said}: {_BY_ERRNO.get(error.errno or 0, _ELSEWHERE)}") from error
    except msgspec.MsgspecError as error:
        raise DamagedRunError(f"{path}: {error}: {_DAMAGED_RUN}") from error
    except DBAPIError as error:
        said = str(error.orig).splitlines()[0]
        if "decode to UTF-8" in said:
            raise DamagedRunError(f"{path}: {said}: {_DAMAGED_RUN}") from error
        known = (advice for needle, advice in _BY_MESSAGE.items() if needle in said)
        raise StoreError(f"{path}: {said}: {next(known, _ELSEWHERE)}") from error
