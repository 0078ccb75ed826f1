"""What the start prints: what is served, where, how it was proved and sized, and a line to paste."""

from __future__ import annotations

from collections.abc import Iterator

from pyrometer.quantity import counted, format_bytes, format_seconds
from pyrometer.serving.deployment import Deployment
from pyrometer.serving.http.pages import curl
from pyrometer.serving.running.shaping import Shaping
from pyrometer.serving.starting.preparing import Prepared
from pyrometer.tuning.levers.choice import label_of


def screen(deployment: Deployment) -> str:
    """One screen of at most 80 columns, but for what is to be pasted."""
    return "\n".join(_lines(deployment))


def _lines(deployment: Deployment) -> Iterator[str]:
    first, settings = deployment.first, deployment.settings
    signature = first.program.signature
    yield f"{deployment.name}, version {first.program.version}, is ready at {deployment.url}"
    taken = ", ".join(f"{spec.name} {spec.datatype}{list(spec.dims)}" for spec in signature.inputs)
    given = ", ".join(f"{spec.name} {spec.datatype}{list(spec.dims)}" for spec in signature.outputs)
    yield f"  takes    {taken}"
    yield f"  gives    {given}"
    yield f"  recipe   {_recipe(first)}"
    yield f"  proof    {_proof(first)}"
    yield f"  batch    {_batch(first)}"
    if first.program.shaping is not None:
        yield f"  buckets  {_buckets(first.program.shaping)}"
    queue = f"{deployment.policy.most_waiting} rows, then 429"
    close = (
        "as soon as the model is free" if settings.flush_idle else f"after {format_seconds(settings.wait_s)}"
    )
    yield f"  queue    {queue}; a batch is closed {close}"
    limits = (
        f"bodies up to {format_bytes(settings.most_body_bytes)}, {format_seconds(settings.hang_s)} per batch"
    )
    yield f"  limits   {limits}"
    yield f"  threads  {first.threads} for the model, one for requests"
    if not deployment.listens:
        yield f"  replicas {settings.replicas}, started, watched and replaced by Ray"
    if deployment.beside is not None:
        yield f"  beside   {deployment.beside}"
    for note in first.notes:
        yield f"  note     {note}"
    yield f"  look at  {deployment.url}/docs  /metrics  /v2/models/{deployment.name}/stats"
    anew = "SIGHUP loads the target anew" if deployment.listens else "start it again for a new version"
    yield f"  end      Ctrl-C or SIGTERM; {anew}"
    yield ""
    yield curl(deployment.name, deployment.url, signature) + (
        ' -H "Authorization: Bearer $PYROMETER_SERVE_TOKEN"' if deployment.token else ""
    )


def _recipe(first: Prepared) -> str:
    if first.recipe is None:
        return "none; `pyrometer tune` finds one"
    if not first.recipe.levers:
        return "holds no lever: the model runs as it is"
    return label_of(first.recipe.configuration)


def _proof(first: Prepared) -> str:
    cases = [case for case in first.numerics.cases if case.skipped is None]
    worst = max((case.max_rel for case in cases if case.max_rel is not None), default=0.0)
    return f"{counted(len(cases), 'case')} against the model as it is; off by {worst:.1e} at most"


def _batch(first: Prepared) -> str:
    largest = max(first.points, key=lambda point: (point.rows, point.median_s))
    single = min(first.points, key=lambda point: (point.rows, point.median_s))
    times = f"{format_seconds(single.median_s)} for {single.rows}, {format_seconds(largest.median_s)} for {largest.rows}"
    return f"up to {counted(first.most_rows, 'row')} (limited by {first.limited_by}); {times}"


def _buckets(shaping: Shaping) -> str:
    sizes = "; ".join(
        f"{name} {', '.join(str(edge) for edge in shaping.axes.edges[name])}" for name in shaping.axes.names
    )
    mask = shaping.fitting.masking
    return sizes + ("" if mask is None else f"; {mask.mask.name} tells the model what is padding")
