"""`pyrometer export`: write a stored run as JSON, Markdown or HTML."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyrometer.cli.pages import require_writable, stored_page
from pyrometer.cli.printing import document_json
from pyrometer.cli.saving import store_option
from pyrometer.errors import InputError

if TYPE_CHECKING:
    from pyrometer.store.run import Run
    from pyrometer.store.store import Store


@click.command()
@click.argument("run")
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="FILE.json, FILE.md or FILE.html."
)
@click.option("--force", is_flag=True, help="Overwrite the file.")
@store_option
def command(store: Store, *, run: str, output: Path, force: bool) -> None:
    """Write a stored run to a file; the extension chooses the format.

    RUN is an id, a prefix of one, or `last`.
    """
    if output.suffix.lower() not in FORMATS:
        raise InputError(
            f"{output}: the extension {output.suffix!r} names no format; legal are {', '.join(FORMATS)}"
        )
    write_file(output, FORMATS[output.suffix.lower()](store, store.load(run)), force=force)


def write_file(file: Path, content: bytes, *, force: bool) -> None:
    """Write a file, complete or not at all.

    Raises:
        InputError: it is there already, or cannot be written.
    """
    from pyrometer.store.artifacts import write_durably

    require_writable(file)
    if file.exists() and not force:
        raise InputError(
            f"{file}: is there already; pass another name, or overwrite it by pyrometer export --force"
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_durably(file, content)
    except OSError as error:
        raise InputError(
            f"{file}: cannot be written: {error.strerror}; pass a name in a folder that can be"
        ) from error


def to_json(run: Run) -> bytes:
    """The document of a run, as its verb printed it with `--json`."""
    return document_json(run.document)


def to_markdown(run: Run) -> bytes:
    """A run as Markdown."""
    from pyrometer.report.markdown import render_document

    return render_document(run.kind, run.document).encode()


def to_html(store: Store, run: Run) -> bytes:
    """A run as one self-contained HTML file."""
    return stored_page(store, run).encode("utf-8", "replace")


FORMATS: dict[str, Callable[[Store, Run], bytes]] = {
    ".json": lambda _, run: to_json(run),
    ".md": lambda _, run: to_markdown(run),
    ".html": to_html,
}
