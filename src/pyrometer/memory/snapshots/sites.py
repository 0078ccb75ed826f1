"""Names for call stacks: the user's line, else the operator, and what was going on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyrometer.memory.snapshots.snapshot import NO_STACK, Frame, Snapshot
from pyrometer.source.ownership import owner_of

NO_SITE = "(no stack recorded)"
BEFORE_SITE = "(before the recording)"
_BACKWARD = re.compile(r"(?:^|::)(\w+Backward\d*)(?:::|$|\()")
_OPERATOR = re.compile(r"at::_ops::(\w+?)::(?:call|redispatch)")
_EMPTY = re.compile(r"empty|resize|new_|zeros|ones|full|_to_copy$")


@dataclass(frozen=True)
class Site:
    """What a call stack tells."""

    name: str
    function: str | None = None
    operator: str | None = None


def is_python(frame: Frame) -> bool:
    """Whether it is Python code and not C++."""
    return frame.file.endswith(".py") or frame.file.startswith("<")


def is_users(frame: Frame) -> bool:
    """Whether it is Python code outside of torch and the standard library."""
    return is_python(frame) and owner_of(frame.file, frame.name) in {"user", "library"}


def backward_node(frames: list[Frame]) -> str | None:
    """The autograd node that ran, such as `MmBackward0`."""
    for frame in frames:
        if not is_python(frame) and (match := _BACKWARD.search(frame.name)):
            return match[1]
    return None


def operator(frames: list[Frame]) -> str | None:
    """The operator that allocated, such as `aten.mm`: the first that does not only make room."""
    names = [match[1] for frame in frames if (match := _OPERATOR.search(frame.name))]
    if not names:
        return None
    return "aten." + next((name for name in names if not _EMPTY.match(name)), names[0])


def site(frames: list[Frame]) -> Site:
    """A name for a stack: the innermost line of the user's, else the autograd node, the operator, or what there is.

    >>> site([Frame("forward", "/x/torch/nn/modules/linear.py", 1), Frame("step", "/home/me/train.py", 12)]).name
    '/home/me/train.py:12'
    >>> site([Frame("torch::autograd::generated::DivBackward0::apply(at::Tensor)", "??", 0)]).name
    'DivBackward0'
    """
    if not frames:
        return Site(NO_SITE)
    node, made_by = backward_node(frames), operator(frames)
    for frame in frames:
        if is_users(frame):
            return Site(f"{frame.file}:{frame.line}", frame.name, made_by)
    if node is not None:
        return Site(node, None, made_by or node)
    for frame in frames:
        if is_python(frame):
            return Site(f"{frame.file}:{frame.line}", frame.name, made_by)
    return Site(made_by or _short(frames[0].name), None, made_by)


def _short(name: str) -> str:
    return name.split("(", maxsplit=1)[0][:80] or NO_SITE


def sites(snapshot: Snapshot) -> list[Site]:
    """Names for all stacks of a snapshot, by number."""
    made = [site([snapshot.frames[i] for i in stack]) for stack in snapshot.stacks]
    assert made[NO_STACK].name == NO_SITE
    return made
