"""Where a store is: a folder, or the address of a PostgreSQL database; and what of it stays on this machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeAlias

from pyrometer.errors import StoreError
from pyrometer.settings import find_project

Location: TypeAlias = Path | str
"""A folder, or `postgresql://user@host/database`."""

_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
_LEGAL = "legal are a folder and postgresql://USER@HOST/DATABASE; pass --store DIR or --store postgresql://…"


def is_server(location: Location) -> bool:
    """Whether runs are kept by a server and not in a folder.

    >>> is_server("postgresql://ci@db/perf"), is_server(".pyrometer")
    (True, False)
    """
    return isinstance(location, str) and "://" in location


def local_folder(location: Location) -> Path:
    """What concerns this machine alone: announcements, peaks, unfinished work, and runs that wait for their server.

    That is the folder of the store itself; beside the project's settings, else in the working directory, for a server.
    """
    if not is_server(location):
        return Path(location)
    project = find_project(Path.cwd())
    return (Path.cwd() if project is None else project.parent) / ".pyrometer"


def shown(location: Location) -> str:
    """A location as it may be read by anyone: without the password, and without settings other than where the server is.

    >>> shown("postgresql://ci:hunter2@db.example:5432/perf?sslmode=require"), shown("postgresql:///perf?host=/run/pg")
    ('postgresql://ci@db.example:5432/perf', 'postgresql:///perf?host=/run/pg')
    """
    if not is_server(location):
        return str(location)
    scheme, _, rest = str(location).partition("://")
    user, at, place = rest.rpartition("@")
    place, *settings = re.split("[?&#]", place)
    where = [one for one in settings if one.startswith(("host=", "hostaddr=", "port="))]
    return f"{scheme}://{user.partition(':')[0]}{at}{place}{'?' if where else ''}{'&'.join(where)}"


def require_address(location: str) -> str:
    """The address of a database as libpq reads it.

    Raises:
        StoreError: it is of another kind, or holds characters that have to be written otherwise; nothing of it is repeated.
    """
    scheme, _, rest = location.partition("://")
    if scheme not in _SCHEMES:
        raise StoreError(f"{scheme[:20]}://…: no such kind of store; {_LEGAL}")
    authority = re.split("[/?#]", rest)[0]
    if rest.count("@") > 1 or authority.count("@") != rest.count("@") or re.search(r"\s", location):
        raise StoreError(
            f"{scheme}://…: the address cannot be read; in user names and passwords write @ as %40, / as %2F, ? as %3F, "
            "# as %23 and a space as %20"
        )
    return f"postgresql://{rest}"
