"""`-o`: a page is written where the user asked, for every verb in the same way.

* The place is looked at before anything is measured. Folders that are missing are made; a folder, a place that cannot be
  written, and a file that is not a page of ours are refused.
* A page that cannot be written after all costs no result: the verb prints it, and the error is raised when it has ended.
* The page of a run that was stored is made from the store, so that `pyrometer show RUN -o FILE` gives the same bytes.
"""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyrometer.errors import InputError, StoreError, UsageError

if TYPE_CHECKING:
    from pyrometer.report.attachments import Attachments
    from pyrometer.report.documents import Document
    from pyrometer.store.run import Run
    from pyrometer.store.store import Store

    _PathType = click.ParamType[Any]
else:  # generic only in newer releases of click
    _PathType = click.ParamType

MARK = b'<meta name="generator" content="Pyrometer">'
"""What every page of ours holds near its beginning."""

_FAILURE = "pyrometer.page_error"
_HEAD_BYTES = 4096
_OTHER_FORMATS = {".json": "--json prints the data", ".md": "pyrometer show RUN --markdown prints that"}


class _PagePlace(_PathType):
    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:  # noqa: ARG002
        return page_place(os.fspath(value))


def page_option(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add `-o FILE`; the verb gets `page`, which is `None` without it, and hands it to `write_page`."""

    @click.option(
        "-o", "--html", "--output", "page", type=_PagePlace(), help="Write the HTML report to this file."
    )
    @functools.wraps(verb)
    def writing(**flags: Any) -> Any:
        code = verb(**flags)
        failure: InputError | None = click.get_current_context().meta.get(_FAILURE)
        if failure is not None:
            raise failure
        return code

    return writing


def write_page(
    document: Document,
    path: Path | None,
    attachments: Attachments | None = None,
    *,
    store_location: str | None,
) -> bool:
    """Write the page of a result, if one was asked for.

    Args:
        document: the result; where it was stored, with the id of its run.
        path: where to; `None` writes nothing.
        attachments: what it draws, for a result that was not stored.
        store_location: folder of the store; `None` with `--no-store`.

    Returns:
        Whether it was written; what went wrong is raised when the verb has ended.
    """
    if path is None:
        return False
    from pyrometer.report.html import page, save_page

    try:
        require_replaceable(path)
        save_page(_page_if_stored(document, store_location) or page(document, attachments), path)
    except InputError as error:
        click.get_current_context().meta[_FAILURE] = error
        return False
    return True


def page_place(text: str) -> Path:
    """Where a page will be written.

    Raises:
        UsageError: it asks for something other than a file with a page.
        InputError: a page cannot be written there, or something else stands there.
    """
    if text == "-":
        raise UsageError("-o -: stdout has the summary; name a file, such as report.html")
    path = Path(text)
    other = _OTHER_FORMATS.get(path.suffix.lower())
    if other is not None:
        raise UsageError(f"-o {text}: a page is HTML, and {other}; name a file such as report.html")
    if text.endswith(("/", os.sep)):
        raise InputError(f"{text}: names a folder; name a file in it, such as {text}report.html")
    require_writable(path)
    require_replaceable(path)
    return path


def require_writable(path: Path) -> None:
    """Refuse a place at which no file can be written, without writing one; folders that are missing can be made.

    Raises:
        InputError: it is a folder, or it cannot be written.
    """
    try:
        if path.resolve().is_dir():
            raise InputError(f"{path}: is a folder; name a file in it, such as {path / 'report.html'}")
        if path.exists() and not path.is_file():
            reason = None if os.access(path, os.W_OK) else errno.EACCES  # /dev/stdout and its like
        else:
            reason = _obstacle(path.resolve().parent)
    except (OSError, RuntimeError) as error:  # a name that is too long, or links that lead in a circle
        raise InputError(
            f"{path}: cannot be written ({getattr(error, 'strerror', None) or error}); pass another place"
        ) from error
    if reason is not None:
        raise InputError(f"{path}: cannot be written ({os.strerror(reason)}); pass another place")


def require_folder(folder: Path) -> None:
    """Refuse a folder in which nothing can be written, without making it.

    Raises:
        InputError: it, or the folder in which it would be made, cannot be written.
    """
    reason = _obstacle(folder.resolve())
    if reason is not None:
        raise InputError(f"{folder}: cannot be written ({os.strerror(reason)}); pass another place")


def _obstacle(folder: Path) -> int | None:
    """What keeps us from making a file in a folder, or from making the folder."""
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not there.is_dir():
        return errno.ENOTDIR
    if os.access(there, os.W_OK | os.X_OK):
        return None
    return errno.EROFS if os.statvfs(there).f_flag & os.ST_RDONLY else errno.EACCES


def require_replaceable(path: Path) -> None:
    """Refuse to put a page in the place of a file that is no page of ours; an empty file may be replaced.

    Raises:
        InputError: it holds something else.
    """
    if not path.is_file():
        return
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be replaced ({error.strerror}); pass another name") from error
    if head and MARK not in head:
        raise InputError(f"{path}: is there already and is no report of ours; pass another name")


def stored_page(store: Store, run: Run) -> str:
    """The page of a stored run, with what was kept beside it and how the target did before.

    Raises:
        InputError: the run is damaged, or of a kind that has no page.
        StoreError: the store cannot be read.
    """
    from pyrometer.report.attaching import stored_attachments
    from pyrometer.report.html import render_document

    return render_document(run.kind, run.document, stored_attachments(store, run))


def _page_if_stored(document: Document, store_location: str | None) -> str | None:
    """The page as `pyrometer show` makes it; `None` where the result was not stored, or is not found there."""
    if store_location is None or document.run_id is None:
        return None
    from pyrometer.store.store import Store

    try:
        store = Store.open(store_location, create=False)
        return stored_page(store, store.load(document.run_id))
    except (StoreError, InputError):
        return None  # it was stored a moment ago: a page without its history beats none
