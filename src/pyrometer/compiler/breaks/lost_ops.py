"""How many tensor operations stayed out of any graph, where the log lets that be known.

torch does not write down what it had traced of a function when it gave the function up. So that this is known only of some
breaks, by their nature; of graphs that a backend failed on; and of frames that compiled before they reached their limit.

Nor does torch say that a break inside a module of `torch.nn` takes that module out of the graph: behind a break every
function is to be compiled by itself, and those of `torch.nn` never are. An `nn.Sequential` with a break in one of its parts
runs eagerly, with all parts that are torch's own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pyrometer.compiler.breaks.frames import Compiled, Functions
from pyrometer.compiler.breaks.occurrence import SOFT_FAILURES, Occurrence
from pyrometer.compiler.compile_id import CompileId
from pyrometer.place import Place
from pyrometer.source.ownership import owner_of

BY_NATURE: Mapping[str, int] = {
    "gb0025": 0,  # torch._dynamo.graph_break()
    "gb0170": 0,  # the branch itself; its condition is in the graph before it
    "gb0033": 1,  # the data-dependent operator itself
    "gb0036": 1,  # the operator with a data-dependent size itself: nonzero, x[mask]
    "gb0037": 1,
    "gb0124": 1,  # Tensor.item()
}
"""Operations that a break with an id keeps out of graphs when the function goes on behind it."""

BUILTIN = "gb0059"
WITHOUT_TENSORS = frozenset({"print", "open", "input"})
"""Builtin functions that are no tensor operations, whatever they are given."""

_PLUMBING = re.compile(r"/torch/(?:nn/modules/module\.py$|_dynamo/)")
"""Functions between a module and its `forward`, or of Dynamo's own: they compute nothing."""

_MODULES = re.compile(r"/torch/nn/")
_BUILTIN = re.compile(r"^builtin (\w+) ")


def num_sites(occurrences: Iterable[Occurrence]) -> int:
    """How many breaks of one kind stand on one line: behind each, the rest of the function is a frame that meets the next."""
    frames = {occurrence.compiled.compile_id.of_frame for occurrence in occurrences if occurrence.is_direct}
    return max([1, *Counter(frame.epoch for frame in frames).values()])


def lost_at(met: Sequence[Occurrence], passed: Sequence[Place]) -> int | None:
    """Operations that one line keeps out of graphs; `None` if unknown.

    Args:
        met: one break, as met in one or more compilations.
        passed: functions of torch's own around it that run eagerly.
    """
    found = [_lost_at(occurrence) for occurrence in met]
    known = [count for count in found if count is not None]
    if not met or len(known) < len(found):
        return None
    if all(_fails(occurrence) for occurrence in met):
        return max(known)
    # What a break is by nature holds where the function that breaks was a frame of its own, and nothing of torch's around it.
    is_seen = any(occurrence.is_direct for occurrence in met) and not passed
    return max(known) * num_sites(met) if is_seen else None


def lost_in(made: Compiled, compiled: Mapping[CompileId, Compiled]) -> int | None:
    """Operations of a frame that was given up; `None` if unknown."""
    if made.graphs:
        return made.num_ops
    if made.limit is None:
        return None
    frame = made.compile_id.of_frame
    earlier = [one for one in compiled.values() if one.compile_id.of_frame == frame and one.num_graphs]
    return earlier[-1].num_ops if earlier else None


def passed_by(occurrences: Iterable[Occurrence], functions: Functions) -> list[Place]:
    """Functions of torch's own that ran eagerly between two frames which met the same break.

    Compilations of the outer frame do not show them: Dynamo goes through modules without a trace of it. They are
    on the stack when the function that it had inlined is compiled by itself.
    """
    outer = {
        functions.of_frame(occurrence.compiled) for occurrence in occurrences if not occurrence.is_direct
    }
    places: dict[tuple[str, str], Place] = {}
    for occurrence in occurrences:
        stack = occurrence.compiled.called_from
        frames = [
            number
            for number, place in enumerate(stack)
            if functions.of(place.path, place.function_name, place.line_number) in outer
        ]
        for place in stack[frames[-1] + 1 :] if frames else ():
            if owner_of(place.path) == "torch" and not _PLUMBING.search(_path(place)):
                places.setdefault((place.path, place.function_name), place)
    return list(places.values())


def modules(passed: Iterable[Place]) -> list[Place]:
    """Those of `torch.nn` among functions."""
    return [place for place in passed if _MODULES.search(_path(place))]


def _lost_at(occurrence: Occurrence) -> int | None:
    if _fails(occurrence):
        return occurrence.compiled.num_ops if occurrence.compiled.graphs else None
    if occurrence.gives_up_rest or occurrence.position:
        return None
    if occurrence.cause.id == BUILTIN:
        builtin = _BUILTIN.match(occurrence.cause.context)
        return 0 if builtin is not None and builtin[1] in WITHOUT_TENSORS else None
    return BY_NATURE.get(occurrence.cause.id or "")


def _fails(occurrence: Occurrence) -> bool:
    return occurrence.gives_up or occurrence.compiled.failure in SOFT_FAILURES


def _path(place: Place) -> str:
    return place.path.replace("\\", "/")
