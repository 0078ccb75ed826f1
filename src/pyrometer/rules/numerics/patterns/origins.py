"""Places that a numerics report names, as places of findings and in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.place import Place

if TYPE_CHECKING:
    from pyrometer.numerics.report import NonFinite

NOT_FINITE = {"nan": "NaN", "inf": "infinite"}


def cause(non_finite: NonFinite) -> Place:
    """Where a value that is not finite began: at the infinity that a NaN was made of, else where it arose itself."""
    return non_finite.overflow if non_finite.overflow is not None else non_finite.origin


def spoken(place: Place) -> str:
    """A place in a sentence: the operator, and the line or else the module.

    >>> from pyrometer.place import Place
    >>> spoken(Place(op="aten::exp", file="src/model.py", line=12)), spoken(Place(op="aten::addmm", module="head"))
    ('aten::exp (model.py:12)', 'aten::addmm in module head')
    """
    name = place.op or "an operator"
    if place.file is not None:
        return f"{name} ({place.file.rpartition('/')[2]}:{place.line})"
    return f"{name} in module {place.module}" if place.module else name


def story(non_finite: NonFinite) -> str:
    """How a value came to be not finite, in a clause.

    >>> from pyrometer.place import Place
    >>> from pyrometer.numerics.report import NonFinite
    >>> story(NonFinite(step=0, kind="nan", seen_in=None, in_result=True, source="input", source_name="0"))
    'input 0 holds it already'
    """
    if non_finite.source in {"input", "parameter"} and non_finite.overflow is None:
        return f"{non_finite.source} {non_finite.source_name} holds it already"
    if non_finite.overflow is not None:
        return f"{spoken(non_finite.overflow)} gives an infinity, and {spoken(non_finite.origin)} makes NaN of it"
    return f"it arises in {spoken(non_finite.origin)}"


def cure(place: Place) -> str:
    """What usually mends an operator that gives NaN or infinity."""
    op = (place.op or "").removeprefix("aten::")
    name, _, node = op.partition(" of ")
    return next(
        (
            advice
            for names, advice in _CURES
            if name.rstrip("_") in names or any(one in node.lower() for one in names)
        ),
        "Look at the range of its inputs there; keep it in float32, and clamp what can leave the range of the dtype.",
    )


_CURES = (
    (
        ("masked_fill", "full"),
        "Leave at least one entry of each row unmasked, or mask with the smallest finite value of the dtype.",
    ),
    (
        ("softmax",),
        "See that no row is masked as a whole: leave one entry, or mask with the smallest finite value of the dtype.",
    ),
    (
        ("exp", "expm1", "sinh", "cosh"),
        "Take the maximum off first, as `softmax` and `logsumexp` do, or stay with logarithms.",
    ),
    (
        ("log", "log2", "log10", "log1p"),
        "Use `log_softmax`, `logsigmoid` or `xlogy`, or clamp the argument from below.",
    ),
    (
        ("sqrt", "rsqrt", "norm"),
        "Add a small number under the root: its slope at 0 is infinite, and below 0 it is NaN.",
    ),
    (
        ("div", "reciprocal"),
        "Keep the divisor away from 0: add a small number to it, or clamp it from below.",
    ),
    (
        ("pow", "square", "acos", "asin", "atanh", "tan"),
        "Keep the argument inside of the range: clamp it, or compute in float32.",
    ),
)
