"""Large evidence that lies beside a document, and that only its page draws.

A document stays small enough to be printed and compared; slices of a trace or the sources around a finding are kept
with the stored run as one file, and travel in the page.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Annotated

from pyrometer.compiler.graphs.record import Graph
from pyrometer.errors import InputError
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc, from_json, to_json
from pyrometer.trace.view.record import TraceView
from pyrometer.trace.view.table_record import TraceTables

ARTIFACT = "attachments.json.gz"
"""Its name among the files of a run."""

EARLIER_ARTIFACT = "exhibits.json.gz"
"""Its name among the files of earlier runs."""

MOST_RANKS = 8
"""Ranks that a page draws and shows in full; the table of ranks holds all."""


class FunctionLines(Record, frozen=True, kw_only=True):
    """Where a function stands in its file."""

    first: Annotated[int, doc("with its decorators")]
    head: Annotated[int, doc("of its name")]
    last: int


class SourceText(Record, frozen=True, kw_only=True):
    """Lines of a user's file around what the document speaks of."""

    file: Annotated[str, doc("as the document names it")]
    first_line: Annotated[int, doc("number of the first of the lines")]
    lines: list[str]
    functions: Annotated[
        list[FunctionLines], doc("around lines that findings name; the outer ones first")
    ] = []


class PastRun(Record, frozen=True, kw_only=True):
    """An earlier measurement of the same target on a comparable machine."""

    run_id: str
    created: str
    commit_sha: str | None = None
    median_s: Seconds
    low_s: Annotated[Seconds | None, doc("interval of the median")] = None
    high_s: Seconds | None = None
    headline: str = ""
    change: Annotated[
        str | None, doc("slower or faster, where the intervals since the run before lie apart")
    ] = None


class Attachments(Record, frozen=True, kw_only=True):
    """What a page draws beyond its document; every part may be missing."""

    traces: Annotated[list[TraceView], doc("one per rank")] = []
    tables: Annotated[list[TraceTables], doc("one per rank")] = []
    sources: list[SourceText] = []
    missing: Annotated[str | None, doc("why drawings that were kept cannot be shown; the page says so")] = (
        None
    )
    graphs_before: Annotated[list[Graph], doc("of the compilation that the document is compared with")] = []
    history: Annotated[list[PastRun], doc("the oldest first; the document's own run is the last")] = []


def pack(attachments: Attachments) -> bytes:
    """The file that is kept with a run; the same attachments give the same bytes."""
    return gzip.compress(to_json(attachments), compresslevel=6, mtime=0)


def files_of(attachments: Attachments) -> dict[str, bytes | Path]:
    """The files to keep with a run; none where nothing would be drawn."""
    return {} if attachments == Attachments() else {ARTIFACT: pack(attachments)}


def unpack(content: bytes) -> Attachments:
    """Read the file of a run.

    Raises:
        InputError: it is damaged.
    """
    try:
        return from_json(Attachments, gzip.decompress(content))
    except (OSError, EOFError, zlib.error, InputError) as error:
        raise InputError(f"{ARTIFACT} is damaged ({error})") from error
