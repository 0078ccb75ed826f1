"""The head of what `--json` prints.

History of `schema_version`: 1 is the first. In 2, documents about one program hold their `evidence` and `diagnosis` as
they are. It grows when a key is removed or changes its meaning; added keys leave it alone.
"""

from __future__ import annotations

from typing import Annotated

from pyrometer.record import Record, doc
from pyrometer.version import __version__

SCHEMA_VERSION = 2


class Document(Record, frozen=True, kw_only=True):
    """The head of every document."""

    schema_version: int = SCHEMA_VERSION
    tool_version: str = __version__
    run_id: Annotated[str | None, doc("id of the stored run; null with --no-store")] = None
    created: Annotated[str | None, doc("when the result was taken, RFC 3339 in UTC")] = None
    command: Annotated[list[str] | None, doc("the command line that made it; null in library use")] = None
