"""Short answers about how long a step takes."""

from __future__ import annotations

from pyrometer.bench.measurement import Measurement
from pyrometer.evidence.launch_outcome import LaunchOutcome
from pyrometer.evidence.script_outcome import ScriptOutcome
from pyrometer.quantity import counted, format_percent, format_rate, format_seconds
from pyrometer.report.answer import fixes, step, trust
from pyrometer.report.answer.short import ShortAnswer
from pyrometer.report.documents import CheckDocument, EvidenceDocument
from pyrometer.report.facts import launch as of_launch
from pyrometer.report.facts import measurement as of_measurement
from pyrometer.report.facts.surroundings import exit_words
from pyrometer.workload import failure

FAR_FROM_MEDIAN = 1.15
"""Mean over median step from which on throughput and step time would seem to contradict each other."""


def of_check(document: CheckDocument) -> ShortAnswer:
    """What `check` measured, what bounds it, and what to do about it."""
    answer = of_step(document)
    script, launch = document.evidence.script, document.evidence.launch
    if launch is not None:
        answer = _of_ranks(answer, launch)
    return answer._replace(
        alerts=answer.alerts or ([] if launch is not None else [*_ended(script), *_evaluates(script)]),
        bound=step.bound(document.evidence),
        nothing=fixes.nothing(document.diagnosis) if answer.whole is not None else "",
        remarks=fixes.remarks(document.diagnosis),
        tries=_tries(document),
    )


def _tries(document: CheckDocument) -> str:
    """Where no rule knows a fault, what goes on from there: what has none may still be made faster."""
    seen = document.evidence
    can_tune = seen.script is None and seen.launch is None and seen.measurement is not None
    return f"pyrometer tune {document.target} tries levers" if can_tune else ""


def _of_ranks(answer: ShortAnswer, launch: LaunchOutcome) -> ShortAnswer:
    """The same as that of a job: its ranks, its global batch and what ended it."""
    whose = " · ".join(filter(None, [f"rank {launch.leading}", of_launch.batch(launch)]))
    whole = answer.whole
    return answer._replace(
        name=f"{counted(launch.num_ranks, 'rank')} of {answer.name}",
        whole=None if whole is None else whole._replace(title=f"{whole.title}, {whose}"),
        alerts=of_launch.ended(launch),
    )


def of_step(document: EvidenceDocument) -> ShortAnswer:
    """A measured step with its parts."""
    evidence = document.evidence
    m, name = evidence.measurement, named(document.target)
    meant = fixes.of_findings(document.diagnosis.findings)
    answer = ShortAnswer(name, "no step was seen", fixes=meant, whole=step.whole(evidence))
    if m is None:
        return answer
    failed = [] if m.failure is None else [m.failure]
    return answer._replace(
        figure=figure(m),
        alerts=failed,
        trust=trust.of_measurement(m),
        improve=trust.command(m.warnings),
        tone="failed" if failed else "",
    )


def figure(m: Measurement) -> str:
    """Throughput, and the step with its interval; of what failed, where."""
    said = f"{format_seconds(m.median_s)}/step ({of_measurement.step_interval(m)})"
    if m.failure is not None:
        return f"{failure.headline(m.failure)} · {said} before"
    rate = format_rate(m.throughput, f"{m.unit}/s")
    if not _has_slow_steps(m):
        return f"{rate} · {said}"
    # The one is a mean and the other a median: each says so.
    return f"{rate} on average · median {said}"


def _has_slow_steps(m: Measurement) -> bool:
    """Whether some steps are so slow that the throughput, a mean, is far from what the median step promises."""
    return m.mean_s > FAR_FROM_MEDIAN * m.median_s


def tail(m: Measurement) -> str:
    """The slow steps and the deadline, and what was cold."""
    said = [f"P90 {format_seconds(m.p90_s)}", f"P99 {format_seconds(m.p99_s)}"]
    if (due := of_measurement.deadline(m)) is not None:
        said.append(f"{due.label} {due.value} {due.note}".rstrip())
    said.append(f"first call {format_seconds(m.first_call_s)}")
    return " · ".join(said)


def named(target: str) -> str:
    """A target without its folders.

    >>> named("examples/perception.py:workload"), named("package.module:factory")
    ('perception.py:workload', 'package.module:factory')
    """
    path, script, rest = target.partition(".py")
    return f"{path.rpartition('/')[2]}{script}{rest}"


MUCH = 0.1
"""Of the time of evaluations and steps together, from which on evaluations are worth a word."""


def _evaluates(script: ScriptOutcome | None) -> list[str]:
    """That evaluations between the steps, which no step holds, take a good part of the loop."""
    if script is None or script.evaluation_share < MUCH:
        return []
    share, spent = format_percent(script.evaluation_share), format_seconds(script.evaluation_s)
    return [f"evaluations take {share} of the loop ({spent}): evaluate less often"]


def _ended(script: ScriptOutcome | None) -> list[str]:
    return (
        [] if script is None or not script.exit_code else [f"the script ended {exit_words(script.exit_code)}"]
    )
