"""`limit_latency`: a step is done in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace
from torch import nn

from pyrometer.bench.measure import measure
from pyrometer.bench.measurement import Measurement
from pyrometer.bench.quality import CaveatCode
from pyrometer.errors import InputError, UserProgramError
from pyrometer.guard.pytest.program import place_of, running
from pyrometer.guard.pytest.result import ContractOutcome, ContractResult
from pyrometer.quantity import Seconds, counted, format_interval, format_percent, format_seconds, time_unit
from pyrometer.workload.workload import Workload

LOOKS = (0.2, 1.0)
"""Shares of the budget: what is far from its limit is known after the first. The looks share the error probability."""

CONFIDENCE = 0.99
DOUBTS = {CaveatCode.RETURNS_UNFINISHED, CaveatCode.WORK_PUT_OFF, CaveatCode.ANSWERS_KEPT}
"""The time is not that of the work."""

DISTURBED = {CaveatCode.COMPETING_LOAD, CaveatCode.STEAL, CaveatCode.THROTTLED}
"""The machine, not the program, may be what is slow."""

QUANTILES = {0.5: "the median", 0.9: "P90", 0.95: "P95", 0.99: "P99"}


def keeps_latency(
    work: Workload,
    limit_s: Seconds,
    quantile: float,
    budget_s: Seconds,
    note: Callable[[Measurement], None],
) -> ContractResult:
    """Measure until the quantile lies on one side of the limit, or the budget is spent.

    Raises:
        InputError: the limit, the budget or the quantile is not legal.
        UserProgramError: a step raised.
        KeyboardInterrupt: Ctrl-C, which ends the session of pytest as well.
    """
    if not (limit_s > 0 and budget_s > 0):
        raise InputError(
            f"limit_latency: limit {limit_s} s, budget {budget_s} s; both must be positive, such as '10ms' and '5s'"
        )
    if quantile not in QUANTILES:
        raise InputError(f"quantile: got {quantile}; legal are {', '.join(map(str, QUANTILES))}")
    for share in LOOKS:
        measured = finished(
            measure(
                work,
                budget_s=budget_s * share,
                confidence=1 - (1 - CONFIDENCE) / len(LOOKS),
                beyond_first_call=True,
            )
        )
        result = judge_latency(measured, limit_s, quantile)
        if result.outcome in {"kept", "broken", "refused"}:
            break
    note(measured)
    return replace(result, where=[*place_of(work), *result.where])


def measured_time(work: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> Measurement:
    """A measurement of which every figure is one of the work.

    Raises:
        InputError: it cannot be measured, or the time of a step is not that of its work.
        UserProgramError: a step raised.
        KeyboardInterrupt: it was interrupted.
    """
    given = work if isinstance(work, nn.Module) else running(work, "measure")
    measured = finished(measure(given, *inputs, **options))
    if (doubt := why_doubted(measured)) is not None:
        raise InputError(f"measure: {doubt}")
    return measured


def finished(measured: Measurement) -> Measurement:
    """A measurement that came to its end.

    Raises:
        UserProgramError: a step raised.
        KeyboardInterrupt: it was interrupted.
    """
    if measured.interrupted:
        raise KeyboardInterrupt
    if measured.failure is not None:
        raise UserProgramError(measured.failure)
    return measured


def why_doubted(measured: Measurement) -> str | None:
    """Why the time of a step is not that of its work; `None` where it is."""
    return next((caveat.message for caveat in measured.warnings if caveat.code in DOUBTS), None)


def judge_latency(measured: Measurement, limit_s: Seconds, quantile: float) -> ContractResult:
    """Whether a measurement keeps a limit."""
    found = next(one for one in measured.quantiles if one.quantile == quantile)
    name = QUANTILES[quantile]
    outcome, reason = _outcome(measured, limit_s, quantile)
    scale, unit = time_unit(found.value_s)
    is_told = found.low_s is not None or found.high_s is not None
    ends = f"{format_interval(found.low_s, found.high_s, scale)} {unit}" if is_told else "no interval"
    shares = sorted(measured.phases, key=lambda phase: -phase.share)
    return ContractResult(
        contract="limit_latency",
        workload=measured.name if measured.config == "as written" else f"{measured.name} ({measured.config})",
        outcome=outcome,
        promised=f"{name} of a step takes at most {format_seconds(limit_s)}",
        measured=f"{name} takes {format_seconds(found.value_s)} ({ends} at {format_percent(measured.confidence)} confidence, "
        f"{counted(measured.num_samples, 'sample')})",
        limit=limit_s,
        value=found.value_s,
        low=found.low_s,
        high=found.high_s,
        unit="s",
        reason=reason,
        where=[", ".join(f"{phase.name} {format_percent(phase.share, 2)}" for phase in shares)]
        if shares
        else [],
        advice='pm.check(work).save("check.html") shows where the time of a step goes',
    )


def _outcome(measured: Measurement, limit_s: Seconds, quantile: float) -> tuple[ContractOutcome, str | None]:
    """What the figures say, and what speaks against it."""
    found = next(one for one in measured.quantiles if one.quantile == quantile)
    codes = {caveat.code: caveat.message for caveat in measured.warnings}
    if (doubt := why_doubted(measured)) is not None:
        return "refused", doubt
    if not measured.complete:
        return "undecided", "only the first call was timed; allow more with budget="
    if measured.min_s > limit_s and _is_enough(measured, 1 - quantile):
        return "broken", None
    if found.low_s is not None and found.low_s > limit_s:
        disturbed = next((codes[code] for code in codes if code in DISTURBED), None)
        fastest = f"the fastest step took {format_seconds(measured.min_s)}"
        return (
            ("undecided", f"over the limit, but {disturbed}, and {fastest}")
            if disturbed
            else ("broken", None)
        )
    is_bounded = found.high_s is not None and found.high_s <= limit_s
    if not is_bounded and not (measured.max_s <= limit_s and _is_enough(measured, quantile)):
        return "undecided", "the interval reaches over the limit; allow more with budget="
    return _kept(measured, quantile, codes)


def _is_enough(measured: Measurement, share: float) -> bool:
    """Whether so many steps on one side of a limit can hardly be chance, where each would be with this probability.

    Slow and fast steps come in long runs on a busy machine, so that few count as independent; none of them was on the other side.
    """
    return bool(share**measured.num_samples <= 1 - measured.confidence)


def _kept(
    measured: Measurement, quantile: float, codes: dict[str, str]
) -> tuple[ContractOutcome, str | None]:
    if CaveatCode.NAN_OUTPUT in codes:
        return "undecided", f"{codes[CaveatCode.NAN_OUTPUT]}: it may take another time than ordinary numbers"
    if measured.steps_per_sample > 1 and quantile > 0.5:
        together = f"{measured.steps_per_sample} steps are timed together"
        return "undecided", f"{together}, so that single slow ones cannot be told"
    return "kept", None
