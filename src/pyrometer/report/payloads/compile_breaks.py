"""Breaks, recompilations and findings beside the user's lines: the block `breaks`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Annotated

from msgspec.structs import replace

from pyrometer.advice import Advice
from pyrometer.compiler.breaks.record import Break
from pyrometer.compiler.report import CompileReport
from pyrometer.compiler.stack import own_name
from pyrometer.place import Place, file_name
from pyrometer.quantity import counted
from pyrometer.record import Record, doc
from pyrometer.report.attachments import SourceText
from pyrometer.report.facts.compile_breaks import EXACTNESS, cards
from pyrometer.report.facts.trace_words import short, short_path
from pyrometer.rules.finding import Finding
from pyrometer.source.ownership import owner_of

_MOST_NOTES = 200
_At = tuple[str, int]


class RewriteNote(Record, frozen=True, kw_only=True):
    """What to write instead."""

    title: str
    why: str
    before: str = ""
    after: str = ""
    setting: str = ""
    caution: Annotated[str, doc("what it may change in the results; empty where nothing")] = ""


class LineNote(Record, frozen=True, kw_only=True):
    """What happens at a line."""

    line: int
    kind: Annotated[str, doc("break, follows, skipped, recompile, guard, limit or finding")]
    count: Annotated[int, doc("how often it was met")]
    title: str
    remark: str = ""
    explanation: str = ""
    advice: list[RewriteNote] = []
    stack: Annotated[list[str], doc("called from; the outermost first")] = []
    code: Annotated[str, doc("of a finding; empty otherwise")] = ""


class SourcePiece(Record, frozen=True, kw_only=True):
    """Lines that follow each other."""

    first_line: int
    lines: list[str]


class NotedFile(Record, frozen=True, kw_only=True):
    """One of the user's files."""

    file: str
    name: Annotated[str, doc("its end, as tables write it")]
    is_read: Annotated[bool, doc("false: only the lines that the records hold are known")]
    pieces: list[SourcePiece]
    notes: Annotated[list[LineNote], doc("in the order of lines; breaks first")]


class BreaksContent(Record, frozen=True, kw_only=True):
    """The files in which compiling was interrupted or repeated, the one with the most breaks first."""

    files: list[NotedFile]


def breaks_content(
    report: CompileReport, findings: Sequence[Finding], sources: Sequence[SourceText]
) -> BreaksContent | None:
    """The block `breaks`; `None` where nothing was interrupted or repeated."""
    lines: dict[_At, str] = {}
    notes: dict[str, list[LineNote]] = {}
    for file, note, source in [*_breaks(report), *_skips(report), *_recompiles(report)][:_MOST_NOTES]:
        notes.setdefault(file, []).append(note)
        if source.strip() and not lines.get((file, note.line)):
            lines[file, note.line] = source
    for finding in findings:
        if finding.where.file in notes and finding.where.line:
            notes[finding.where.file].append(
                LineNote(
                    line=finding.where.line, kind="finding", count=1, title=finding.message, code=finding.code
                )
            )
    files = [_file(file, held, sources, lines) for file, held in notes.items()]
    files.sort(
        key=lambda noted_file: (-sum(note.kind == "break" for note in noted_file.notes), noted_file.file)
    )
    return BreaksContent(files=files) if files else None


def _breaks(report: CompileReport) -> Iterator[tuple[str, LineNote, str]]:
    for graph_break in report.breaks:
        yield graph_break.file, _break_note(report, graph_break), graph_break.source


def _break_note(report: CompileReport, graph_break: Break) -> LineNote:
    card = cards(replace(report, breaks=[graph_break]))[0]
    return LineNote(
        line=graph_break.line,
        kind="follows" if graph_break.chained else "break",
        count=graph_break.count,
        title=card.title,
        remark=card.remark,
        explanation=card.explanation,
        advice=[_advice(rewrite) for rewrite in card.rewrites],
        stack=card.stack[:-1],
    )


def _advice(advice: Advice) -> RewriteNote:
    return RewriteNote(
        title=advice.title,
        why=advice.why,
        before=advice.replaces or "",
        after=(advice.replaces and advice.rewrite) or "",
        setting="" if advice.replaces else advice.rewrite or "",
        caution=EXACTNESS[advice.fix_class],
    )


def _skips(report: CompileReport) -> Iterator[tuple[str, LineNote, str]]:
    for skip in report.skips:
        if skip.kind != "recompile_limit" or not report.limits:
            what = "its caller got the exception" if skip.raised else "it runs eagerly"
            yield (
                skip.file,
                LineNote(
                    line=skip.line,
                    kind="skipped",
                    count=skip.count,
                    title=f"{own_name(skip.function)} was given up: {what}",
                    remark=skip.kind.replace("_", " "),
                    explanation=short(skip.reason, 400),
                    stack=_stack(skip.called_from),
                ),
                "",
            )
    for limit in report.limits:
        yield (
            limit.file,
            LineNote(
                line=limit.line,
                kind="limit",
                count=1,
                title=f"{own_name(limit.function)} hit the recompile limit"
                + (f" of {limit.limit}" if limit.limit is not None else "")
                + ": calls that fit no compilation run eagerly, in silence",
                explanation=short(limit.reason, 400),
            ),
            "",
        )


def _recompiles(report: CompileReport) -> Iterator[tuple[str, LineNote, str]]:
    ordered = sorted(report.recompiles, key=lambda recompile: (recompile.file, recompile.line))
    for (file, line), held in groupby(ordered, key=lambda recompile: (recompile.file, recompile.line)):
        again = list(held)
        names = dict.fromkeys(change.name for recompile in again for change in recompile.changed_inputs)
        yield (
            file,
            LineNote(
                line=line,
                kind="recompile",
                count=len(again),
                title=f"{own_name(again[0].function)} was compiled again {counted(len(again), 'time')}",
                remark=f"what changed: {', '.join(names)}" if names else "",
                stack=_stack(again[-1].called_from),
            ),
            "",
        )
    met: dict[tuple[str, int, str], list[str]] = {}
    for one in report.recompiles:
        for cause in one.causes[:1]:
            if cause.place is not None:
                key = (cause.place.path, cause.place.line_number, cause.place.source or "")
                met.setdefault(key, []).append(cause.guard)
    for (file, line, source), guards in met.items():
        title = f"a guard from this line failed {counted(len(guards), 'time')}"
        remark = "; ".join(dict.fromkeys(short(guard, 120) for guard in guards[:3]))
        yield file, LineNote(line=line, kind="guard", count=len(guards), title=title, remark=remark), source


def _stack(places: Iterable[Place]) -> list[str]:
    """The user's own frames: those of the program that started it say nothing."""
    own = (place for place in places if owner_of(place.path, place.function_name) == "user")
    return [f"{short_path(place.text)} {place.function_name}".rstrip() for place in own]


_RANK = {"break": 0, "limit": 1, "skipped": 2, "recompile": 3, "guard": 4, "follows": 5, "finding": 6}


def _file(
    file: str, notes: Sequence[LineNote], sources: Sequence[SourceText], lines: dict[_At, str]
) -> NotedFile:
    read = sorted(
        (source for source in sources if source.file == file and source.lines),
        key=lambda source_text: source_text.first_line,
    )
    pieces = [SourcePiece(first_line=source_text.first_line, lines=source_text.lines) for source_text in read]
    known = {piece.first_line + place for piece in pieces for place in range(len(piece.lines))}
    for line in sorted({note.line for note in notes} - known):
        text = lines.get((file, line), "")
        pieces.append(SourcePiece(first_line=line, lines=text.splitlines()[:1] or [""]))
    pieces.sort(key=lambda piece: piece.first_line)
    ordered = sorted(notes, key=lambda note: (note.line, _RANK[note.kind], -note.count))
    name = short_path(file) or file_name(file)
    return NotedFile(file=file, name=name, is_read=bool(read), pieces=pieces, notes=ordered)
