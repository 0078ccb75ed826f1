"""What a script is doing between one thing that begins or ends and the next, by the names of the phases of a workload."""

from __future__ import annotations

from pyrometer.workload.script.startup._pyrometer_inside import kinds

SETUP = "setup"
"""Before anything of a step: making the model, loading data."""

RUN = "run"
"""All of a script without steps."""

_NAMES = {
    kinds.DATA_BEGIN: "data",
    kinds.FORWARD_BEGIN: "forward",
    kinds.BACKWARD_BEGIN: "backward",
    kinds.OPTIMIZER_BEGIN: "optimizer",
}
_BETWEEN = {
    (kinds.DATA_END, kinds.FORWARD_BEGIN): "h2d",  # copies to the device, if anything
    (kinds.DATA_END, kinds.BACKWARD_BEGIN): "forward",  # of a model that is no module
    (kinds.FORWARD_END, kinds.FORWARD_BEGIN): "forward",
    (kinds.FORWARD_END, kinds.BACKWARD_BEGIN): "forward",  # the loss
    (kinds.BACKWARD_END, kinds.FORWARD_BEGIN): "data",  # batches that no loader makes
    (kinds.OPTIMIZER_END, kinds.FORWARD_BEGIN): "data",
    (kinds.OPTIMIZER_END, kinds.BACKWARD_BEGIN): "forward",
}


class Phases:
    """Names the stretch that is over whenever something begins or ends.

    >>> phases = Phases()
    >>> [phases.begin(kinds.FORWARD_BEGIN), phases.end(kinds.FORWARD_END), phases.begin(kinds.BACKWARD_BEGIN)]
    ['setup', 'forward', 'forward']
    """

    def __init__(self) -> None:
        self._open: list[int] = []
        self._ended: int | None = None

    @property
    def begun(self) -> bool:
        """Whether anything has begun at all."""
        return bool(self._open) or self._ended is not None

    def begin(self, kind: int) -> str:
        """Something of this kind begins; returns what the stretch before was."""
        if kind not in (kinds.FORWARD_BEGIN, kinds.BACKWARD_BEGIN):
            self._open.clear()  # an optimizer that raised has not told its end
        name = self._name(kind)
        self._open.append(kind)
        return name

    def end(self, kind: int) -> str:
        """Something of this kind has ended; returns what the stretch before was."""
        while self._open and self._open.pop() != kind - 1:
            pass
        self._ended = kind
        return _NAMES[kind - 1]

    def rest(self) -> str:
        """The script ends; returns what the stretch before was."""
        return self._name(None) if self.begun else RUN

    def _name(self, kind: int | None) -> str:
        if self._open:
            return _NAMES[self._open[-1]]
        if self._ended is None:
            return SETUP
        return _BETWEEN.get((self._ended, kind or 0), "rest")
