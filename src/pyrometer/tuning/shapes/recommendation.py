"""The way of compiling that was found best for varying sizes, in words and as advice."""

from __future__ import annotations

from pyrometer.advice import Advice, Gain
from pyrometer.quantity import format_percent, format_ratio, format_seconds
from pyrometer.tuning.shapes.record import StrategyResult

SKETCHES = {
    "eager": None,
    "dynamic": "torch.compile(model, dynamic=True)",
    "buckets": "pyrometer.ShapeBuckets(model, dims, plan=found.plan)",
    "one_size": "pyrometer.ShapeBuckets(model, dims, sample=sample, max_graphs=1)",
    "mark_dynamic": "torch._dynamo.mark_dynamic(x, 0)  # each axis whose size varies, before the call",
    "static": "torch.compile(model, dynamic=False)",
}
LEVERS = {
    "buckets": "shape_buckets",
    "one_size": "shape_buckets",
    "dynamic": "dynamic",
    "mark_dynamic": "mark_dynamic",
}
"""What tuning can try by itself."""


def recommendation(chosen: StrategyResult, results: list[StrategyResult], expected_calls: int) -> str:
    """The recommendation with its figures, and what the others would cost.

    >>> fast = StrategyResult(name="buckets", num_graphs=4, compile_s=8.0, step_s=1e-3, total_s=18.0, padding_share=0.1)
    >>> slow = StrategyResult(name="eager", num_graphs=0, compile_s=0.0, step_s=2e-3, total_s=20.0)
    >>> recommendation(chosen=fast, results=[slow, fast], expected_calls=10_000)
    'buckets: 4 graphs in 8.00 s, then 1.00 ms a call (10.0 % padding), 18.0 s for 10000 calls; eager 20.0 s'
    """
    parts = [
        f"{chosen.name}: {chosen.num_graphs} graphs in {format_seconds(chosen.compile_s)}"
        if chosen.num_graphs
        else f"{chosen.name}: nothing to compile"
    ]
    padding = f" ({format_percent(chosen.padding_share)} padding)" if chosen.padding_share else ""
    parts.append(f"then {format_seconds(chosen.step_s)} a call{padding}")
    verdict = chosen.verdict
    if verdict is not None and verdict.ci_low is not None and verdict.ci_high is not None:
        parts.append(f"{format_ratio(verdict.ratio, verdict.ci_low, verdict.ci_high)} than eager")
    parts.append(f"{format_seconds(chosen.total_s)} for {expected_calls} calls")
    others = [
        f"{result.name} {format_seconds(result.total_s)}"
        for result in results
        if result.name != chosen.name and result.total_s is not None
    ]
    return ", ".join(parts) + (f"; {', '.join(others)}" if others else "")


def advice_of(chosen: StrategyResult, results: list[StrategyResult], expected_calls: int) -> Advice:
    """Advice to compile in the chosen way, with its gain where it was compared with eager."""
    verdict = chosen.verdict
    gain = None
    if verdict is not None:
        gain = Gain(
            ratio_low=verdict.ci_low,
            ratio_high=verdict.ci_high,
            measured=True,
            method="measured against eager",
        )
    return Advice(
        slug=f"shapes-{chosen.name.replace('_', '-')}",
        title=recommendation(chosen, results, expected_calls),
        sketch=SKETCHES[chosen.name],
        fix_class="exact" if chosen.name == "eager" else "tolerance",
        lever=LEVERS.get(chosen.name),
        gain=gain,
    )
