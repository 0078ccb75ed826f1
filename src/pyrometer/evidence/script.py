"""Observing a script: run as it is, its steps brought to the same records as a workload's."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pyrometer.bench.measurement import Measurement, MemoryUse, PhaseTime
from pyrometer.bench.memory import memory_use
from pyrometer.bench.phasing import REST, split
from pyrometer.bench.quality import Circumstances
from pyrometer.bench.summary import Observation, summarise
from pyrometer.bench.warmup import steady_start
from pyrometer.compiler.inspection.script import trace_folder
from pyrometer.evidence.evidence import Evidence
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.observers.compilation import compiled_by_script
from pyrometer.evidence.observers.dataflow import dataflow_of_script, request_in_script
from pyrometer.evidence.observers.host import budget_s, host_of_script
from pyrometer.evidence.observers.program import program_of_script
from pyrometer.evidence.observers.trace import OPTIONS, with_trace
from pyrometer.evidence.options import ObserveOptions
from pyrometer.evidence.script_outcome import ScriptOutcome
from pyrometer.hardware.conditions import ConditionsProbe
from pyrometer.hardware.environment import read_environment
from pyrometer.hardware.record import Conditions
from pyrometer.quantity import Ratio
from pyrometer.redaction import redacted_argv
from pyrometer.trace.capture.script import trace_script
from pyrometer.workload.failure import signal_name
from pyrometer.workload.script.observed import HostRequest, ObservedScript

IndexArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

SCRIPT_STEPS = 3
"""Steps of a script to trace: enough for a median, and few enough to leave the rest to be timed."""


def observe_script(argv: list[str], options: ObserveOptions) -> Observed:
    """Run a script unchanged, trace a few steps as they come by, and bring all to a workload's records.

    Steps under the profiler, and those beside them that it disturbs, are left out of all timing.

    Raises:
        TargetError: the script cannot be read.
    """
    with trace_folder() as folder, tempfile.TemporaryDirectory(prefix="pyrometer-") as sampled:
        flow, set_up = Path(sampled) / "dataflow.json", Path(sampled) / "program.json"
        request = HostRequest(
            path=str(Path(sampled) / "host.json"),
            budget_s=budget_s(options),
            dataflow=request_in_script(flow, set_up),
        )
        with ConditionsProbe() as probe:
            traced = trace_script(
                argv, steps=SCRIPT_STEPS, options=OPTIONS, environment=folder.environment, host=request
            )
        host, notes = host_of_script(Path(request.path), collected_share(traced.observed))
        dataflow, program = dataflow_of_script(flow), program_of_script(set_up)
        compiled = compiled_by_script(traced.observed, folder)
    observed = traced.observed
    measurement = measured(observed, Path(argv[0]).name, probe.conditions, options)
    evidence = Evidence(
        target=shlex.join(redacted_argv(argv)),
        environment=read_environment(),
        measurement=measurement,
        script=outcome_of(observed),
        compiled=compiled,
        host=host,
        dataflow=dataflow,
        program=program,
        notes=[*_ended_early(observed, measurement), *notes],
    )
    seen = Observed(evidence=evidence)
    return seen if traced.trace is None else with_trace(seen, traced.trace, options.peaks_folder)


def measured(
    observed: ObservedScript, name: str, conditions: Conditions | None, options: ObserveOptions
) -> Measurement | None:
    """The steps of a script as a measurement; `None` where not one was seen."""
    if not observed.step_ns:
        return None
    timed = script_observation(observed, name)
    timed.conditions = conditions
    return summarise(timed, options.confidence)


def _ended_early(observed: ObservedScript, measurement: Measurement | None) -> list[str]:
    """What ended the script before its time, unless the measurement says so itself: all else is about the steps before."""
    if not observed.exit_code or (measurement is not None and measurement.failure is not None):
        return []
    return [f"the script ended with exit status {observed.exit_code}"]


def outcome_of(observed: ObservedScript) -> ScriptOutcome:
    """How an observed script ended."""
    return ScriptOutcome(
        argv=redacted_argv(observed.argv),
        exit_code=observed.exit_code,
        wall_s=observed.wall_s,
        import_s=observed.import_s,
        outside_steps_s=observed.outside_steps_s,
        evaluation_s=observed.evaluation_s,
        evaluation_share=_evaluation_share(observed),
        num_steps=len(observed.step_ns),
        steps_from=observed.steps_from,
        overhead_share=observed.overhead_share,
        notes=observed.notes,
    )


def _evaluation_share(observed: ObservedScript) -> Ratio:
    """Of the time that its evaluations and its steps, each as long as the median, take together."""
    if not observed.evaluation_s:
        return 0.0
    steps_s = float(np.median(observed.step_ns)) * 1e-9 * len(observed.step_ns)
    return observed.evaluation_s / (observed.evaluation_s + steps_s)


def collected_share(observed: ObservedScript) -> Ratio | None:
    """The share of its own steps in which Python collected garbage; null where no step was left alone.

    What observers allocate and keep makes collections due, and longer: those in the steps that they slow are not the program's.
    """
    alone = _alone(observed) if observed.step_ns else np.zeros(0, dtype=bool)
    if not observed.collected_ns or not alone.any():
        return None
    spent = np.array([observed.collected_ns, observed.step_ns])[:, alone].sum(axis=1)
    return float(spent[0] / spent[1])


def _alone(observed: ObservedScript) -> BoolArray:
    """Steps with nothing in them but the program's own: neither evaluations nor new epochs, nor an observer that slows them."""
    alone = np.array(observed.regular, dtype=bool)
    alone[0] = False  # the first step is reported apart
    if observed.traced is not None:
        first = observed.traced.first
        # With the step that warms the profiler up, and the one in which the file is written.
        alone[max(first - 1, 0) : first + observed.traced.num_steps + 1] = False
    alone[observed.watched_steps] = False
    bare = alone.copy()
    bare[observed.sampled_steps] = False
    # Sampling costs a few percent; of too few steps the rest would tell less than that.
    return bare if 2 * bare.sum() >= alone.sum() else alone


def script_observation(observed: ObservedScript, name: str) -> Observation:
    """An observed script's steps as something to summarise; irregular steps (evaluation inside, …) are left out."""
    on_device = bool(observed.device_step_ns) and None not in observed.device_step_ns
    durations = observed.device_step_ns if on_device else observed.step_ns
    step_s = np.array(durations, dtype=np.float64) * 1e-9
    regular = _alone(observed)
    kept = step_s[regular]
    rows = np.flatnonzero(regular)[steady_start(kept) or 0 :]
    return Observation(
        name=name,
        clock="device events" if on_device else "wall",
        first_call_s=float(step_s[0]),
        times_s=kept.tolist(),
        compile_s=observed.compile_s or None,
        memory=_script_memory(observed),
        phases=_script_phases(observed, rows),
        elapsed_s=observed.wall_s,
        interrupted=observed.interrupted,
        failure=_script_failure(observed),
        circumstances=Circumstances(
            command=f"pyrometer check {shlex.join(redacted_argv(observed.argv))}", observed=True
        ),
    )


def _script_phases(observed: ObservedScript, rows: IndexArray) -> list[PhaseTime]:
    if not len(rows):
        return []
    columns = {phase: np.array(spent)[rows] * 1e-9 for phase, spent in observed.phase_ns.items()}
    order = tuple(name for name in columns if name != REST)
    steps = [{name: float(spent[i]) for name, spent in columns.items()} for i in range(len(rows))]
    return split(steps, [sum(step.values()) for step in steps], (*order, REST))


def _script_memory(observed: ObservedScript) -> MemoryUse | None:
    on_device = bool(observed.allocated_bytes)
    steps = observed.allocated_steps if on_device else observed.memory_steps
    series = observed.allocated_bytes if on_device else observed.memory_bytes
    peak = observed.allocated_peak_bytes if on_device else observed.peak_bytes
    if not series or peak is None:
        return None
    return memory_use("cuda" if on_device else "cpu", steps, series, peak, steady_from=_left_alone(observed))


def _left_alone(observed: ObservedScript) -> int:
    """The first step behind all that observers keep with the process, by which how memory grows is seen."""
    traced = [] if observed.traced is None else [observed.traced.first + observed.traced.num_steps]
    return 1 + max([*traced, *observed.watched_steps, *observed.sampled_steps], default=-1)


def _script_failure(observed: ObservedScript) -> str | None:
    if observed.exit_code == 0 or observed.interrupted:
        return None
    if observed.exit_code < 0:
        return f"the script was ended by {signal_name(-observed.exit_code)}"
    return f"the script ended with exit code {observed.exit_code}"
