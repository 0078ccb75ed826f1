"""`pyrometer tune`: try what could help, keep what is proved, write the recipe; or apply and verify one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyrometer.cli.interrupts import finishing
from pyrometer.cli.pages import page_option, write_page
from pyrometer.cli.parameters import BYTES, DURATION, SHARE
from pyrometer.cli.printing import full_option, print_result
from pyrometer.cli.progress import progress_bar
from pyrometer.cli.saving import store_options, stored
from pyrometer.errors import ExitCode, StoreError, UsageError

if TYPE_CHECKING:
    from pyrometer.tuning.outcome import Tuning
    from pyrometer.tuning.search.earlier import Earlier
    from pyrometer.tuning.search.settings import TuneSettings
    from pyrometer.workload.target import Target

INTERRUPTED = 130
SUFFIX = ".recipe.toml"


@click.command()
@click.argument("target", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--latency", type=DURATION, help="Goal for the median step, such as 10ms.")
@click.option("--memory", type=BYTES, help="Limit of the peak memory, such as 2GiB.")
@click.option("--budget", type=DURATION, help="Time for all of it.  [default: 10m]")
@click.option("--tolerance", type=SHARE, help="Largest error of inexact levers, such as 1%.  [default: 3%]")
@click.option("--metric", metavar="FILE:FUNCTION", help="Your metric of a model; more is better.")
@click.option("--allow", type=click.Choice(["semantic"]), help="Try levers that change what is computed.")
@click.option("--only", multiple=True, metavar="LEVER", help="Try only this lever; may be repeated.")
@click.option("--without", multiple=True, metavar="LEVER", help="Leave this lever out; may be repeated.")
@click.option(
    "--stages", metavar="A,B", help="Go in stages: basic, memory, compute, device, compile, deploy."
)
@click.option(
    "--nproc",
    type=int,
    help="Run the script on so many ranks, by torchrun, and try how it spreads its model over them.",
)
@click.option(
    "--cluster", metavar="ADDRESS", help="Try levers on the machines of ray://HOST:10001, or by local."
)
@click.option("--resume", is_flag=True, help="Go on with a search that ended early.")
@click.option("--recipe", type=click.Path(path_type=Path), help="Where the recipe is written, or read from.")
@click.option(
    "--apply",
    "apply_recipe",
    is_flag=True,
    help="Apply --recipe to TARGET, and compare results; with --nproc: run the script with it.",
)
@click.option("--verify", is_flag=True, help="Prove --recipe again, here and now.")
@click.option("--list", "list_levers", is_flag=True, help="List all levers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@full_option
@page_option
@store_options
def command(
    store_location: str | None,
    *,
    target: str | None,
    arguments: tuple[str, ...],
    recipe: Path | None,
    page: Path | None,
    full: bool,
    as_json: bool,
    list_levers: bool,
    **flags: Any,
) -> int:
    """Try every change that could make TARGET faster, one at a time; keep what is proved.

    Each lever runs in a process of its own, must compute what the program computed before, and must win in a paired
    comparison. The recipe that is left is proved again in fresh processes on fresh inputs. With --nproc, TARGET is a
    script, run as it is; put its arguments after --.
    """
    if list_levers:
        _print_levers(as_json=as_json)
        return ExitCode.OK
    if target is None:
        raise UsageError("no TARGET: name what to tune, such as model.py:workload; --list names all levers")
    if flags["cluster"] is not None and (flags["apply_recipe"] or flags["verify"]):
        raise UsageError(
            "--cluster tries levers; --apply and --verify are for this machine: leave out one of them"
        )
    from pyrometer.workload.output import stdout_to_stderr
    from pyrometer.workload.target import parse_target

    parsed = parse_target(target, arguments)
    place = recipe or Path(_stem(parsed) + SUFFIX)
    if flags["nproc"] is not None and flags["apply_recipe"]:
        from pyrometer.tuning.ranks.applying import run_with

        return run_with(place, parsed, flags["nproc"])
    with stdout_to_stderr(), progress_bar() as progress:
        if flags["apply_recipe"] or flags["verify"]:
            tuning = _verified(parsed, place, flags, store_location, progress)
        else:
            tuning = _searched(parsed, place, flags, store_location, progress)
    with finishing():
        tuning = stored(tuning, store_location, kind="tune")
        written = write_page(tuning, page, store_location=store_location)
        print_result(tuning, as_json=as_json, full=full, page=page if written else None)
    return _exit_code(tuning)


def _stem(target: Target) -> str:
    """`model.py:workload` is written to `model-workload.recipe.toml`, in the working directory."""
    name = Path(target.place).stem if target.kind != "module" else target.place.rpartition(".")[2]
    return f"{name}-{target.factory}" if target.factory else name


def _settings(flags: dict[str, Any]) -> TuneSettings:
    from pyrometer.tuning.search.settings import load_tune_settings

    given = {
        "latency_s": flags["latency"],
        "memory_bytes": flags["memory"],
        "budget_s": flags["budget"],
        "tolerance": flags["tolerance"],
        "metric": flags["metric"],
        "allow_semantic": flags["allow"] == "semantic",
        "only": list(flags["only"]),
        "without": list(flags["without"]),
        "stages": [stage.strip() for stage in (flags["stages"] or "").split(",") if stage.strip()],
    }
    return load_tune_settings(Path.cwd(), given)


def _searched(
    target: Target, place: Path, flags: dict[str, Any], store_location: str | None, progress: Any
) -> Tuning:
    from pyrometer.tuning.tune import search_recipe

    if flags["cluster"] is not None and flags["nproc"] is not None:
        raise UsageError("--nproc and --cluster: ranks are started on this machine; leave out one of them")
    tuning, _ = search_recipe(
        target,
        _settings(flags),
        path=place,
        resume=flags["resume"],
        cluster=flags["cluster"],
        progress=progress,
        num_ranks=flags["nproc"],
        earlier=_earlier(store_location),
    )
    return tuning


def _earlier(store_location: str | None) -> Earlier:
    """What searches of the store found on this machine; where it cannot be read, a search goes on without."""
    from pyrometer.report.tuned_predictions import stored_tunings
    from pyrometer.store.store import Store
    from pyrometer.tuning.search.earlier import Earlier

    if store_location is None:
        return Earlier()
    try:
        store = Store.open_if_there(store_location)
        return Earlier() if store is None else Earlier.of(stored_tunings(store))
    except StoreError as error:
        click.echo(f"note: nothing is learned from earlier searches: {error}", err=True)
        return Earlier()


def _verified(
    target: Target, place: Path, flags: dict[str, Any], store_location: str | None, progress: Any
) -> Tuning:
    from pyrometer.tuning.recipe.recipe import load_recipe
    from pyrometer.tuning.recipe.verifying import verify

    proves = not flags["apply_recipe"]
    spread = _earlier(store_location if proves else None).spread
    recipe, settings = load_recipe(place), _settings(flags)
    return verify(recipe, target, settings, place, progress, proves=proves, spread=spread)


def _exit_code(tuning: Tuning) -> int:
    if tuning.interrupted:
        return INTERRUPTED
    if tuning.recipe.levers and tuning.recipe.path is None:
        return ExitCode.FAILURE
    is_wrong = tuning.numerics is not None and tuning.numerics.refused is not None
    is_slower = tuning.final is not None and tuning.final.outcome == "slower"
    if is_wrong or is_slower or any(goal.met is False for goal in tuning.targets):
        return ExitCode.FOUND
    if tuning.final is not None and tuning.final.outcome == "undecided":
        return ExitCode.UNDECIDED
    return ExitCode.OK


def _print_levers(*, as_json: bool) -> None:
    from pyrometer.cli.printing import print_document
    from pyrometer.report.lever_list import LeversDocument, lever_lines

    document = LeversDocument.of_registry()
    if as_json:
        print_document(document)
    else:
        click.echo("\n".join(lever_lines(document)))
