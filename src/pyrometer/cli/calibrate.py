"""`pyrometer calibrate`: what difference this machine can resolve, and its compute and bandwidth peaks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyrometer.cli.parameters import DURATION
from pyrometer.cli.printing import print_document, print_result
from pyrometer.cli.progress import progress_bar
from pyrometer.cli.saving import store_options, stored
from pyrometer.errors import ExitCode, InputError, UsageError

if TYPE_CHECKING:
    from pyrometer.bench.calibration import Calibration

QUIET_CPUS = 0.25
LINKS_BUDGET_S = 10.0


@click.command()
@click.argument("target", required=False)
@click.option("--budget", type=DURATION, help="Time to spend, such as 60s.  [default: 40s]")
@click.option("--device", default="cpu", help="Device for the built-in programs and the peaks, such as cuda.")
@click.option("--no-peaks", is_flag=True, help="Do not measure the peaks.")
@click.option("--predictions", is_flag=True, help="Show how well findings predicted what `tune` measured.")
@click.option(
    "--links",
    "links_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Only measure what joins two processes of this machine, and write it, for scale --links.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@store_options
def command(
    store_location: str | None,
    *,
    target: str | None,
    budget: float | None,
    device: str,
    no_peaks: bool,
    predictions: bool,
    links_file: Path | None,
    as_json: bool,
) -> int:
    """Compare programs with themselves (A/A) to find the smallest difference that this machine can resolve.

    TARGET replaces the three built-in programs.
    """
    if predictions:
        return _predictions(store_location, as_json=as_json)
    if links_file is not None:
        return _links(links_file, budget)
    from pyrometer.bench.calibrate import DEFAULT_BUDGET_S, calibrate
    from pyrometer.bench.clock import usable_device
    from pyrometer.hardware.environment import read_environment
    from pyrometer.report.target_documents import CalibrationDocument
    from pyrometer.workload.loading import load_workload
    from pyrometer.workload.output import stdout_to_stderr
    from pyrometer.workload.target import parse_target

    if budget is not None and budget <= 0:
        raise UsageError(f"--budget: got {budget:g} s; legal is above 0 s, such as 60s")
    with stdout_to_stderr(), progress_bar() as progress:
        calibration = calibrate(
            [load_workload(parse_target(target))] if target else None,
            budget_s=budget or DEFAULT_BUDGET_S,
            peaks=not no_peaks,
            device=usable_device(device),
            progress=progress,
        )
        environment = read_environment()
    _keep_peaks(calibration, environment.fingerprint, store_location)
    shown = target or "built-in programs"
    document = CalibrationDocument(target=shown, calibration=calibration, environment=environment)
    document = stored(document, store_location, kind="calibration")
    print_result(document, as_json=as_json)
    return 0


def _predictions(store_location: str | None, *, as_json: bool) -> int:
    """What findings predicted of levers, beside what searches on this machine measured."""
    from pyrometer.report.tuned_predictions import PredictionsDocument, lines, stored_predictions
    from pyrometer.store.store import Store

    if store_location is None:
        raise UsageError("--predictions reads the store; leave --no-store out")
    document = PredictionsDocument(predictions=stored_predictions(Store.open(store_location, create=False)))
    if as_json:
        print_document(document)
    else:
        click.echo("\n".join(lines(document.predictions)))
    return ExitCode.OK if document.predictions.levers else ExitCode.UNDECIDED


def _links(file: Path, budget_s: float | None) -> int:
    """Measure the links between processes, and write them."""
    from pyrometer.files import replacing
    from pyrometer.scaling.scale import LINK_PROCESSES, measured_links, speed

    if not file.resolve().parent.is_dir():
        raise InputError(
            f"{file}: there is no folder {file.resolve().parent}; name a file in a folder that exists"
        )
    links = measured_links(LINK_PROCESSES, budget_s or LINKS_BUDGET_S)
    with replacing(file) as written:
        written.write_text(links.to_json())
    click.echo(
        f"{links.ranks_measured} processes over {links.backend}: {speed(links.inside)}; written to {file}"
    )
    return ExitCode.OK


def _keep_peaks(calibration: Calibration, fingerprint: str, store_location: str | None) -> None:
    """Keep peaks that were taken on a quiet machine beside the store, for rooflines."""
    from pyrometer.hardware.peak_cache import save_cached
    from pyrometer.store.place import local_folder

    peaks = calibration.peaks
    if peaks is None or store_location is None:
        return
    load = peaks.conditions.competing_load if peaks.conditions else None
    if load is None or load < QUIET_CPUS:
        save_cached(peaks, fingerprint, local_folder(store_location) / "peaks")
