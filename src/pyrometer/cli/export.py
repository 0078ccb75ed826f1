"""`pyrometer export`: write a stored run as JSON, Markdown or HTML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyrometer.cli.saving import store_option
from pyrometer.errors import InputError

if TYPE_CHECKING:
    from pyrometer.store.run import Run
    from pyrometer.store.store import Store


@click.command()
@click.argument("run")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="FILE.json, FILE.md or FILE.html.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@store_option
def command(store: Store, *, run: str, output: Path, force: bool) -> None:
    """Write a stored run to a file; the extension chooses the format.

    RUN is an id, the beginning of one, or `last`.
    """
    write_file(store.load(run), output, force=force)


def write_file(run: Run, file: Path, *, force: bool) -> None:
    """Write a run in the format that the file's extension names, complete or not at all.

    Raises:
        InputError: an unknown extension, a file that is there already, or one that cannot be written.
    """
    from pyrometer.store.artifacts import write_durably

    content = _render(run, file)
    if file.exists() and not force:
        raise InputError(f"{file}: is there already; pass another name, or overwrite it by pyrometer export --force")
    try:
        write_durably(file, content.encode())
    except OSError as error:
        raise InputError(f"{file}: cannot be written: {error.strerror}; pass a name in a folder that can be") from error


def _render(run: Run, file: Path) -> str:
    extension = file.suffix.lower()
    if extension == ".json":
        return json.dumps(run.document, indent=2, ensure_ascii=False) + "\n"
    if extension == ".md":
        from pyrometer.report.markdown import render_document as to_markdown

        return to_markdown(run.kind, run.document)
    if extension == ".html":
        from pyrometer.report.html import render_document as to_html

        return to_html(run.kind, run.document)
    raise InputError(f"{file}: the extension {extension!r} names no format; legal are .json, .md and .html")
