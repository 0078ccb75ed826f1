"""Records of guards and of recompilations."""

from __future__ import annotations

from typing import Annotated

from pyrometer.place import Place
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc


class RecompileCause(Record, frozen=True, kw_only=True):
    """Why one earlier compilation of the frame could not be used again."""

    entry: Annotated[str, doc("the compilation that did not fit")]
    guard: Annotated[str, doc("the first guard that failed, in torch's words")]
    all_failing: Annotated[
        list[str],
        doc("every guard that failed: the first one, and those that differ between the two compilations"),
    ]
    kind: Annotated[
        str, doc("size, dtype, stride, device, value, type, training, global_state, identity, … or unknown")
    ] = "unknown"
    place: Annotated[Place | None, doc("the line that the guard comes from, where torch knows it")] = None


class ChangedInput(Record, frozen=True, kw_only=True):
    """An input, or an attribute, that was different this time."""

    source: Annotated[str, doc("as an expression over the function's locals: L['x'].size()[0]")]
    name: Annotated[str, doc("in words: x, dimension 0")]
    kind: Annotated[str, doc("size, dtype, stride, device, value, …")]
    before: Annotated[
        list[str],
        doc(
            "values that earlier compilations were made for; of the nearest one alone where each input's value was met before"
        ),
    ]
    after: str
    became_dynamic: Annotated[bool, doc("torch now compiles for any value of it")] = False


class Recompile(Record, frozen=True, kw_only=True):
    """A frame compiled once more."""

    compile_id: str
    function: str
    file: str
    line: int
    causes: list[RecompileCause]
    changed_inputs: list[ChangedInput]
    called_from: Annotated[
        list[Place],
        doc("the outermost first; the call that needed it is the last, unless torch leaves it out"),
    ] = []
    compile_s: Annotated[Seconds | None, doc("what this compilation took")] = None


class LimitReached(Record, frozen=True, kw_only=True):
    """A frame that torch stopped compiling: calls that fit no compilation run eagerly from then on, in silence."""

    function: str
    file: str
    line: int
    limit: Annotated[int | None, doc("the limit in force; null if not told")] = None
    reason: str
    compile_id: Annotated[str, doc("the compilation that was refused; empty if not told")] = ""
    causes: Annotated[list[RecompileCause], doc("why none of the earlier compilations fitted")] = []


class StrictGuard(Record, frozen=True, kw_only=True):
    """A guard that holds for fewer values than the code needs."""

    guard: str
    type: str
    source: str
    why: Annotated[str, doc("what it ties down, and what to do")]
    compile_id: str
    num_failed: Annotated[int, doc("compilations here for which it failed")] = 0
    num_alike: Annotated[
        int, doc("further guards that tie other items, or other modules, down in the same way")
    ] = 0


class FrameGuards(Record, frozen=True, kw_only=True):
    """The guards of one compilation."""

    compile_id: str
    total: int
    by_type: dict[str, int]
    eval_s: Annotated[Seconds | None, doc("one evaluation of all of them; null if unknown")] = None
    cold_eval_s: Annotated[
        Seconds | None, doc("torch's own figure: one evaluation right after compiling, with cold caches")
    ] = None
    slowest: Annotated[list[str], doc("the most expensive guards, where that was measured")] = []


class GuardSummary(Record, frozen=True, kw_only=True):
    """The guards of all compilations that are in use."""

    by_type: dict[str, int] = {}
    total: int = 0
    eval_s: Annotated[
        Seconds | None, doc("one evaluation of the guards of every frame, measured; null if unknown")
    ] = None
    per_compilation: list[FrameGuards] = []
    strict: list[StrictGuard] = []


class SymbolicSize(Record, frozen=True, kw_only=True):
    """A size that torch keeps open, and what it was tied to."""

    compile_id: str
    symbol: str
    source: str
    value: Annotated[str, doc("at the first call")]
    range: str = ""
    specialized_to: Annotated[str | None, doc("a value that it was fixed to after all")] = None
    constraints: Annotated[list[str], doc("further guards on it")] = []
    place: Annotated[Place | None, doc("the line that fixed or constrained it")] = None
