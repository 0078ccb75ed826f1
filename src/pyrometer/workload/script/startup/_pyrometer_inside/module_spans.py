"""A span around every call of a named module, without hooks.

`nn.Module.__call__` is instrumented for as long as the capture lasts: hooks would make `torch.compile` compile anew and
switch transformer layers off their fast path. Inside compiled code there are no calls, so there are no spans either.
"""

from __future__ import annotations

import threading

from .instrument import OBSERVER, instrument
from .kinds import FORWARD_BEGIN
from .kineto import MODULE, sanitised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FunctionType
    from typing import Any

    from .instrument import Switch


class ModuleSpans:
    """Opens `module:<qualified name>` when a module of the given ones is called, and closes it when that call ends.

    Attributes:
        inside: always false, so that nested calls are seen as well.
        exhausted: set by the instrumented code, and of no meaning here.
    """

    __slots__ = ("_annotation", "_names", "_open", "exhausted", "inside")

    def __init__(self, torch: Any) -> None:
        self.inside = False
        self.exhausted = False
        self._annotation = torch.profiler.record_function
        self._names: dict[int, str] = {}
        self._open = threading.local()

    def name_modules(self, root: Any, prefix: str = "") -> None:
        """Give a module and everything inside it their names; the root is called by its class."""
        for name, module in root.named_modules():
            parts = name.split(".")
            # A compiled module wraps the one that the user wrote, and stands for it.
            if parts[-1] != "_orig_mod":
                path = ".".join(part for part in (prefix, *parts) if part and part != "_orig_mod")
                own = type(getattr(module, "_orig_mod", module)).__name__
                self._names.setdefault(id(module), sanitised(MODULE + (path or own)))

    def knows(self, module: Any) -> bool:
        """Whether the module has a name already."""
        return id(module) in self._names

    def begin(self, _kind: int, module: Any) -> bool:
        """A module is called; false when it has no name, and then `end` must not follow."""
        name = self._names.get(id(module))
        if name is None:
            return False
        annotation = self._annotation(name)
        annotation.__enter__()
        opened = getattr(self._open, "stack", None)
        if opened is None:
            opened = self._open.stack = []
        opened.append(annotation)
        return True

    def end(self, _kind: int) -> None:
        """The call has returned or raised; one that began before the capture has nothing to close."""
        opened = getattr(self._open, "stack", None)
        if opened:
            opened.pop().__exit__(None, None, None)

    def forget(self) -> None:
        """Know no module any more."""
        self._names.clear()


class ModuleSwitch:
    """Switches module spans on and off; where the calls are observed already, both see them.

    Raises:
        CannotInstrumentError: this torch's modules are not called as expected.
    """

    def __init__(self, torch: Any) -> None:
        self.spans = ModuleSpans(torch)
        self._call: FunctionType = torch.nn.Module.__call__
        self._both: SpansBeside | None = None
        self._instrumented: Switch | None = None
        if OBSERVER in self._call.__code__.co_names:
            self._both = SpansBeside(self._call.__globals__[OBSERVER], self.spans)
        else:
            self._instrumented = instrument(self._call, FORWARD_BEGIN, self.spans)

    def switch(self, on: bool) -> None:
        """Begin or end; calls that are under way in the meantime end as they began, or unseen."""
        if self._instrumented is not None:
            self._instrumented(on)
            if not on and threading.active_count() > 1:
                # A call on another thread may still be on its way out and look for it.
                self._call.__globals__[OBSERVER] = self.spans
        elif self._both is not None:
            self._both.is_on = on
            self._call.__globals__[OBSERVER] = self._both if on else self._both.observer
        if not on:
            self.spans.forget()


class SpansBeside:
    """The observer of a script's outermost calls, and the spans of all calls."""

    __slots__ = ("_open", "_spans", "exhausted", "inside", "is_on", "observer")

    def __init__(self, observer: Any, spans: ModuleSpans) -> None:
        self.inside = False
        self.exhausted = False
        self.is_on = False
        self.observer = observer
        self._spans = spans
        self._open = threading.local()

    def begin(self, kind: int, module: Any) -> bool:
        """Tell both; each is told of the end only if it took the begin."""
        told = [] if self.observer.inside or not self.observer.begin(kind, module) else [self.observer]
        # The observer may have ended the capture just now.
        if self.is_on:
            if told and not self._spans.knows(module):
                self._spans.name_modules(module)
            if self._spans.begin(kind, module):
                told.append(self._spans)
        if told:
            opened = getattr(self._open, "stack", None)
            if opened is None:
                opened = self._open.stack = []
            opened.append(told)
        return bool(told)

    def end(self, kind: int) -> None:
        """The call has returned or raised; the one in which the capture began was the observer's alone."""
        opened = getattr(self._open, "stack", None)
        for each in reversed(opened.pop() if opened else [self.observer]):
            each.end(kind)
