"""What was learned from a script under observation."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc


class FollowRequest(Record, frozen=True, kw_only=True):
    """What is told, inside of a script under observation, of everything that begins and ends there."""

    module: Annotated[str, doc("of a library that the script's Python has to have")]
    name: Annotated[str, doc("a function in it that takes torch and `settings` and returns the follower")]
    settings: Annotated[dict[str, Any], doc("JSON-friendly; the function's own")] = {}
    failure: Annotated[str, doc("file that says why there is no follower; missing when there is one")]


class HostRequest(Record, frozen=True, kw_only=True):
    """How a script under observation is asked to look where its host is, after the trace."""

    path: Annotated[str, doc("where to write what was seen")]
    budget_s: Annotated[Seconds, doc("for sampled steps and those between them")]
    dataflow: Annotated[
        FollowRequest | None, doc("what follows values in a few steps before; null where that is not wanted")
    ] = None


class TraceRequest(Record, frozen=True, kw_only=True):
    """What a script under observation is asked to record with the profiler."""

    path: Annotated[str, doc("where to write the trace; .json or .json.gz")]
    steps: Annotated[int, doc("steps to record")]
    skip: Annotated[int, doc("steps before; one more then warms the profiler up. 0 records from the start")]
    modules: Annotated[bool, doc("a span around each call of a module")] = True
    options: Annotated[dict[str, bool], doc("as torch.profiler.profile takes them")] = {}
    host: Annotated[HostRequest | None, doc("null to leave it at the trace")] = None


class TracedSteps(Record, frozen=True, kw_only=True):
    """Which steps of a script the profiler recorded."""

    first: Annotated[int, doc("index into the lists of steps")]
    num_steps: Annotated[int, doc("whole steps")]


class ObservedScript(Record, frozen=True, kw_only=True):
    """A script's steps, phases and memory; every list of steps has one entry per step, in order."""

    argv: Annotated[list[str], doc("the script and its arguments")]
    exit_code: Annotated[int, doc("exit status of the script; negative is the signal that ended it")]
    interrupted: Annotated[bool, doc("whether Ctrl-C was pressed while it ran")] = False
    timed_out: Annotated[bool, doc("whether it was ended because its time was up")] = False
    wall_s: Annotated[Seconds, doc("from starting the interpreter to its end")]
    import_s: Annotated[Seconds | None, doc("from the start of the script until torch was imported")]

    steps_from: Annotated[
        Literal["optimizer steps", "loader iterations", "module calls", "nothing"],
        doc("what a step was taken to be"),
    ]
    step_start_ns: Annotated[list[int], doc("since the start of the script")] = []
    step_ns: Annotated[list[int], doc("duration")] = []
    regular: Annotated[
        list[bool], doc("false where a loader restart or an evaluation fell into the step")
    ] = []
    phase_ns: Annotated[
        dict[str, list[int]], doc("data, forward, backward, optimizer, rest; they add up to step_ns exactly")
    ] = {}
    collected_ns: Annotated[list[int], doc("time in which Python collected garbage")] = []
    device_step_ns: Annotated[
        list[int | None], doc("device time by CUDA events; empty without CUDA, null where it is not known")
    ] = []
    first_step_s: Annotated[Seconds | None, doc("the very first step")] = None
    outside_steps_s: Annotated[
        Seconds, doc("wall_s less all steps: imports, set-up, validation, checkpoints")
    ]
    evaluation_s: Annotated[
        Seconds, doc("evaluations between the first step and the last; with outside_steps_s as a rule")
    ] = 0.0
    compile_s: Annotated[
        Seconds | None,
        doc("time spent in torch.compile's compilers; null when not known, 0 when it was never used"),
    ] = None

    memory_steps: Annotated[list[int], doc("steps during which resident memory was sampled")] = []
    memory_bytes: Annotated[list[Bytes], doc("highest resident memory sampled during these steps")] = []
    peak_bytes: Annotated[Bytes | None, doc("highest resident memory of the process")] = None
    allocated_steps: Annotated[list[int], doc("steps during which torch's CUDA allocator was sampled")] = []
    allocated_bytes: Annotated[list[Bytes], doc("highest allocation sampled during these steps")] = []
    allocated_peak_bytes: Annotated[Bytes | None, doc("the allocator's own peak")] = None

    events_per_step: Annotated[float | None, doc("logged events per step")] = None
    overhead_share: Annotated[
        float | None,
        doc("estimate: cost of an event with cold caches, times events_per_step, over the median step"),
    ] = None
    traced: Annotated[TracedSteps | None, doc("null when nothing was traced")] = None
    sampled_steps: Annotated[list[int], doc("in which the host was sampled")] = []
    micro_batch: Annotated[int | None, doc("samples of a batch of its loader; null where it asks none")] = (
        None
    )
    accumulation: Annotated[int | None, doc("backward passes in a step, where steps are the optimizer's")] = (
        None
    )
    watched_steps: Annotated[list[int], doc("slowed by watching each instruction of one of them")] = []
    notes: Annotated[list[str], doc("what could not be observed, and why")] = []
