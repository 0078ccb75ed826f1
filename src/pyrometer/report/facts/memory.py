"""A program's memory in words: the answer first, then chapter after chapter."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from pyrometer.advice import Advice
from pyrometer.memory.category import CATEGORIES, MEANING
from pyrometer.memory.place import HeldBytes
from pyrometer.memory.profile import Fit, LeakReport, LeakSite, MemoryProfile, WholeRun
from pyrometer.quantity import counted, format_about, format_bytes, format_percent, format_seconds
from pyrometer.report.documents import CheckDocument, MemoryDocument
from pyrometer.report.facts import checkpoint, memory_diff, memory_peaks
from pyrometer.report.facts.layout import Fact, Section, Table, percent, told
from pyrometer.report.facts.trace_words import short, short_path

Chapter = Callable[[MemoryProfile], "Section | None"]

MOST_MODULES = 12

MOST_LEAKS = 4
"""Places that are told one by one; the document holds all."""

NEARLY = 0.05
"""Share of the peak up to which a predicted category is told without a remark."""

BETWEEN = "between phases"
"""What `WholeRun.peak_phase` says of no phase."""

PREDICTED_COLUMNS = ("parameters", "gradients", "optimizer", "activations", "temporaries")

LEAKING = frozenset({"leak", "growing cache"})
"""Verdicts that a finding explains."""


def headline(profile: MemoryProfile, *, growth_first: bool = False) -> str:
    """The answer: how much, when, mostly what for, and whether it grows; that first where a narrow line would lose it."""
    parts = [_peak_words(profile)]
    name, held = max(profile.ledger_bytes.items(), key=lambda item: item[1], default=("", 0))
    if held:
        parts.append(f"{percent(held / profile.peak_bytes)} {name}")
    if profile.leak is not None:
        parts.insert(1 if growth_first else len(parts), leak_words(profile.leak))
    return " · ".join(parts)


def watched_words(profile: MemoryProfile) -> str:
    """How much more was alive after a watched step than at first, where that is much and no leak; else nothing.

    >>> leak = LeakReport(verdict="stable", sentence="", num_steps=60, steps=[1, 25, 50], live_bytes=[2**20, 2**23, 2**21])
    >>> watched_words(MemoryProfile(name="m", device="cpu", peak_bytes=2**21, ledger_bytes={}, leak=leak))
    '7.00 MiB more alive after step 25 of the 60 watched than after the first'
    """
    leak = profile.leak
    if leak is None or not leak.live_bytes or leak.verdict in LEAKING or profile.whole_run is not None:
        return ""
    most, step = max(zip(leak.live_bytes, leak.steps, strict=False), key=lambda seen: seen[0])
    more = most - leak.live_bytes[0]
    if more <= NEARLY * profile.peak_bytes:
        return ""
    return f"{format_bytes(more)} more alive after step {step:,} of the {leak.num_steps:,} watched than after the first"


def _peak_words(profile: MemoryProfile) -> str:
    """The peak and what it covers."""
    when = f" in {profile.peak_phase}" if profile.peak_phase else ""
    recorded = f"{format_bytes(profile.peak_bytes)}{when}"
    whole = profile.whole_run
    if whole is None:
        return f"peak {recorded}"
    if whole.peak_bytes <= profile.peak_bytes:
        return f"peak {recorded}, no higher in all {counted(whole.num_steps, 'step')}"
    about = "about " if whole.is_transient else ""
    detail = f"{_first(whole.recorded_steps)} in detail: {recorded}"
    return f"peak {about}{format_bytes(whole.peak_bytes)}{_when(whole)} ({detail})"


def _when(whole: WholeRun) -> str:
    """Where the peak of a whole run lies.

    >>> _when(WholeRun(peak_bytes=1, peak_step=40, peak_phase="forward", num_steps=60, recorded_steps=2, resolution_bytes=0, source=""))
    ' in forward of step 40 of 60'
    """
    if whole.peak_step is None:
        return f" of all {counted(whole.num_steps, 'step')}"
    steps = max(whole.num_steps, whole.peak_step)
    return f" {'' if whole.peak_phase == BETWEEN else 'in '}{whole.peak_phase} of step {whole.peak_step:,} of {steps:,}"


def _first(steps: int) -> str:
    return f"steps 1–{steps}" if steps > 1 else "the first step"


def leak_words(leak: LeakReport) -> str:
    """The verdict on growth, in a few words.

    >>> leak_words(LeakReport(verdict="stable", sentence="", num_steps=40))
    'no leak in 40 steps'
    >>> leak_words(LeakReport(verdict="growing, not decidable yet", sentence="", num_steps=60, bytes_per_step=2**17))
    'growing by 128 KiB per step, no end in 60 steps'
    """
    if leak.verdict in {"stable", "allocator warm-up"}:
        return f"no leak in {counted(leak.num_steps, 'step')}"
    if leak.verdict in LEAKING:
        return f"{leak.verdict}: {format_bytes(leak.bytes_per_step)} per step"
    if leak.bytes_per_step:
        grows = f"growing by {format_bytes(leak.bytes_per_step)} per step"
        return f"{grows}, no end in {counted(leak.num_steps, 'step')}"
    return leak.verdict


def subtitle(profile: MemoryProfile) -> str:
    """What the answer rests on, and how far the prediction was off."""
    parts = [profile.name, profile.config, profile.device]
    if profile.bytes_per_unit is not None:
        parts.append(f"{format_bytes(profile.bytes_per_unit)} per {profile.unit.removesuffix('s')}")
    if profile.predicted is not None and profile.predicted.error is not None:
        off = abs(profile.predicted.error)
        how = f"within {format_percent(off, 2)}" if off else "to the byte"
        text = f"predicted without running {how}"
        apart = _divided_otherwise(profile)
        parts.append(f"total {text}, its parts divided otherwise" if apart else text)
    return " · ".join(parts)


def _divided_otherwise(profile: MemoryProfile) -> bool:
    """Whether the prediction gives a category more or less than was held, by what counts beside the peak."""
    predicted = profile.predicted.ledger_bytes if profile.predicted is not None else {}
    gaps = [abs(predicted.get(name, 0) - profile.ledger_bytes.get(name, 0)) for name in CATEGORIES]
    return bool(predicted) and max(gaps) > NEARLY * profile.peak_bytes


def saving(advice: Advice) -> str:
    """What an advice should bring, to stand behind its title; empty where nothing is predicted.

    >>> from pyrometer.advice import Gain
    >>> gain = Gain(saves_bytes=2**20, method="predicted: replayed")
    >>> saving(Advice(slug="s", title="t", fix_class="exact", gain=gain))
    ': saves 1.00 MiB (predicted)'
    """
    gain = advice.gain
    if gain is None or not (gain.saves_bytes or gain.saves_s):
        return ""
    saved = (
        format_bytes(gain.saves_bytes)
        if gain.saves_bytes
        else f"{format_seconds(gain.saves_s or 0.0)} per step"
    )
    return f": saves {saved} ({gain.method.partition(':')[0]})"


def sections(profile: MemoryProfile) -> list[Section]:
    """All chapters, without the empty ones."""
    return told(chapter(profile) for chapter in CHAPTERS)


def document_sections(document: MemoryDocument) -> list[Section]:
    """The same, behind what was asked for besides."""
    asked = [] if document.diff is None else memory_diff.chapters(document.diff)
    asked += [] if document.plan is None else [checkpoint.chapter(document.plan)]
    asked += [_what_if(document)] if document.what_if else []
    return asked + sections(document.profile)


def of_check(document: CheckDocument) -> list[Section]:
    """The chapters of a check's page: the same, with all that the check has seen of memory beside each other."""
    if document.evidence.memory is None:
        return []
    whole = memory_peaks.of_check(document)
    made = sections(document.evidence.memory)
    return [whole if whole is not None and section.slug == whole.slug else section for section in made]


def check_sections(profile: MemoryProfile) -> list[Section]:
    """The chapters that a check prints on a terminal; its page has all."""
    return [section for section in sections(profile) if section.slug in {"ledger", "held"}]


def _ledger(profile: MemoryProfile) -> Section:
    predicted = profile.predicted.ledger_bytes if profile.predicted is not None else None
    rows = []
    for name in CATEGORIES:
        held = profile.ledger_bytes.get(name, 0)
        expected = predicted.get(name, 0) if predicted is not None else 0
        if held or expected:
            row = (name, format_bytes(held), percent(held / max(profile.peak_bytes, 1)))
            rows.append((*row, *([format_bytes(expected)] if predicted is not None else []), MEANING[name]))
    columns = (
        "category",
        "at the peak",
        "share",
        *(["predicted"] if predicted is not None else []),
        "what it is",
    )
    of = "" if profile.whole_run is None else f" of {_first(profile.whole_run.recorded_steps)}"
    how = f"What was alive at the instant of the peak{of}; the categories add up to it. Obtained from {profile.source}."
    change = "Only what is alive in the phase of the peak can lower it; advice for other phases is left out."
    return Section(
        "ledger",
        "The ledger at the peak",
        [],
        Table(columns, rows, frozenset({len(columns) - 1})),
        how,
        change,
    )


def _what_if(document: MemoryDocument) -> Section:
    rows = [
        (
            ", ".join(f"{name} {value}" for name, value in memory.settings.items()) or "as written",
            format_bytes(memory.peak_bytes),
            f"{memory.peak_bytes / max(document.profile.peak_bytes, 1):.2f}×",
            memory.peak_phase or "–",
            *(format_bytes(memory.ledger_bytes.get(name, 0)) for name in PREDICTED_COLUMNS),
        )
        for memory in document.what_if
    ]
    columns = ("with", "peak", "of now", "in", *PREDICTED_COLUMNS)
    how = "Predicted on tensors without data: nothing of it was run."
    return Section("predicted", "What if", [], Table(columns, rows, frozenset({3})), how)


def _held(profile: MemoryProfile) -> Section:
    rows = [
        (
            short_path(held.site),
            format_bytes(held.bytes),
            percent(held.bytes / max(profile.peak_bytes, 1)),
            held.category or "",
            held.module or "",
            short(held.source or held.operator or "", 44),
        )
        for held in alike(profile.at_peak)
    ]
    columns = ("allocated at", "bytes", "share", "category", "module", "line")
    how = "By the line of your code that ran when the bytes were allocated; in the backward pass, the line of the forward operator that it belongs to. A star stands for all of a repeated module."
    return Section("held", "What holds the peak", [], Table(columns, rows, frozenset({3, 4, 5})), how)


def alike(places: list[HeldBytes]) -> list[HeldBytes]:
    """Places with the blocks of a repeated module taken together, the largest first.

    >>> one, two = (HeldBytes(site="m.py:3", bytes=8, count=1, module=f"blocks.{i}.mlp") for i in range(2))
    >>> [(place.module, place.bytes, place.count) for place in alike([one, two])]
    [('blocks.*.mlp', 16, 2)]
    """
    groups: dict[tuple[str, str, str | None], list[HeldBytes]] = {}
    for place in places:
        pattern = re.sub(r"(?<![^.])\d+(?![^.])", "*", place.module or "")
        groups.setdefault((place.site, pattern, place.category), []).append(place)
    merged = [
        group[0]
        if len(group) == 1
        else msgspec.structs.replace(
            group[0],
            module=pattern,
            bytes=sum(held.bytes for held in group),
            count=sum(held.count for held in group),
        )
        for (_, pattern, _), group in groups.items()
    ]
    return sorted(merged, key=lambda held: -held.bytes)


def _modules(profile: MemoryProfile) -> Section | None:
    rows = [
        (name, format_bytes(held), percent(held / max(profile.peak_bytes, 1)))
        for name, held in list(profile.by_module.items())[:MOST_MODULES]
    ]
    facts = [
        Fact(name, format_bytes(held), percent(held / max(profile.peak_bytes, 1)))
        for name, held in profile.by_dtype.items()
    ]
    table = Table(("module", "at the peak", "share"), rows) if rows else None
    return Section("modules", "By module and dtype", facts, table) if rows or facts else None


def _scaling(profile: MemoryProfile) -> Section | None:
    rows = [(law.category, law.law, law.remedy or "") for law in profile.scaling]
    how = "B is the batch, T the sequence. Fitted to predictions at several sizes; the ledger of each was computed operator by operator."
    table = Table(("category", "grows with", "what lowers it"), rows, frozenset({1, 2}))
    return Section("scaling", "How it grows", [], table, how) if rows else None


def _fits(profile: MemoryProfile) -> Section:
    rows = [
        (
            format_bytes(fit.budget_bytes),
            _largest(fit),
            format_bytes(fit.peak_bytes),
            _known_by(fit),
        )
        for fit in profile.fits
    ]
    how = (
        "Tensors only: leave room for the context of the device, workspaces and fragmentation, a gibibyte or so on CUDA. "
        "Rehearsed: that batch fits and the next one does not, on tensors without data."
    )
    return Section(
        "fits",
        "The largest batch",
        [],
        Table(("memory", "largest batch", "predicted peak of tensors", "known by"), rows, frozenset({3})),
        how,
    )


def _known_by(fit: Fit) -> str:
    if fit.is_capped:
        return "larger ones were not looked for"
    return "rehearsed" if fit.verified else "the growth alone" if fit.max_batch is not None else "–"


def _largest(fit: Fit) -> str:
    """The largest batch in words.

    >>> _largest(Fit(budget_bytes=8, max_batch=2**24, is_capped=True)), _largest(Fit(budget_bytes=8, max_batch=7))
    ('at least 16,777,216', '7')
    >>> _largest(Fit(budget_bytes=8, max_batch=None)), _largest(Fit(budget_bytes=8, max_batch=None, peak_bytes=4))
    ('not even one', 'any: nothing grows with it')
    """
    if fit.max_batch is not None:
        return f"at least {fit.max_batch:,}" if fit.is_capped else f"{fit.max_batch:,}"
    grows = fit.peak_bytes is None or fit.peak_bytes > fit.budget_bytes
    return "not even one" if grows else "any: nothing grows with it"


def _formulas(profile: MemoryProfile) -> Section:
    facts = [Fact(name, text) for name, text in profile.formulas.items()]
    return Section("formulas", "Rules of thumb, with this program's figures", facts)


def _leak(profile: MemoryProfile) -> Section | None:
    leak = profile.leak
    if leak is None:
        return None
    facts = [Fact("verdict", leak.sentence)]
    for site in leak.sites[:MOST_LEAKS]:
        facts += _leak_site(site)
    if len(leak.sites) > MOST_LEAKS:
        facts.append(Fact("and", counted(len(leak.sites) - MOST_LEAKS, "more place")))
    if leak.bytes_per_step and len(leak.ci) == 2:
        low, high = map(format_bytes, leak.ci)
        interval = f"{low} to {high}" if low != high else ""
        facts.append(Fact("growth", f"{format_bytes(leak.bytes_per_step)} per step", interval))
    if leak.eta_steps is not None:
        steps = format_about(leak.eta_steps)
        facts.append(Fact("memory is full after", f"about {steps} steps", format_bytes(leak.limit_bytes)))
    watched = counted(leak.num_steps, "step")
    facts.append(Fact("watched", watched, f"{leak.warmup_steps} of them warm-up"))
    facts += [Fact("note", note) for note in leak.notes]
    how = "A leak is an allocation of which a part survives from every stretch of the run, not only from its beginning; what a collection of garbage frees is none."
    return Section("leak", "Does it grow?", facts, None, how)


def _leak_site(site: LeakSite) -> list[Fact]:
    """Where it is allocated, who holds it, what hangs on it, what to write instead."""
    place = f"{short_path(site.file)}:{site.line}" if site.file else site.operator or "unknown"
    facts = [
        Fact(
            "allocated at",
            f"{place} {short(site.source or '', 70)}".rstrip(),
            f"{format_bytes(site.bytes_per_step)} per step",
        ),
        Fact("held by", site.holder or "not found", site.container or ""),
    ]
    if site.graph_bytes:
        facts.append(Fact("graph kept alive", format_bytes(site.graph_bytes)))
    if site.fix:
        facts.append(Fact("write instead", site.fix))
    return facts


def _notes(profile: MemoryProfile) -> Section:
    notes = profile.notes + (profile.predicted.notes if profile.predicted is not None else [])
    return Section("unknown", "What could not be told", [Fact("note", note) for note in notes])


CHAPTERS: tuple[Chapter, ...] = (
    _ledger,
    memory_peaks.chapter,
    _leak,
    _held,
    _modules,
    _scaling,
    _fits,
    _formulas,
    _notes,
)
