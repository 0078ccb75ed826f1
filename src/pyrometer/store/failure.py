"""What the system says when a store cannot be used, in one line with the next step."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from pyrometer.errors import StoreError
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
