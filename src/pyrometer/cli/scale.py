"""`pyrometer scale`: step time, memory and cost of a training on many ranks, predicted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyrometer.cli.pages import page_option, write_page
from pyrometer.cli.parameters import DURATION
from pyrometer.cli.printing import full_option, print_result
from pyrometer.cli.progress import progress_bar
from pyrometer.cli.saving import store_options, stored
from pyrometer.errors import InputError
from pyrometer.garbage import uncollected

if TYPE_CHECKING:
    from pyrometer.scaling.record import Links


def _numbers(_context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """`8,64,512`; `none` for an empty list."""
    if text is None or text == "none":
        return None if text is None else ()
    parts = text.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise click.BadParameter(f"got {text!r}; legal are whole numbers, such as 8,64,512", param=parameter)
    return tuple(sorted({int(part) for part in parts}))


@click.command()
@click.argument("target")
@click.option("--ranks", callback=_numbers, metavar="N,N,…", help="Numbers of ranks.  [default: 2,8,64,512]")
@click.option(
    "--parallel",
    type=click.Choice(["ddp", "fsdp"]),
    default="ddp",
    show_default=True,
    help="How the model is distributed.",
)
@click.option(
    "--check",
    "checks",
    callback=_numbers,
    metavar="N,N|none",
    help="Processes to run for real on this machine.  [default: 2]",
)
@click.option(
    "--links",
    "links_file",
    type=click.Path(path_type=Path),
    help="What calibrate --links measured, or you wrote.",
)
@click.option(
    "--price", type=click.FloatRange(min=0, min_open=True), help="Of a rank for an hour, to tell the cost."
)
@click.option("--budget", type=DURATION, help="Time to spend on what is timed.  [default: 40s]")
@page_option
@full_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@store_options
def command(
    store_location: str | None,
    *,
    target: str,
    ranks: tuple[int, ...] | None,
    parallel: str,
    checks: tuple[int, ...] | None,
    links_file: Path | None,
    price: float | None,
    budget: float | None,
    page: Path | None,
    full: bool,
    as_json: bool,
) -> int:
    """Predict the step of TARGET, a training, on many ranks.

    The collectives come from torch itself, computing and links are measured here, and a real run on a few processes checks the
    prediction.
    """
    with uncollected():
        from pyrometer.hardware.environment import read_environment
        from pyrometer.report.target_documents import ScaleDocument
        from pyrometer.scaling.scale import ScaleOptions, scale
        from pyrometer.workload.loading import load_workload
        from pyrometer.workload.output import stdout_to_stderr
        from pyrometer.workload.target import parse_target

    given: dict[str, Any] = {"ranks": ranks, "checks": checks, "budget_s": budget}
    with stdout_to_stderr(), progress_bar() as progress:
        options = ScaleOptions(
            **{name: value for name, value in given.items() if value is not None},
            parallel="ddp" if parallel == "ddp" else "fsdp",
            links=None if links_file is None else _read_links(links_file),
            price_per_hour=price,
            progress=progress,
        )
        scaling = scale(load_workload(parse_target(target)), target, options)
    document = stored(ScaleDocument.of(target, scaling, read_environment()), store_location, kind="scale")
    if page is not None:
        write_page(document, page, store_location=store_location)
    print_result(document, as_json=as_json, full=full)
    return 0


def _read_links(path: Path) -> Links:
    from pyrometer.record import from_json
    from pyrometer.scaling.record import Links

    try:
        return from_json(Links, path.read_bytes())
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}; name a file of calibrate --links"
        ) from error
