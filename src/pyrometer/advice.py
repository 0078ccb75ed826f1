"""Advice: what to change, why here, what that brings, and what it may change in the results."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pyrometer.place import Place
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc
from pyrometer.text import with_capital

FixClass = Literal["exact", "tolerance", "semantic"]
"""What the fix may change in the results: nothing, digits within a tolerance, or what is computed."""

FIX_WORDS: dict[FixClass, str] = {
    "exact": "results stay the same",
    "tolerance": "results may differ within a tolerance",
    "semantic": "what is computed may change",
}

Confidence = Literal["high", "medium", "low"]
"""high: measured or certain from the code; medium: inferred; low: a hint to look."""


_NO_SLUG = re.compile(r"[^a-z0-9]+")


class Cost(Record, frozen=True, kw_only=True):
    """What it costs now; at least one of the three is known, or the cost is null."""

    seconds_per_step: Seconds | None = None
    bytes: Annotated[Bytes | None, doc("of peak memory, or of what stays")] = None
    share: Annotated[float | None, doc("of the step's time, 0 to 1")] = None
    method: Annotated[str, doc("how it was estimated")]


class Gain(Record, frozen=True, kw_only=True):
    """What following the advice should bring; ratios are new over old time per step, below 1 is faster."""

    ratio_low: Annotated[float | None, doc("best case; null where only memory or seconds are predicted")] = (
        None
    )
    ratio_high: Annotated[float | None, doc("worst case")] = None
    saves_bytes: Annotated[Bytes | None, doc("of the peak")] = None
    saves_s: Annotated[Seconds | None, doc("of a step")] = None
    measured: Annotated[bool, doc("the changed program was run; false: predicted")] = False
    method: Annotated[str, doc("what-if, roofline, removal, measured, predicted, model or bound")]


class Advice(Record, frozen=True, kw_only=True):
    """One change to a program, with the evidence for it."""

    slug: Annotated[str, doc("a stable name, such as expandable-segments; a rule's own advice has its name")]
    title: Annotated[str, doc("what to do: a few words, or the whole sentences where `effect` is empty")]
    why: Annotated[
        str, doc("the evidence in this program, with figures; empty where a finding's message says it")
    ] = ""
    effect: Annotated[str, doc("what changes, and what it costs")] = ""
    rewrite: Annotated[
        str | None,
        doc("what to write: the user's own lines, changed, or a whole setting; null where there is none"),
    ] = None
    replaces: Annotated[
        str | None, doc("the user's lines that the rewrite stands in for; null where none are known")
    ] = None
    sketch: Annotated[
        str | None,
        doc(
            "where no rewrite can be made of the user's text: how it is written, in names that stand for the user's"
        ),
    ] = None
    fix_class: FixClass
    lever: Annotated[str | None, doc("change that tuning can try; null where it is for a person")] = None
    gain: Annotated[Gain | None, doc("null where none is predicted")] = None
    where: Annotated[
        Place | None, doc("of what it concerns the most; null: nowhere, or where its finding is")
    ] = None

    @property
    def text(self) -> str:
        """What to do and what that changes, or else why, as whole sentences.

        >>> Advice(slug="pin-memory", title="pin the batches", effect="copies need not be waited for", fix_class="exact").text
        'Pin the batches: copies need not be waited for.'
        """
        if self.effect:
            return sentence(f"{self.title}: {self.effect}")
        return f"{sentence(self.title)} {sentence(self.why)}".strip()

    @property
    def code(self) -> str | None:
        """What to show as code: the rewrite, else the sketch, which says that it is one.

        >>> print(Advice(slug="cast", title="cast", sketch="model.half()", fix_class="tolerance").code)
        # a sketch, with names that stand for yours
        model.half()
        """
        if self.rewrite is not None or self.sketch is None:
            return self.rewrite
        return f"# a sketch, with names that stand for yours\n{self.sketch}"

    @property
    def saves_bytes(self) -> Bytes:
        """Of the peak; 0 where that is not predicted."""
        return (self.gain and self.gain.saves_bytes) or 0

    @property
    def saves_s(self) -> Seconds:
        """Of a step; 0 where that is not predicted."""
        return (self.gain and self.gain.saves_s) or 0.0


def titled(title: str, **fields: Any) -> Advice:
    """Advice whose slug is its title.

    >>> titled("compute it with torch.special", fix_class="exact").slug
    'compute-it-with-torch-special'
    """
    return Advice(slug=_NO_SLUG.sub("-", title.lower()).strip("-"), title=title, **fields)


def sentence(text: str) -> str:
    """With a capital letter, as `with_capital` has it, and a full stop.

    >>> sentence("load with one worker"), sentence("nn.Identity takes its place.")
    ('Load with one worker.', 'nn.Identity takes its place.')
    """
    said = with_capital(text.strip())
    return said if not said or said[-1] in ".!?:" else f"{said}."
