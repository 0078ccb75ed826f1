"""What torch.compile did, in words: the answer first, then chapter after chapter."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pyrometer.compiler.advice.varying import alike_changes
from pyrometer.compiler.inspection.record import ModeResult, Runtime
from pyrometer.compiler.recompiles.record import Recompile, StrictGuard
from pyrometer.compiler.report import CompileReport
from pyrometer.quantity import (
    Seconds,
    counted,
    format_bytes,
    format_rate,
    format_ratio,
    format_seconds,
    significant,
)
from pyrometer.report.documents import CompileDocument
from pyrometer.report.facts import compile_breaks, compile_costs, compile_diff, compile_inside, compile_shapes
from pyrometer.report.facts.layout import Fact, Section, Table, percent, told
from pyrometer.report.facts.trace_words import short, short_path

MOST_STRICT = 5

_ITEM = re.compile(r"\[\d+\]")

MUCH_SLOWER = 3.0
"""Steps under the profiler that take so many steady ones do not stand for these."""

EARLIER = " · what was compiled before is not in this report"

Chapter = Callable[[CompileReport], "Section | None"]


def headline(report: CompileReport) -> str:
    """The answer: breaks, recompilations, and what compiling brings."""
    failed = next(
        (compilation for compilation in report.compilations if compilation.outcome == "failed"), None
    )
    silent = len(report.runtime.silent_eager) if report.runtime is not None else 0
    if not report.frames:
        text = f"{counted(silent, 'function')} left to eager in silence" if silent else "nothing was compiled"
        return f"{text}{EARLIER if report.incomplete else ''}"
    parts = [_graphs(report), _recompiles(report)]
    if failed is not None and not report.graphs:
        parts = [f"compiling failed: {short(failed.reason, 120)}"]
    if report.limit_reached or silent:
        why = "recompile limit reached: " if report.limit_reached else ""
        parts.append(f"{why}{counted(silent or len(report.limits), 'function')} left to eager in silence")
    if report.incomplete:
        parts.append(EARLIER.removeprefix(" · "))
    parts.append(compile_costs.effect(report.cost))
    return " · ".join(part for part in parts if part)


def subtitle(report: CompileReport) -> str:
    """How much was compiled, at what cost."""
    cost = report.cost
    parts = [counted(report.frames, "frame")]
    failed = sum(skip.raised is True for skip in report.skips)
    if report.skipped_frames > failed:
        parts.append(f"{report.skipped_frames - failed} of them run eagerly")
    if failed:
        parts.append(f"{failed} failed")
    parts.append(f"compiling took {format_seconds(cost.compile_s)}")
    if report.cache.state != "unused":
        parts.append(f"caches {report.cache.state}")
    if cost.break_even_steps is not None:
        parts.append(f"paid after {counted(cost.break_even_steps, 'step')}")
    return " · ".join(parts)


def sections(report: CompileReport) -> list[Section]:
    """All chapters but the breaks, which are cards; empty ones are left out."""
    return told(chapter(report) for chapter in CHAPTERS)


def document_sections(document: CompileDocument) -> list[Section]:
    """The same, behind what was asked for besides."""
    asked = [] if document.diff is None else [compile_diff.chapter(document.diff)]
    asked += [] if document.shapes is None else [compile_shapes.chapter(document.shapes)]
    if document.divergence:
        facts = [Fact("differs", line) for line in document.divergence]
        how = "Ranks that compile other graphs, or compile while others wait, make collectives hang or crawl."
        asked.append(Section("ranks", "Where ranks decided differently", facts, None, how))
    return asked + sections(document.report)


def document_headline(document: CompileDocument) -> str:
    """The answer, and before it that ranks differ, where they do."""
    told = headline(document.report)
    return f"ranks decided differently · {told}" if document.divergence else told


def check_sections(report: CompileReport) -> list[Section]:
    """The chapters that a check prints on a terminal; its page has all."""
    return [section for section in sections(report) if section.slug in {"recompiles", "compiling", "limits"}]


def _graphs(report: CompileReport) -> str:
    roots = [graph_break for graph_break in report.breaks if not graph_break.chained]
    graphs = counted(report.graphs, "graph")
    if not roots:
        return f"{graphs}, no break"
    places = ", ".join(f"{root.file.rpartition('/')[2]}:{root.line}" for root in roots[:2])
    more = f" and {len(roots) - 2} more" if len(roots) > 2 else ""
    return f"{graphs}, {counted(len(roots), 'break')}: {places}{more}"


def _recompiles(report: CompileReport) -> str:
    if not report.recompiles:
        return "no recompilation"
    changed = [
        name
        for recompile in reversed(report.recompiles)
        for name in dict.fromkeys(_ITEM.sub("[…]", change.name) for change in recompile.changed_inputs)
    ]
    most = max(changed, key=changed.count, default="")  # of several the latest, which may go on
    return counted(len(report.recompiles), "recompilation") + (f", mostly of {most}" if most else "")


def _limits(report: CompileReport) -> Section | None:
    body = [
        (
            f"{short_path(limit.file)}:{limit.line} {limit.function}".rstrip(),
            str(limit.limit or "–"),
            short(limit.reason, 100),
        )
        for limit in report.limits
    ]
    silent = report.runtime.silent_eager if report.runtime is not None else []
    facts = [
        Fact(
            f"{short_path(one.file)}:{one.line}",
            f"{counted(one.calls, 'call')} ran eagerly in silence",
            "; ".join(one.failing[:2]),
        )
        for one in silent
    ]
    table = Table(("function", "limit", "reason"), body, frozenset({2})) if body else None
    how = "Behind the limit torch compiles nothing more of the function: calls that fit no compilation run eagerly, and nothing says so."
    return Section("limits", "Runs eagerly in silence", facts, table, how) if body or facts else None


def _recompile_table(report: CompileReport) -> Section:
    body = []
    for recompile in report.recompiles:
        changes = _changes(recompile)
        failing = sum(len(cause.all_failing) for cause in recompile.causes)
        first = recompile.causes[0].guard if recompile.causes else ""
        body.append(
            (
                recompile.compile_id,
                f"{short_path(recompile.file)}:{recompile.line} {recompile.function}".rstrip(),
                changes or short(first, 70),
                str(failing),
                format_seconds(recompile.compile_s),
            )
        )
    columns = ("compilation", "function", "what changed", "guards that failed", "took")
    how = "Each is the same function compiled once more, because an input or an attribute did not fit any earlier compilation. The document lists every guard that failed."
    change = "Of sizes: mark the dimension with torch._dynamo.mark_dynamic, compile with dynamic=True, or use pm.ShapeBuckets; --shapes measures which is faster."
    return Section("recompiles", "Recompilations", [], Table(columns, body, frozenset({1, 2})), how, change)


def _changes(recompile: Recompile) -> str:
    """What changed, the first two of it; what changed alike is counted."""
    texts = []
    for change, *alike in alike_changes(recompile.changed_inputs)[:2]:
        text = f"{change.name}: {', '.join(change.before)} → {change.after}"
        text += " (any from now on)" if change.became_dynamic else ""
        texts.append(text + (f", and {len(alike)} alike" if alike else ""))
    return "; ".join(texts)


def _evaluation(report: CompileReport) -> Section | None:
    evaluation = report.evaluation
    if evaluation is None:
        return None
    columns = ("mode", "step", "against eager", "largest error", "compiling", "paid after")
    body = [_mode_row(mode, best=mode.mode == evaluation.best) for mode in evaluation.modes]
    how = (
        "Each mode is measured in turn with eager, so that drift of the machine hits both. The ratio is that of paired blocks, not of "
        "the two medians."
    )
    facts = [Fact("verdict", evaluation.sentence)]
    facts += [Fact("warning", caveat.message, caveat.advice.title) for caveat in evaluation.caveats]
    if evaluation.elapsed_s is not None:
        facts.append(Fact("took", format_seconds(evaluation.elapsed_s)))
    return Section(
        "evaluation",
        "Eager against the modes of torch.compile",
        facts,
        Table(columns, body, frozenset({2})),
        how,
    )


def _mode_row(mode: ModeResult, *, best: bool) -> tuple[str, ...]:
    name = f"● {mode.mode}" if best else mode.mode
    if mode.failure is not None:
        return name, "–", short(mode.failure, 90), "–", "–", "–"
    against = "reference" if mode.outcome == "reference" else mode.outcome
    if mode.ratio is not None and mode.ci_low is not None and mode.ci_high is not None:
        ratio = format_ratio(mode.ratio, mode.ci_low, mode.ci_high)
        against = ratio if mode.outcome in {"faster", "slower"} else f"{mode.outcome}: {ratio}"
    return (
        name,
        format_seconds(mode.latency_s),
        against,
        "–" if mode.max_rel is None else f"{mode.max_rel:.2g}",
        format_seconds(mode.compile_s),
        "–" if mode.break_even_steps is None else counted(mode.break_even_steps, "step"),
    )


def _mode_costs(report: CompileReport) -> Section:
    modes = (
        []
        if report.evaluation is None
        else [mode for mode in report.evaluation.modes if mode.failure is None]
    )
    body = [
        (
            mode.mode,
            format_rate(mode.throughput_per_s, "").strip(),
            "–" if mode.p99_over_mean is None else significant(mode.p99_over_mean),
            format_bytes(mode.peak_bytes),
            "–" if mode.device_utilization is None else percent(mode.device_utilization),
            format_bytes(mode.artifact_bytes),
            "–" if mode.cosine is None else f"{mode.cosine:.6f}",
        )
        for mode in modes
    ]
    columns = ("mode", "per second", "P99/mean", "peak memory", "device busy", "code", "cosine")
    return Section("modes", "What the modes cost", [], Table(columns, body))


def _levers(report: CompileReport) -> Section | None:
    body = [(lever.title, lever.why, lever.effect) for lever in report.levers]
    facts = [
        Fact(lever.slug, (lever.rewrite or lever.sketch or "").replace("\n", "; ")) for lever in report.levers
    ]
    how = "Not measured here: try one, and compare."
    if body:
        return Section(
            "levers",
            "What else could help",
            facts,
            Table(("try to", "since", "then"), body, frozenset({1, 2})),
            how,
        )
    return None


def _runtime(report: CompileReport) -> Section | None:
    runtime = report.runtime
    if runtime is None or not runtime.graphs:
        return None
    body = [
        (
            graph.compile_id,
            significant(graph.calls_per_step),
            format_seconds(graph.mean_s),
            percent(graph.share),
            format_seconds(graph.compile_s),
            {True: "yes", False: "no", None: "–"}[graph.pays],
        )
        for graph in sorted(runtime.graphs, key=lambda graph: -graph.total_s)
    ]
    columns = ("compilation", "calls per step", "each", "share", "compiled in", "worth it")
    facts = [Fact("steps", str(runtime.num_steps), _profiled(runtime, report.cost.steady_s))]
    if runtime.lookup_s is not None:
        facts.append(
            Fact("finding the right one", f"{format_seconds(runtime.lookup_s)} per step", "guards included")
        )
    return Section("runtime", "Which compilation is used", facts, Table(columns, body))


def _profiled(runtime: Runtime, steady_s: Seconds | None) -> str:
    """How long the steps were of which the table tells, and whether they were like the ones that were timed."""
    step_s = runtime.profiled_step_s
    if step_s is None:
        return "under the profiler"
    text = f"under the profiler, of {format_seconds(step_s)} each"
    if runtime.num_recordings > 1:
        text += f"; the median of {runtime.num_recordings} recordings"
    if steady_s is None or step_s < MUCH_SLOWER * steady_s:
        return text
    return f"{text}: {significant(step_s / steady_s)}× the steady step, so that times and shares below may mislead; compile it again"


def _guards(report: CompileReport) -> Section | None:
    if not report.guards.total:
        return None
    facts = [Fact("guards", f"{report.guards.total:,}")]
    if report.guards.eval_s is not None:
        facts.append(Fact("checking all of them once", format_seconds(report.guards.eval_s)))
    facts += _strict_guards(report.guards.strict)
    by_type = sorted(report.guards.by_type.items(), key=lambda item: -item[1])
    body = [(name, f"{count:,}") for name, count in by_type]
    how = "Guards are checked at every call before compiled code may run; a strict one ties the code to one value."
    return Section("guards", "Guards", facts, Table(("type", "count"), body), how)


def _strict_guards(strict: Sequence[StrictGuard]) -> list[Fact]:
    """Those that failed, and those on inputs; what modules hold and never changed is nothing to act on, and only counted."""
    guards = {guard.why: guard for guard in reversed(strict)}  # the same guard may stand in several frames
    first = list(guards.values())[::-1]
    telling = [guard for guard in first if guard.num_failed or not _is_held(guard)]
    shown = telling[:MOST_STRICT]
    facts = [
        Fact(
            short(guard.source, 40),
            guard.why + (f" So do {guard.num_alike} alike." if guard.num_alike else ""),
            guard.type,
        )
        for guard in shown
    ]
    rest = sum(1 + guard.num_alike for guard in first) - sum(1 + guard.num_alike for guard in shown)
    if rest:
        facts.append(
            Fact(
                "held in all calls" if shown == telling else "further", counted(rest, "further strict guard")
            )
        )
    return facts


def _is_held(guard: StrictGuard) -> bool:
    return guard.source.startswith("L['self']") or "._modules[" in guard.source


def _limits_of_knowledge(report: CompileReport) -> Section:
    facts = [Fact("compiled before", text) for text in report.incomplete]
    facts += [Fact("not told", text) for text in report.unavailable] + [
        Fact("note", note) for note in report.notes
    ]
    return Section("unknown", "What could not be told", facts)


CHAPTERS: tuple[Chapter, ...] = (
    compile_breaks.tried,
    _limits,
    compile_breaks.skipped,
    _recompile_table,
    _evaluation,
    _mode_costs,
    compile_costs.compiling,
    _levers,
    _runtime,
    _guards,
    *compile_inside.CHAPTERS,
    _limits_of_knowledge,
)
