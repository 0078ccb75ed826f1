"""Records of what compiling cost, and what came out."""

from __future__ import annotations

from typing import Annotated

from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc


class PhaseTree(Record, frozen=True, kw_only=True):
    """What went on inside of what while the program waited for the compiler; in columns, a parent before its children.

    A row is a compilation, or a step of torch's: steps of one name inside the same ones are one row. Own times add up to
    `CompileCost.compile_s`.
    """

    names: Annotated[list[str], doc("compile ids, and torch's names of steps")]
    phases: list[str]
    parent: Annotated[list[int], doc("row around it; -1 where none is")]
    name: Annotated[list[int], doc("row of names")]
    phase: Annotated[list[int], doc("row of phases; -1: a compilation")]
    calls: list[int]
    own_s: Annotated[list[float], doc("without what is inside of it")]
    left_out: Annotated[int, doc("steps too short for a row: their time is that of the row around them")] = 0


class CompileCost(Record, frozen=True, kw_only=True):
    """What compiling cost, and from which step on it has paid.

    `break_even_steps` is the smallest n with `first_call_s + (n - 1) · steady_s <= n · eager_steady_s`.
    """

    first_call_s: Annotated[Seconds | None, doc("the first step, compilation included")] = None
    steady_s: Annotated[Seconds | None, doc("median step once nothing is compiled any more")] = None
    eager_steady_s: Annotated[Seconds | None, doc("median step without torch.compile")] = None
    outcome: Annotated[
        str, doc("compiled against eager, paired: faster, slower, same or undecided; empty if not compared")
    ] = ""
    ratio: Annotated[
        float | None, doc("compiled over eager time, from paired blocks and so not that of the two medians")
    ] = None
    ci_low: Annotated[float | None, doc("interval of that ratio")] = None
    ci_high: float | None = None
    compile_s: Annotated[Seconds, doc("time in which the program waited for the compiler")] = 0.0
    break_even_steps: Annotated[
        int | None, doc("steps after which compiling has paid; null if never, or unknown")
    ] = None
    phases_s: Annotated[
        dict[str, float], doc("own time of each phase, without the phases inside of it; adds up to compile_s")
    ] = {}
    tree: Annotated[PhaseTree | None, doc("the same time, nested; null where nothing was timed")] = None
    background_s: Annotated[
        dict[str, float],
        doc("own time of phases on compile threads, beside the program and not part of compile_s"),
    ] = {}
    observing_s: Annotated[Seconds | None, doc("part of compile_s that recording it took, as torch says")] = (
        None
    )
    dispatch_s: Annotated[
        Seconds | None, doc("per step: cache look-ups, guards and wrappers around compiled code; measured")
    ] = None


class PassEffect(Record, frozen=True, kw_only=True):
    """What one pass over one graph did."""

    compile_id: str
    subsystem: Annotated[str, doc("pre_grad, joint_graph, post_grad, …")]
    name: str
    seconds: Annotated[Seconds | None, doc("null if not told")] = None
    nodes_before: int | None = None
    nodes_after: int | None = None
    created: int | None = None
    erased: int | None = None


class CacheEvent(Record, frozen=True, kw_only=True):
    """One look into one of torch's caches."""

    compile_id: str
    cache: Annotated[str, doc("fx_graph or aot_autograd")]
    outcome: Annotated[str, doc("hit, miss or bypass")]
    key: str = ""
    saved_s: Annotated[Seconds | None, doc("compile time that a hit spared, as torch says")] = None
    reason: Annotated[str, doc("of a bypass, or of a miss that is not for the key")] = ""
    differs_from: Annotated[str | None, doc("key of the nearest other entry; of a miss")] = None
    differing: Annotated[list[str], doc("components of the key in which it differs from that entry")] = []


class CacheSummary(Record, frozen=True, kw_only=True):
    """Compile caches: what was found, and why the rest was not."""

    hits: int = 0
    misses: int = 0
    bypasses: int = 0
    state: Annotated[str, doc("warm: all found; cold: none found; mixed; unused: no cache was asked")] = (
        "unused"
    )
    events: list[CacheEvent] = []


class GeneratedCode(Record, frozen=True, kw_only=True):
    """One file that Inductor wrote."""

    compile_id: str
    path: str
    num_bytes: Bytes
    num_lines: int
    kernels: Annotated[list[str], doc("compiled kernels that it defines")] = []
    extern_calls: Annotated[dict[str, int], doc("calls of ready-made kernels by name")] = {}
    allocations: int = 0
    reuses: Annotated[int, doc("buffers that take the place of dead ones")] = 0
    is_backward: bool = False
    vectorized: Annotated[bool | None, doc("whether loops use vector instructions; null off the CPU")] = None


class KernelOrigin(Record, frozen=True, kw_only=True):
    """Where a kernel comes from."""

    compile_id: str
    kernel: str
    call: Annotated[int | None, doc("which call of the generated code it is, counted from 1")] = None
    ops: Annotated[list[str], doc("nodes of the graph that it computes")]
    places: Annotated[list[str], doc("the user's lines, file:line")] = []


class Compilation(Record, frozen=True, kw_only=True):
    """One compilation of one frame."""

    compile_id: str
    function: str
    file: str
    line: int
    outcome: Annotated[str, doc("compiled, empty (no tensor operation), skipped, failed or unfinished")]
    reason: Annotated[str, doc("of a failure or skip")] = ""
    started_s: Annotated[Seconds, doc("since the first entry of the log")] = 0.0
    total_s: Annotated[Seconds | None, doc("what the caller waited for, backward included")] = None
    backward_s: Annotated[Seconds | None, doc("part that was compiled at the first backward")] = None
    phases_s: dict[str, float] = {}
    num_ops: Annotated[int | None, doc("operations in Dynamo's graph")] = None
    num_guards: int | None = None
    attempts: int = 1
    is_resume: Annotated[bool, doc("the rest of a function after a break")] = False
    backend: str = ""
    mode: str = ""
    cache: Annotated[str, doc("hit, miss, mixed, bypass or unknown")] = "unknown"
    rank: int | None = None
