"""`pyrometer serve`: a model behind HTTP, or a plan of what a batching policy would do to requests."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyrometer.cli.parameters import BYTES, DURATION
from pyrometer.errors import ExitCode, UsageError
from pyrometer.settings import load_settings

if TYPE_CHECKING:
    from pyrometer.rollout.agent import Followed
    from pyrometer.serving.deployment import Candidate, Deployment
    from pyrometer.serving.settings import ServeSettings
    from pyrometer.serving.starting.source import Source
    from pyrometer.tuning.shapes.axes import Dims

CANARY_SHARE = 0.01


@click.command()
@click.argument("target")
@click.option(
    "--recipe", type=click.Path(path_type=Path), help="Levers that `pyrometer tune` proved for TARGET."
)
@click.option(
    "--host", help="Address to listen on; another than loopback needs a token.  [default: 127.0.0.1]"
)
@click.option("--port", type=click.IntRange(0, 65535), help="Port; 0 picks a free one.  [default: 8000]")
@click.option("--latency", type=DURATION, help="That a batch may take in the model.  [default: 50ms]")
@click.option("--memory", type=BYTES, help="That a batch may take at its peak.  [default: what is free]")
@click.option(
    "--batch", type=click.IntRange(1), help="Rows of a batch.  [default: the most within the limits]"
)
@click.option("--buckets", multiple=True, metavar="NAME.DIM=SIZES", help="Sizes to pad to; may be repeated.")
@click.option("--canary", metavar="TARGET[@SHARE]", help="Give a share of the batches to another version.")
@click.option(
    "--rollout", metavar="NAME", help="Let this rollout of the store say the share of the canary or shadow."
)
@click.option("--shadow", metavar="TARGET", help="Run another version on the same batches, and compare.")
@click.option(
    "--plan",
    "arrivals",
    metavar="ARRIVALS",
    help="Serve some of these requests to itself, and say what policies would do to all.",
)
@click.option(
    "--cluster", metavar="ADDRESS", help="Serve by Ray: on ray://HOST:10001, or local for a Ray of its own."
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as one JSON document.")
def command(*, target: str, arrivals: str | None, as_json: bool, **flags: Any) -> int:
    """Serve TARGET, or a recipe (.toml) for its target, over HTTP with dynamic batching; stop with Ctrl-C.

    It speaks the Open Inference Protocol, version 2. Before it is ready it is tuned by the recipe, proved against the model as it
    is, sized within the limits and warmed in every bucket. ARRIVALS are poisson:200, bursts:200,20, diurnal:200, a CSV file
    with at_s and shape or rows, or the folder of a monitor.
    """
    if as_json and arrivals is None:
        raise UsageError("--json prints a plan; pass --plan too")
    if flags["cluster"] is not None:
        _serve_on_cluster(target, flags, arrivals)
        return ExitCode.OK
    if arrivals is not None and flags["rollout"] is not None:
        raise UsageError(
            "--plan and --rollout: a plan sends requests of its own, which a rollout would count; leave out one of them"
        )
    if arrivals is not None:
        from pyrometer.serving.planning.arrivals import read_arrivals

        read_arrivals(
            arrivals
        )  # what cannot be read is told before the model is loaded, whose shapes are needed to draw
    deployment = _deployment(target, flags, listens=arrivals is None)
    try:
        deployment.prepare()
        if arrivals is not None:
            _print_plan(deployment, arrivals, target, as_json=as_json)
        else:
            _serve(deployment)
    finally:
        deployment.close()
    return ExitCode.OK


def _deployment(target: str, flags: dict[str, Any], *, listens: bool) -> Deployment:
    from pyrometer.serving.deployment import Deployment

    beside = _beside(flags)
    if not listens:
        from pyrometer.serving.planning.trial import UNSEEN

        flags |= {"host": "127.0.0.1", "port": 0}
        beside["monitoring"] = UNSEEN
    return Deployment(*_served(target, flags), **beside)


def _served(target: str, flags: dict[str, Any]) -> tuple[Source, ServeSettings, Dims]:
    _require_packages()
    from pyrometer.serving.running.shaping import parse_buckets
    from pyrometer.serving.settings import load_serve_settings
    from pyrometer.serving.starting.source import source_of

    settings = load_serve_settings(
        Path.cwd(),
        host=flags["host"],
        port=flags["port"],
        latency_s=flags["latency"],
        memory_bytes=flags["memory"],
        batch=flags["batch"],
    )
    return source_of(target, flags["recipe"]), settings, parse_buckets(flags["buckets"])


def _beside(flags: dict[str, Any]) -> dict[str, Any]:
    from pyrometer.listening import token_from
    from pyrometer.serving.settings import TOKEN

    return {
        "candidate": _candidate(flags["canary"], flags["shadow"], flags["rollout"]),
        "token": token_from(os.environ, TOKEN),
        "say": lambda text: click.echo(text, err=True),
    }


def _serve_on_cluster(target: str, flags: dict[str, Any], arrivals: str | None) -> None:
    if arrivals is not None:
        raise UsageError("--plan and --cluster: a plan is of one process; leave out one of them")
    from pyrometer.cluster import require_cluster

    require_cluster(flags["cluster"])
    served = _served(target, flags)
    from pyrometer.serving.replicas.deploying import deployed

    with deployed(flags["cluster"], *served, **_beside(flags)) as screen:
        click.echo(screen)
        _until_ended()


def _require_packages() -> None:
    try:
        import httptools  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise UsageError(
            f"pyrometer serve needs {error.name}, which is not installed; install it by pip install 'pyrometer[serve]'"
        ) from error


def _candidate(canary: str | None, shadow: str | None, rollout: str | None) -> Candidate | None:
    from pyrometer.serving.deployment import Candidate
    from pyrometer.serving.starting.source import source_of
    from pyrometer.settings import parse_share

    if canary is not None and shadow is not None:
        raise UsageError("--canary and --shadow: give one; the other version either answers or does not")
    if shadow is not None:
        return Candidate(source_of(shadow), is_shadow=True, rollout=_followed(rollout))
    if rollout is not None:
        return Candidate(source_of(_canary_of(canary, rollout)), rollout=_followed(rollout))
    if canary is None:
        return None
    place, at, share = canary.rpartition("@")
    return Candidate(source_of(place if at else canary), parse_share(share) if at else CANARY_SHARE)


def _canary_of(canary: str | None, rollout: str) -> str:
    if canary is None or "@" in canary:
        raise UsageError(
            f"--rollout {rollout}: says the share of a canary or a shadow; pass --canary TARGET, without a share, or --shadow TARGET"
        )
    return canary


def _followed(rollout: str | None) -> Followed | None:
    from pyrometer.rollout.agent import Followed
    from pyrometer.store.place import is_server

    store = load_settings(os.environ, Path.cwd()).store
    return (
        None if rollout is None else Followed(rollout, store if is_server(store) else Path(store).absolute())
    )


def _serve(deployment: Deployment) -> None:
    from pyrometer.serving.http.server import run_loop
    from pyrometer.serving.starting.screen import screen

    run_loop(lambda: deployment.run(lambda: click.echo(screen(deployment))))


def _until_ended() -> None:
    """Wait for Ctrl-C or SIGTERM."""
    ended = threading.Event()
    handled = signal.SIGINT, signal.SIGTERM
    before = [signal.signal(one, lambda *_: ended.set()) for one in handled]
    try:
        ended.wait()
    finally:
        for one, handler in zip(handled, before, strict=True):
            signal.signal(one, handler)


def _print_plan(deployment: Deployment, arrivals: str, target: str, *, as_json: bool) -> None:
    import msgspec

    from pyrometer.cli.printing import print_document
    from pyrometer.cli.saving import provenance
    from pyrometer.report.plan import PlanDocument, plan_lines
    from pyrometer.serving.planning.planning import plan_deployment

    found = plan_deployment(deployment, arrivals)
    if as_json:
        print_document(msgspec.structs.replace(PlanDocument(target=target, plan=found), **provenance(None)))
    else:
        click.echo("\n".join(plan_lines(found)))
