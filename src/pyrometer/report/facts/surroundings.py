"""Where a result comes from: machine, versions, script, provenance."""

from __future__ import annotations

import shlex

from pyrometer.evidence.script_outcome import ScriptOutcome
from pyrometer.hardware.record import Environment, Gpu
from pyrometer.quantity import counted, format_bytes, format_seconds
from pyrometer.report.documents import Document
from pyrometer.report.facts.layout import Fact, Table, percent
from pyrometer.workload.failure import signal_name


def environment_line(environment: Environment) -> str:
    """The machine in one line."""
    e = environment
    parts = [
        *_gpu_names(e.gpus),
        e.cpu.model,
        f"{e.cpu.usable_cpus:g} of {counted(e.cpu.logical_cores, 'CPU')}",
    ]
    parts += [
        format_bytes(e.memory_bytes),
        f"torch {e.torch}",
        counted(e.threads, "thread"),
        f"Python {e.python}",
    ]
    return " · ".join([*parts, e.os])


def environment_facts(environment: Environment) -> list[Fact]:
    """Everything known about the machine and the versions."""
    e = environment
    cores = f"{counted(e.cpu.logical_cores, 'logical core')}"
    if e.cpu.physical_cores is not None:
        cores += f", {e.cpu.physical_cores} physical"
    facts = [
        Fact("CPU", e.cpu.model, e.cpu.isa),
        Fact("cores", cores, f"{e.cpu.usable_cpus:g} usable"),
        Fact("memory", format_bytes(e.memory_bytes)),
    ]
    if e.cpu.numa_nodes is not None:
        facts.append(Fact("NUMA nodes", str(e.cpu.numa_nodes)))
    facts += [_gpu_fact(gpu) for gpu in e.gpus]
    facts += [
        Fact("operating system", e.os),
        Fact("Python", e.python),
        Fact("torch", e.torch, f"CUDA {e.torch_cuda}" if e.torch_cuda else "built without CUDA"),
        Fact("threads", f"{e.threads} within an operator, {e.interop_threads} between operators"),
    ]
    if e.engine:
        engine, _, why = e.engine.partition(": ")
        facts.append(Fact("trace engine", engine, why))
    return [*facts, Fact("fingerprint", e.fingerprint, "results are compared only where it matches")]


def settings_table(environment: Environment) -> Table:
    """Flags and settings that change speed."""
    return Table(("setting", "value"), sorted(environment.settings.items()))


def script_facts(script: ScriptOutcome) -> list[Fact]:
    """How a script under observation ended."""
    facts = [
        Fact("command", shlex.join(script.argv)),
        Fact("ended", exit_words(script.exit_code), f"after {format_seconds(script.wall_s)}"),
        Fact("steps", f"{script.num_steps:,}", f"from {script.steps_from}"),
        Fact("outside the steps", format_seconds(script.outside_steps_s), _outside(script)),
    ]
    if script.evaluation_s:
        facts.append(Fact("evaluation", format_seconds(script.evaluation_s), "between the steps"))
    if script.overhead_share is not None:
        facts.append(Fact("observation cost", percent(script.overhead_share), "of a step, estimated"))
    return [*facts, *(Fact("note", note) for note in script.notes)]


def _outside(script: ScriptOutcome) -> str:
    """What went before, between and after the steps."""
    rest = "set-up, validation, checkpoints"
    if script.import_s is None:
        return rest
    return f"{format_seconds(script.import_s)} until torch was imported; {rest}"


def exit_words(code: int) -> str:
    """An exit status in words.

    >>> exit_words(0), exit_words(3), exit_words(-9)
    ('normally', 'with exit code 3', 'by SIGKILL')
    """
    if code >= 0:
        return "normally" if code == 0 else f"with exit code {code}"
    return f"by {signal_name(-code)}"


def named_target(document: Document) -> str:
    """What a document is about, as stored runs are listed."""
    target, versus = getattr(document, "target", ""), getattr(document, "versus", None)
    return f"{target} vs {versus}" if versus else target


def provenance_facts(document: Document) -> list[Fact]:
    """What was run, by which version, and where it is kept."""
    facts = [Fact("target", named_target(document))]
    if document.command:
        facts.append(Fact("command", shlex.join(document.command)))
    if document.created is not None:
        facts.append(Fact("taken", document.created))
    facts.append(Fact("Pyrometer", document.tool_version))
    facts.append(Fact("run", document.run_id if document.run_id is not None else "not stored"))
    return facts


def _gpu_names(gpus: list[Gpu]) -> list[str]:
    names = [gpu.name for gpu in gpus]
    return [f"{names.count(name)}× {name}" for name in dict.fromkeys(names)]


def _gpu_fact(gpu: Gpu) -> Fact:
    driver = f", driver {gpu.driver}" if gpu.driver else ""
    note = f"{format_bytes(gpu.memory_bytes)}, {gpu.multiprocessors} multiprocessors, capability {gpu.capability}{driver}"
    return Fact("GPU", gpu.name, note)
