"""Items about computing: vectorisation, batch size, precision, layout, threads."""

from __future__ import annotations

from pyrometer.rules.audit.applicable import needs_convolutions, needs_device
from pyrometer.rules.audit.item import Item, proof_of
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Value


def _traced(case: Case) -> dict[str, Value] | None:
    return {"steps_traced": case.num_traced_steps} if case.trace is not None else None


def _operators(case: Case) -> dict[str, Value] | None:
    trace = case.trace
    if trace is None:
        return None
    device, host = trace.launches.device, trace.launches.host
    if device is not None:
        return {"launches_per_step": device.launches_per_step, "waiting_share": device.waiting_share}
    return {"operators_per_step": host.ops_per_step, "short_share": host.short_share}


def _roofs(case: Case) -> dict[str, Value] | None:
    points = case.trace.roofline if case.trace is not None else []
    known = [point for point in points if point.share_of_roof is not None]
    return {"operators_compared": len(known)} if known else None


def _busy(case: Case) -> dict[str, Value] | None:
    trace = case.trace
    if trace is None or not trace.device_busy_ns or not trace.span_ns:
        return None
    return {"device_busy_share": trace.device_busy_ns / trace.span_ns}


def _precision(case: Case) -> dict[str, Value] | None:
    program = case.program
    if program is None or not program.parameter_dtypes:
        return None
    dtypes = sorted(program.parameter_dtypes)
    lower = program.autocast_dtype is not None or dtypes != ["torch.float32"]
    return {"autocast": program.autocast_dtype, "parameters": dtypes} if lower else None


def _settings(case: Case) -> dict[str, Value] | None:
    settings = case.program.settings if case.program is not None else {}
    known: dict[str, Value] = {
        name: settings[name] for name in ("threads", "cudnn_benchmark") if name in settings
    }
    return known or None


COMPUTE = (
    Item(
        code="A301",
        title="Work is vectorised: no Python loop over the batch or the time",
        rules=("PYR109", "PYR122", "PYR126", "PYR129", "PYR133", "PYR511"),
        proof=_operators,
        needed="a trace",
    ),
    Item(
        code="A302",
        title="The host does not wait for the device within a step",
        rules=("PYR101", "PYR102", "PYR103", "PYR104", "PYR105", "PYR106", "PYR107", "PYR108"),
        proof=proof_of("trace", waiting_calls=lambda trace: trace.synchronisation.num_calls),
        needed="a trace",
    ),
    Item(
        code="A303",
        title="The batch fills the device",
        rules=("PYR110", "PYR505"),
        proof=_busy,
        applies=needs_device,
        needed="a trace of an accelerator",
    ),
    Item(
        code="A304",
        title="Matrix work runs in a lower precision where that is legal",
        rules=("PYR501",),
        proof=_precision,
        applies=needs_device,
        needed="lower precision in the parameters or by autocast",
    ),
    Item(
        code="A305",
        title="Threads and cuDNN are set for the program",
        rules=("PYR513", "PYR514"),
        proof=_settings,
        needed="torch's settings",
    ),
    Item(
        code="A306",
        title="Convolutions and reads go along memory",
        rules=("PYR506", "PYR507"),
        proof=_traced,
        applies=needs_convolutions,
        needed="a trace with shapes",
    ),
    Item(
        code="A307",
        title="No operator with weight runs far below what the machine allows",
        rules=("PYR503", "PYR504", "PYR516"),
        proof=_roofs,
        needed="a trace with shapes, and the machine's peaks",
    ),
    Item(
        code="A308",
        title="Small operators do not dominate",
        rules=("PYR111", "PYR502", "PYR116"),
        proof=_operators,
        needed="a trace",
    ),
    Item(
        code="A309",
        title="The best operator is used for the job",
        rules=("PYR508", "PYR510", "PYR512", "PYR515", "PYR711"),
        family="kernels",
        proof=_traced,
        needed="a trace",
    ),
    Item(
        code="A310",
        title="The step is computing, and not Python, files or what it computed before",
        family="host",
        proof=proof_of("host", steps_watched=lambda host: host.steps),
        needed="where the host's time goes",
    ),
)
