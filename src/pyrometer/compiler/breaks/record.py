"""Records of graph breaks and skipped frames."""

from __future__ import annotations

from typing import Annotated

from pyrometer.advice import Advice
from pyrometer.place import Place
from pyrometer.record import Record, doc


class Break(Record, frozen=True, kw_only=True):
    """One place in the user's program at which a graph had to end."""

    id: Annotated[str | None, doc("torch's stable id such as gb0170; null when torch gave none")]
    reason: Annotated[str, doc("what it is, in a line")]
    explanation: str = ""
    hints: Annotated[list[str], doc("torch's own advice")] = []
    file: Annotated[str, doc("of the innermost line that is the user's own")]
    line: int
    function: str = ""
    source: Annotated[str, doc("text of the line; empty when unknown or withheld")] = ""
    user_stack: Annotated[list[Place], doc("the outermost first")] = []
    count: Annotated[int, doc("how often it was met, over all compilations")] = 1
    sites: Annotated[int, doc("breaks of this kind that stand on the line, as far as seen")] = 1
    inside_torch: Annotated[bool, doc("it lies in code of torch's own that the line called")] = False
    chained: Annotated[bool, doc("follows from another break in the same frame, and goes away with it")] = (
        False
    )
    chained_to: Annotated[str | None, doc("file:line of the break that it follows from")] = None
    skips_frame: Annotated[bool, doc("the whole function then runs eagerly")] = False
    skips_rest: Annotated[
        bool, doc("what is behind it in the function runs eagerly, as does the statement that led up to it")
    ] = False
    compile_ids: list[str] = []
    lost_ops: Annotated[
        int | None, doc("tensor operations of the frame that stayed out of any graph; null if unknown")
    ] = None
    left_eager: Annotated[
        list[Place],
        doc(
            "functions of torch.nn around the break, such as that of nn.Sequential, that now run eagerly: torch never compiles them by themselves"
        ),
    ] = []
    advice: list[Advice] = []
    context: Annotated[str, doc("torch's developer context")] = ""


class SkippedFrame(Record, frozen=True, kw_only=True):
    """A function that was given up: it runs eagerly, unless the caller got an exception instead (kind `raised`)."""

    compile_id: str
    function: str
    file: str
    line: int
    reason: str
    kind: Annotated[
        str,
        doc(
            "break, recompile_limit, error or rule: what ended it, so that it runs eagerly; raised: whatever ended it was raised to the caller, and nothing ran eagerly"
        ),
    ]
    num_breaks: Annotated[int, doc("breaks that led to it")] = 0
    count: Annotated[int, doc("compilations of the frame that ended so")] = 1
    called_from: Annotated[
        list[Place], doc("the outermost first; the call that was to be compiled is the last")
    ] = []
    raised: Annotated[
        bool | None,
        doc(
            "the caller got an exception, as kind says too; false: the function ran eagerly; null if not told"
        ),
    ] = None
    lost_ops: Annotated[
        int | None, doc("tensor operations of the frame that stayed out of any graph; null if unknown")
    ] = None
