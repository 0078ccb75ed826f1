"""`pyrometer monitor analyze`: what many gigabytes of structured logs say."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from pyrometer.cli.pages import page_option, write_page
from pyrometer.cli.printing import full_option, print_result
from pyrometer.cli.progress import progress_bar
from pyrometer.cli.saving import provenance
from pyrometer.redaction import redacted


@click.command(name="analyze")
@click.argument("logs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@full_option
@page_option
def command(*, logs: tuple[Path, ...], as_json: bool, full: bool, page: Path | None) -> int:
    """Read LOGS, files of JSON lines (.jsonl, .jsonl.gz) or folders of them, as monitors write them.

    Says how latency went over time and when its level changed, with which features of the requests it goes, what triggers
    compilations and graph breaks, and which errors there are. Memory stays the same for any size.
    """
    from pyrometer.monitor.logs.analyze import analyze

    with progress_bar() as progress:
        found = analyze(logs, progress=lambda share: progress(share, "reading logs"))
    document = msgspec.structs.replace(redacted(found), **provenance(None))
    written = write_page(document, page, store_location=None)
    print_result(document, as_json=as_json, full=full, page=page if written else None)
    return 0
