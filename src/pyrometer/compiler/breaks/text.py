"""The text that torch writes about a break, taken apart.

Each break reads: a reason in one line, `Explanation:`, `Hint:` any number of times, `Developer debug context:` and a link that
holds the stable id; then the user's stack. Where handling a break led to another one, theirs follow each other in one text.
Older torch gives a reason alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import dedent

from pyrometer.compiler.private import break_registry
from pyrometer.compiler.stack import printed_stack
from pyrometer.place import Place

_PLACE = re.compile(r"^Graph break in user code at (?P<file>.+):(?P<line>\d+)\s*$", re.MULTILINE)
_REASON = re.compile(r"^(?:Graph Break )?Reason: ?", re.MULTILINE)
_STACK = re.compile(
    r"^(?:User code traceback:|The graph break occurred in the following user code:"
    r"|Graph break: skip: from user code at:"
    r"|=+ The above exception occurred while processing the following code =+|from user code:)\s*$",
    re.MULTILINE,
)
_ATTRIBUTION = "\nStack variable source attribution:\n"
_NEXT = re.compile(
    r"^\*\*\* While handling this graph break, another graph break occurred: \*\*\*\s*$", re.MULTILINE
)
_EXPLAINED = re.compile(
    r"^(?P<reason>\S[^\n]*)\n(?: +Higher Order Operator: [^\n]*\n)? +Explanation:(?P<body>.*)",
    re.MULTILINE | re.DOTALL,
)
_CONTEXT = re.compile(r"\n +Developer debug context:")
_LINK = re.compile(
    r"\n\s*For more details about this graph break, please visit: \S*/gb/(?P<id>gb\d+)\.html", re.IGNORECASE
)
_HINT = re.compile(r"\n +Hint: ?")
_RAISED = re.compile(r"^torch\._dynamo\.exc\.\w+: ", re.MULTILINE)

GIVES_UP = (
    "Skipping the function and falling back to eager",
    "which results in a skip",
    "Graph break: skip:",
    "WON'T CONVERT",
)
GIVES_UP_REST = "then skipping the rest of the function"
FOLLOWS = "may have been caused by an earlier graph break"
"""What torch's hints say of a break that another one led to."""


@dataclass(frozen=True)
class Cause:
    """Why a graph had to end."""

    reason: str
    id: str | None = None
    explanation: str = ""
    hints: tuple[str, ...] = ()
    context: str = ""

    @property
    def may_follow(self) -> bool:
        """Whether torch itself suspects that an earlier break led to it."""
        return any(FOLLOWS in hint for hint in self.hints)


@dataclass(frozen=True)
class BreakText:
    """One text: the root cause first, then what handling it ran into."""

    causes: tuple[Cause, ...]
    stack: tuple[Place, ...]
    place: Place | None
    """Where torch says that the break is; mostly the innermost frame of the stack."""
    gives_up: bool
    """The function runs eagerly."""
    gives_up_rest: bool
    """What is behind the last place at which it could go on runs eagerly."""
    is_backend: bool = False
    """Says only that a backend failed; torch then writes another text with the reason."""


def parse_break(text: str) -> BreakText:
    r"""Take a text about a break apart; every text gives at least one cause.

    >>> text = "Graph break in user code at m.py:3\nGraph Break Reason: Data-dependent branching\n  Explanation: No.\n"
    >>> parse_break(text).causes[0].reason, parse_break(text).place.line
    ('Data-dependent branching', 3)
    """
    head, separator, tail = _split(text, _STACK)
    told = head.partition(_ATTRIBUTION)[0]
    match = _PLACE.search(told)
    body = told[match.end() :] if match else told
    raised = _split(tail, _RAISED, last=True)[2]
    is_backend = told.startswith("WON'T CONVERT")
    return BreakText(
        causes=parse_causes(body) or parse_causes(raised) or (_bare(body.strip() or raised, is_backend),),
        stack=printed_stack(tail),
        place=Place(file=match["file"], line=int(match["line"])) if match else None,
        gives_up=any(words in head + separator for words in GIVES_UP),
        gives_up_rest=GIVES_UP_REST in told,
        is_backend=is_backend,
    )


def parse_causes(text: str) -> tuple[Cause, ...]:
    r"""The breaks that a text explains, the root cause first.

    >>> parse_causes("Unsupported Tensor.item()\n  Explanation: No.\n  Hint: Set it.\n\n  Developer debug context: call")
    (Cause(reason='Unsupported Tensor.item()', id=None, explanation='No.', hints=('Set it.',), context='call'),)
    """
    matches = (_EXPLAINED.search(part) for part in _NEXT.split(text))
    return tuple(_cause(match["reason"], match["body"]) for match in matches if match is not None)


def user_stack(text: str) -> tuple[Place, ...]:
    """The user's stack at the end of an error's text; empty where there is none."""
    return printed_stack(_split(text, _STACK, last=True)[2])


def _cause(reason: str, body: str) -> Cause:
    link = _LINK.search(body)
    told, _, context = _split(body[: link.start()] if link else body, _CONTEXT)
    explanation, *hints = _HINT.split(told)
    reason = _REASON.sub("", reason).strip()
    known = break_registry.by_reason(reason)
    return Cause(
        reason=reason,
        id=link["id"].lower() if link else known.id if known is not None else None,
        explanation=_joined(explanation),
        hints=tuple(_joined(hint) for hint in hints),
        context=_joined(context),
    )


def _joined(text: str) -> str:
    """Without the indentation that torch gives to the second line and all behind it."""
    first, separator, others = text.strip().partition("\n")
    return (first + separator + dedent(others)).strip()


def _bare(text: str, is_backend: bool) -> Cause:
    """A cause that is told without an explanation: its first line, or the exception that a traceback ends in."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    line = (lines[-1] if is_backend else lines[0]) if lines else "unknown"
    return Cause(_REASON.sub("", line).removeprefix("Unsupported: ").strip())


def _split(text: str, pattern: re.Pattern[str], *, last: bool = False) -> tuple[str, str, str]:
    """Like `str.partition`, at the first or last match of a pattern."""
    match = pattern.search(text)
    if match is None:
        return text, "", ""
    if last:
        *_, match = pattern.finditer(text)
    return text[: match.start()], match[0], text[match.end() :]
