"""The name of one compilation, as torch writes it in logs, profiles and metrics."""

from __future__ import annotations

import re
from typing import NamedTuple

_TEXT = re.compile(
    r"(?:!(?P<autograd>\d+|None)(?:/|$))?(?:(?P<frame>\d+)/(?P<compile>\d+))?(?:_(?P<attempt>\d+))?$"
)


class CompileId(NamedTuple):
    """Which compilation of which frame; `0/1` is the second compilation of the first frame.

    Ids restart at `0/0` after `torch._dynamo.reset()`, so that `epoch` counts the resets that were seen.
    """

    epoch: int
    autograd: int | None
    """Number of the compiled autograd graph, where there is one."""
    frame: int | None
    compile: int | None

    @property
    def text(self) -> str:
        """As torch writes it, with the epoch in front when there was a reset.

        >>> CompileId(0, None, 2, 1).text, CompileId(1, None, 0, 0).text, CompileId(0, 3, 1, 0).text
        ('2/1', 'r1:0/0', '!3/1/0')
        """
        frame = "" if self.frame is None else f"{self.frame}/{self.compile}"
        parts = [] if self.autograd is None else [f"!{self.autograd}"]
        name = "/".join([*parts, frame] if frame else parts)
        return f"r{self.epoch}:{name}" if self.epoch else name

    @property
    def of_frame(self) -> CompileId:
        """The frame by itself: the same for all of its compilations.

        >>> CompileId(0, None, 2, 1).of_frame == CompileId(0, None, 2, 0).of_frame
        True
        """
        return self._replace(compile=None)


def parse_compile_id(text: str, epoch: int = 0) -> CompileId | None:
    """Read an id as torch writes it; `None` when it is none.

    >>> parse_compile_id("2/1").frame, parse_compile_id("!3/1/0").autograd, parse_compile_id("none")
    (2, 3, None)
    """
    match = _TEXT.match(text.strip())
    if not text.strip() or match is None or (match["frame"] is None and match["autograd"] is None):
        return None
    autograd = None if match["autograd"] in {None, "None"} else int(match["autograd"])
    frame, number = (None if match[name] is None else int(match[name]) for name in ("frame", "compile"))
    return CompileId(epoch, autograd, frame, number)
