"""In what circumstances two traces differ, and whether they may be compared at all."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pyrometer.errors import IncomparableError
from pyrometer.quantity import format_percent
from pyrometer.trace.analysis.health import health
from pyrometer.trace.difference.likeness import other_work, unlike
from pyrometer.trace.difference.record import Difference
from pyrometer.trace.kinds import Kind
from pyrometer.trace.trace import RankTrace

MIN_COMMON_OPS = 0.2
"""Below this share of common operator names (of the side with fewer) two traces are of different programs."""

MIN_COMMON_SHAPES = 0.5
"""Below this share of heavy calls with a shape that the other side also has, the sides do other work."""

HEAVY = r"mm$|linear|conv|attention|embedding|lstm|gru|matmul"
COMPILED = r"CompiledFxGraph|Torch-Compiled Region|^triton_|^CompiledFunction"
HOST_OPTIONS = ("with_stack", "record_shapes", "profile_memory")


def compare_circumstances(a: RankTrace, b: RankTrace, *, anyway: bool = False) -> list[Difference]:
    """The circumstances that differ; those that `withhold` leave a description of changes but no verdict.

    Args:
        a: the baseline.
        b: what is compared to it.
        anyway: different programs are a difference that withholds the verdict, and are not refused.

    Raises:
        IncomparableError: a side is empty, or the sides are different programs.
    """
    _refuse_empty(a, b)
    return [
        *_programs(a, b, anyway=anyway),
        *_devices(a, b),
        *_jobs(a, b),
        *_shapes(a, b),
        *_work(a, b),
        *_options(a, b),
        *_versions(a, b),
        *_compilation(a, b),
        *_health(a, b),
    ]


def is_compiled(trace: RankTrace) -> bool:
    """Whether compiled graphs or their kernels ran."""
    return bool(trace.events["name"].str.contains(COMPILED).any())


def _refuse_empty(a: RankTrace, b: RankTrace) -> None:
    for side, trace in (("a", a), ("b", b)):
        if not _has_work(trace) and not trace.number_of(Kind.CPU_OP):
            raise IncomparableError(
                f"trace {side} ({trace.info.path}) holds neither operators nor device work; record at least one step"
            )


def _programs(a: RankTrace, b: RankTrace, *, anyway: bool) -> Iterator[Difference]:
    what = _few_in_common(a, b) or unlike(a, b, compiled=(is_compiled(a), is_compiled(b)))
    if what is None:
        return
    if not anyway:
        raise IncomparableError(
            f"the traces are of different programs: {what}; compare two traces of one program, or see both by "
            "pyrometer trace --diff-anyway A B (diff_traces(a, b, anyway=True))"
        )
    yield Difference(
        field="program",
        a=a.info.path,
        b=b.info.path,
        message=f"different programs: {what}",
        withholds=True,
    )


def _few_in_common(a: RankTrace, b: RankTrace) -> str | None:
    names = [set(trace.of_kind(Kind.CPU_OP)["name"].drop_nulls()) for trace in (a, b)]
    fewer = min(map(len, names))
    common = names[0] & names[1]
    if not fewer or len(common) >= MIN_COMMON_OPS * fewer or is_compiled(a) != is_compiled(b):
        return None
    only = [", ".join(sorted(side - common)[:3]) for side in names]
    return f"operators differ ({only[0]} … against {only[1]} …), with {len(common)} names in common"


def _work(a: RankTrace, b: RankTrace) -> Iterator[Difference]:
    work = other_work(a, b, compiled=(is_compiled(a), is_compiled(b)))
    if work is not None:
        family, *calls = work
        yield Difference(
            field="work",
            a=f"{calls[0]:.3g} per step",
            b=f"{calls[1]:.3g} per step",
            message=f"a step does other work: it calls {family} another number of times (depth, micro-batches)",
            withholds=True,
        )


def _devices(a: RankTrace, b: RankTrace) -> Iterator[Difference]:
    names = [_device(trace) for trace in (a, b)]
    if names[0] != names[1]:
        yield Difference(
            field="device",
            a=names[0],
            b=names[1],
            message="the devices differ, so that no ratio of the program is stated; where time goes may be compared",
            withholds=True,
        )


def _device(trace: RankTrace) -> str:
    if not _has_work(trace):
        return "CPU"
    used = set(trace.device_work["device"].drop_nulls())
    listed = trace.info.devices
    held = [device for device in listed if device.id in used] or listed  # ids may count the visible ones only
    return ", ".join(sorted({device.name for device in held if device.name})) or "unnamed"


def _jobs(a: RankTrace, b: RankTrace) -> Iterator[Difference]:
    worlds = [trace.info.world_size or 1 for trace in (a, b)]
    if worlds[0] != worlds[1]:
        yield Difference(
            field="world_size",
            a=str(worlds[0]),
            b=str(worlds[1]),
            message="the jobs have different numbers of ranks: a step does other work",
            withholds=True,
        )
    elif a.rank != b.rank:
        yield Difference(
            field="rank",
            a=str(a.rank),
            b=str(b.rank),
            message="the traces are of different ranks; what differs may be the rank's and not the run's",
        )


def _shapes(a: RankTrace, b: RankTrace) -> Iterator[Difference]:
    heavy = [_heavy_calls(trace) for trace in (a, b)]
    if not heavy[0].height or not heavy[1].height:
        return
    common = heavy[0].join(heavy[1], on=["name", "input_dims"], how="semi")["len"]
    share = int(common.sum()) / int(heavy[0]["len"].sum())
    if share < MIN_COMMON_SHAPES:
        example = (
            heavy[0].join(heavy[1], on="name").filter(pl.col("input_dims") != pl.col("input_dims_right"))
        )
        row = (
            example.select("name", "input_dims", "input_dims_right").row(0)
            if example.height
            else ("", "", "")
        )
        yield Difference(
            field="shapes",
            a=f"{row[0]} {row[1]}",
            b=f"{row[0]} {row[2]}",
            message=f"only {format_percent(share)} of the heavy calls have a shape that the other side has: a step does other "
            "work (batch, sequence or model size)",
            withholds=True,
        )


def _heavy_calls(trace: RankTrace) -> pl.DataFrame:
    calls = trace.detail("ops").filter(
        (pl.col("kind") == Kind.CPU_OP.value)
        & pl.col("name").str.contains(HEAVY)
        & pl.col("input_dims").is_not_null()
        & (pl.col("input_dims") != "[]")
    )
    counted = calls.with_columns(pl.col("input_dims").str.replace_all(r"\s", "")).group_by(
        "name", "input_dims"
    )
    return counted.len().sort("len", "name", "input_dims", descending=[True, False, False])


def _options(a: RankTrace, b: RankTrace) -> Iterator[Difference]:
    for option in HOST_OPTIONS:
        sides = [_has_option(trace, option) for trace in (a, b)]
        if sides[0] != sides[1]:
            yield Difference(
                field=option,
                a=str(sides[0]).lower(),
                b=str(sides[1]).lower(),
                message=f"only one side was recorded with {option}, which slows the host down",
                withholds=option == "with_stack",
            )


def _has_option(trace: RankTrace, option: str) -> bool:
    """By what the trace holds, since many files do not say."""
    if option == "with_stack":
        return trace.number_of(Kind.PYTHON_FUNCTION) > 0
    if option == "profile_memory":
        return trace.number_of(Kind.MEMORY) > 0
    return bool(trace.tables["ops"]["input_dims"].count())


def _versions(a: RankTrace, b: RankTrace) -> Iterator[Difference]:
    sides = [
        {
            key: str(value)
            for key, value in trace.info.metadata.items()
            if "version" in key.lower() and key != "schemaVersion" and isinstance(value, str | int | float)
        }
        for trace in (a, b)
    ]
    for key in sorted(sides[0].keys() & sides[1].keys()):
        if sides[0][key] != sides[1][key]:
            yield Difference(
                field=key,
                a=sides[0][key],
                b=sides[1][key],
                message=f"{key} differs; it may be what changed the times",
            )


def _compilation(a: RankTrace, b: RankTrace) -> Iterator[Difference]:
    sides = ["compiled" if is_compiled(trace) else "eager" for trace in (a, b)]
    if sides[0] != sides[1]:
        yield Difference(
            field="compilation",
            a=sides[0],
            b=sides[1],
            message="one side is compiled: operators do not correspond; compare phases, modules and kernels",
        )


def _health(a: RankTrace, b: RankTrace) -> Iterator[Difference]:
    issues = [
        next((i for i in health(trace).issues if "difference" in i.unreliable), None) for trace in (a, b)
    ]
    if issues[0] is None and issues[1] is None:
        return
    yield Difference(
        field="health",
        a="sound" if issues[0] is None else issues[0].code,
        b="sound" if issues[1] is None else issues[1].code,
        message="the steps of a trace that lacks device work cannot be compared",
        withholds=True,
    )


def _has_work(trace: RankTrace) -> bool:
    return trace.device_work.height > 0
