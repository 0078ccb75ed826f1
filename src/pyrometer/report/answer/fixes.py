"""What to change first."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import dedent

from pyrometer.advice import Advice, sentence
from pyrometer.place import Place, file_name
from pyrometer.quantity import counted
from pyrometer.report.answer.short import Fix
from pyrometer.report.facts.findings import gain_text, stands_alone, trial_text
from pyrometer.report.facts.memory import saving
from pyrometer.rules.diagnosis import Diagnosis
from pyrometer.rules.finding import NEIGHBOURS, Finding
from pyrometer.rules.places import spoken

MOST = 3


def is_fix(finding: Finding) -> bool:
    """Whether a finding is about the program: what limits the measurement, or comes from other programs, is no fault of it."""
    return finding.scope != "measurement" and not (finding.resource or "").endswith(NEIGHBOURS)


def of_findings(findings: Sequence[Finding], *, with_remarks: bool = False) -> list[Fix]:
    """Findings that are worth acting on by themselves, in their order; remarks behind them where they are asked for."""
    meant = [finding for finding in findings if is_fix(finding)]
    chosen = [finding for finding in meant if stands_alone(finding)]
    if with_remarks:
        chosen += [finding for finding in meant if finding.severity == "info" and not finding.overlaps]
    return [_fix(finding) for finding in chosen]


def nothing(diagnosis: Diagnosis) -> str:
    """What is said where no finding is worth acting on; nothing where no rule was asked."""
    return "no rule found a fault" if diagnosis.num_rules else ""


def remarks(diagnosis: Diagnosis) -> str:
    """How many remarks there are, in words; nothing where there are none."""
    number = sum(finding.severity == "info" for finding in diagnosis.findings)
    return counted(number, "remark") if number else ""


def of_advice(advice: Sequence[Advice], given: Sequence[Finding]) -> list[Fix]:
    """The advice of an observer that no finding gives."""
    known = {finding.advice.slug for finding in given}
    return [
        Fix(
            name=item.slug,
            gain=saving(item).removeprefix(": "),
            sentence=sentence(item.title),
            place=short_place(item.where) if item.where is not None else "",
            write=_written(item) or item.effect,
        )
        for item in advice
        if item.slug not in known
    ]


def short_place(where: Place) -> str:
    """Where something is, in a few words: the module, if it is known, and the line.

    >>> short_place(Place(file="src/net.py", line=96, module="camera.0", function="forward"))
    'camera.0, net.py:96'
    >>> short_place(Place(file="src/train.py", line=12, function="step"))
    'train.py:12 in step'
    """
    line = ""
    if where.file is not None:
        line = file_name(where.file) + (f":{where.line}" if where.line is not None else "")
    if line and where.function and not where.module:
        line += f" in {where.function}"
    rank = f"rank {where.rank}" if where.rank is not None else ""
    module = f"module {where.module}" if (where.module or "").isdigit() else where.module
    return ", ".join(part for part in (module, line, rank) if part) or where.op or ""


def _fix(finding: Finding) -> Fix:
    tried = trial_text(finding)
    return Fix(
        name=finding.name,
        gain=f"tried: {finding.trial.outcome}" if finding.trial is not None else gain_text(finding),
        code=finding.code,
        sentence=tried.removeprefix("tried: ") if tried else _beside_its_place(finding),
        place=short_place(finding.where),
        write=_written(finding.advice) or finding.advice.text,
    )


def _beside_its_place(finding: Finding) -> str:
    """The message, whose place stands in the line above: said twice, it would leave no room for the figures."""
    told = spoken(finding.where)
    return finding.message.replace(told, " here") if told and finding.where.file else finding.message


def _written(advice: Advice) -> str:
    """The lines to write; of a sketch, whose names stand for the user's, it says so."""
    if advice.rewrite is not None or advice.sketch is None:
        return _changed(advice.rewrite or "", advice.replaces or "")
    text = advice.sketch if "#" in advice.sketch else advice.sketch.replace("; ", "\n")
    first, *rest = text.splitlines()
    return "\n".join([f"{first}  # a sketch", *rest])


def _changed(rewrite: str, replaces: str) -> str:
    r"""The lines of a rewrite that are new, where most of it stays; all of it where no line is.

    >>> _changed("loader = DataLoader(\n    data,\n    num_workers=2,\n)", "loader = DataLoader(\n    data,\n)")
    'num_workers=2,'
    """
    before = {line.strip() for line in replaces.splitlines()}
    new = [line for line in rewrite.splitlines() if line.strip() not in before]
    return dedent("\n".join(new)) if replaces and new else rewrite
