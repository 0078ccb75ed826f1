"""Where the host's time of a step goes, by the user's lines, loops and functions, and by what they wait for or do."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.place import Place
from pyrometer.quantity import Ratio, Seconds
from pyrometer.record import Record, doc

LeafKind = Literal[
    "python",
    "operator",
    "backward",
    "synchronisation",
    "allocation",
    "regex",
    "json",
    "logging",
    "print",
    "file",
    "fsync",
    "torch.save",
    "pickle",
    "copy",
    "numpy",
    "random",
    "hash",
    "lock",
    "sleep",
    "process",
    "network",
    "garbage",
    "import",
    "data",
    "library",
]
"""What time is spent on. python: the interpreter itself; operator: a call of torch; synchronisation: `.item()` and its like;
data: the next batch of a loader; library: a package without a kind of its own."""


class HostLeaf(Record, frozen=True, kw_only=True):
    """One thing that a place spends time on."""

    kind: LeafKind
    name: Annotated[
        str, doc("of what is called, such as `re.sub` or `os.fsync`; of the kind where that is not known")
    ]
    seconds_per_step: Seconds


class HostLoop(Record, frozen=True, kw_only=True):
    """A loop or comprehension in the user's code."""

    where: Annotated[Place, doc("its first line")]
    over: Annotated[str, doc("what it walks over, as it is written; the condition of a `while`")]
    rounds_per_step: Annotated[float | None, doc("counted; null where they were not")] = None
    entered_per_step: Annotated[
        float | None, doc("how often it starts anew; null where that was not counted")
    ] = None
    total_s: Annotated[Seconds, doc("per step, of all that runs in it")]
    leaves: Annotated[list[HostLeaf], doc("what that time is spent on, most first")] = []


class HostLine(Record, frozen=True, kw_only=True):
    """A line of the user's; never that of a `def`."""

    where: Place
    own_s: Annotated[Seconds, doc("per step, while no other line of the user's ran below it")]
    total_s: Annotated[Seconds, doc("per step, with the user's functions that it calls")]
    leaves: Annotated[list[HostLeaf], doc("what the own time is spent on, most first")] = []
    loop: Annotated[Place | None, doc("first line of the innermost loop around it in its function")] = None


class HostFunction(Record, frozen=True, kw_only=True):
    """A function of the user's."""

    where: Annotated[Place, doc("its most expensive line; `function` is its qualified name")]
    first_line: Annotated[int, doc("of its definition")]
    own_s: Annotated[Seconds, doc("per step, in its lines and what they call that is not the user's")]
    total_s: Annotated[
        Seconds, doc("per step, with the user's functions that it calls; recursion counts once")
    ]
    calls_per_step: Annotated[float | None, doc("counted; null where they were not")] = None


class HostProfile(Record, frozen=True, kw_only=True):
    """Where the host's time of a step goes, sampled while some steps ran without any other observer.

    Of the thread that steps; while it waits for another one of the program, of what that one does. Lines, loops and functions are those of the user's code, most expensive first.
    """

    steps: Annotated[int, doc("that were sampled")]
    samples: int
    interval_s: Annotated[Seconds, doc("between samples, as asked for")]
    step_s: Annotated[Seconds, doc("of a sampled step, the mean; what steps spend adds up to it")]
    bare_step_s: Annotated[Seconds | None, doc("of a step beside them without sampling, the mean")] = None
    overhead_share: Annotated[
        Ratio | None, doc("by which sampling lengthened a step; null where that is not known")
    ] = None
    lines: list[HostLine] = []
    loops: list[HostLoop] = []
    functions: list[HostFunction] = []
    leaves: Annotated[list[HostLeaf], doc("of the whole step, most first")] = []
    outside_s: Annotated[Seconds, doc("per step, in samples without any line of the user's")] = 0.0
    notes: list[str] = []

    def share(self, seconds: Seconds) -> Ratio:
        """Seconds per step as a share of a sampled step."""
        return min(1.0, seconds / self.step_s) if self.step_s > 0 else 0.0
