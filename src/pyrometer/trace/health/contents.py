"""What the trace does not hold, and therefore cannot say."""

from __future__ import annotations

from collections.abc import Iterator

from pyrometer.quantity import counted, format_percent
from pyrometer.trace.graphs.join import find_launches_of_graphs
from pyrometer.trace.health.issue import HealthIssue
from pyrometer.trace.kinds import Kind
from pyrometer.trace.trace import RankTrace


def contents(trace: RankTrace) -> Iterator[HealthIssue]:
    """What the trace does not hold, and therefore cannot say."""
    ops = trace.number_of(Kind.CPU_OP)
    has_work = trace.device_work.height > 0
    if ops and not has_work:
        yield _limit("cpu_only", "there is no device work: times are those of the host", "")
    if has_work and not ops:
        yield _limit(
            "no_operators",
            "there are no operators: device time cannot be charged to operators, modules or lines",
            "record with ProfilerActivity.CPU",
        )
    if unknown := sum(trace.info.unknown_categories.values()):
        text = ", ".join(f"{name or 'none'} ({n})" for name, n in trace.info.unknown_categories.items())
        yield _limit(
            "unknown_categories",
            f"{unknown} events of unknown categories are kept and not analysed: {text}",
            "",
        )
    detail = trace.tables["ops"]
    stacks = trace.number_of(Kind.PYTHON_FUNCTION) or detail["call_stack"].count()
    if ops and not stacks:
        yield _limit(
            "no_stacks", "no Python stacks were recorded: no source lines", "record with with_stack=True"
        )
    if ops and not detail["input_dims"].count():
        yield _limit(
            "no_shapes",
            "no shapes were recorded: no FLOP, no bytes and no roofline",
            "record with record_shapes=True",
        )


def graphs(trace: RankTrace) -> Iterator[HealthIssue]:
    """Work of graphs, of which only a capture knows the operators."""
    if "captured" in trace.tables:
        yield _limit("graphs_joined", trace.info.notes[-1], "")
        return
    work = [launch.work for launch in find_launches_of_graphs(trace)]
    num_work = sum(map(len, work))
    if num_work:
        spent = sum(int(trace.events["dur_ns"].to_numpy()[rows].sum()) for rows in work)
        share = spent / max(int(trace.device_work["dur_ns"].sum()), 1)
        yield _limit(
            "graphs_unexplained",
            f"{num_work} kernels, copies and fills ({format_percent(share)} of device time) were run by "
            f"{counted(len(work), 'launch')} of graphs, which do not say of which operators they are",
            "record while the graphs are captured, with shapes, and pass that file beside this one",
        )


def coverage(trace: RankTrace) -> Iterator[HealthIssue]:
    """How much of the job and of its run the trace stands for."""
    world = trace.info.world_size
    if world is not None and world > 1:
        yield _limit(
            "one_rank",
            f"rank {trace.rank} is one of {world}: it cannot say who keeps whom waiting",
            "open the files of all ranks together",
        )
    if not trace.steps.height:
        yield _limit(
            "no_steps",
            "no steps are marked and nothing repeats: all figures are of the whole trace",
            "give the profiler a schedule, else step() leaves no mark, and call profiler.step() once a step",
        )
    elif trace.steps.height == 1:
        yield _limit(
            "single_step",
            "only one step was recorded: figures have no interval, and what differs between steps stays unseen",
            "record five",
        )


def _limit(code: str, fact: str, advice: str) -> HealthIssue:
    return HealthIssue(code=code, severity="info", message=f"{fact}; {advice}" if advice else fact)
