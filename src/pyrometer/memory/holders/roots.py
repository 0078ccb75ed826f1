"""Where everything that lives hangs: modules, the frames of all threads, context variables.

Python up to 3.12 keeps what `frame.f_locals` answered on the frame, so that looking would itself keep alive what the function
drops later; the copy is emptied again after the look. From 3.13 on nothing is kept.
"""

from __future__ import annotations

import contextvars
import inspect
import sys
import threading
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyrometer.memory.holders import kinds
from pyrometer.source.ownership import owner_of
from pyrometer.text import shown_path

_HERE = str(Path(__file__).parent)
_OURS_ONLY = 3
"""References to a frame's copy of its locals when nobody else has it: the frame, our variable, and the call that counts."""


@dataclass(frozen=True)
class Root:
    """A place where names live, with what they stand for."""

    kind: str
    name: str
    """Of the module, function or thread."""
    path: Any = None
    """Of its file, where it has one."""
    line: int | None = None
    thread: str | None = None
    """The thread's name, when it is not the one that asks."""
    is_user: bool = True
    items: list[tuple[str, Any]] = field(default_factory=list)
    namespace: Any = None
    """The dictionary that the names are from; it is not looked through again."""

    @property
    def file(self) -> str | None:
        """Its file as people read it."""
        return shown_file(self.path)


def all_roots() -> list[Root]:
    """Every root, the user's first: frames from the innermost, modules with `__main__` first."""
    frames, globals_of = _frames()
    modules = _modules()
    known = {id(root.namespace) for root in modules}
    loose = [_loose(names) for names in globals_of if id(names) not in known]
    roots = [*modules, *frames, *loose, *_context(), *_handled()]
    return sorted(roots, key=lambda root: not root.is_user)


def own_values() -> list[Any]:
    """What we, the test runner and the profiler have in modules and running functions; not what the search itself has."""
    values = [module for name, module in list(sys.modules.items()) if kinds.is_own_module(name)]
    for _, frame in _running():
        file = frame.f_code.co_filename
        if kinds.is_own_file(file) and not file.startswith(_HERE):
            values += [value for _, value in frame_locals(frame)]
    return values


def frame_locals(frame: types.FrameType) -> list[tuple[str, Any]]:
    """Names and values of a frame's variables; the frame keeps no copy of them.

    >>> def function():
    ...     x = 1
    ...     return frame_locals(inspect.currentframe())
    >>> function()
    [('x', 1)]
    """
    values: Any = frame.f_locals
    if type(values) is not dict:
        optimized = type(values).__name__ == "FrameLocalsProxy"
        return list(values.items()) if optimized else []  # else a mapping of a metaclass's own
    found = list(values.items())
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED and sys.getrefcount(values) <= _OURS_ONLY:
        values.clear()
    return found


def shown_file(path: Any) -> str | None:
    """A path as people read it; `None` for what is none."""
    return shown_path(path) if type(path) is str else None


def is_user_file(path: Any) -> bool:
    """Whether code is the user's rather than installed."""
    return type(path) is str and owner_of(path) == "user"


def _modules() -> list[Root]:
    main = sys.modules.get("__main__")
    roots: list[Root] = []
    for name, module in [("__main__", main), *list(sys.modules.items())]:
        if type(name) is not str or kinds.is_own_module(name) or (name == "__main__" and roots):
            continue
        if not kinds.is_kind(module, types.ModuleType):
            roots.append(Root("module global", "sys.modules", is_user=False, items=[(name, module)]))
            continue
        names = kinds.attributes_of(module)
        if not any(
            root.namespace is names for root in roots[:1]
        ):  # __main__ has a second name in child processes
            roots.append(_of_module(name, names))
    return roots


def _of_module(name: str, names: dict[str, Any]) -> Root:
    file = names.get("__file__")
    return Root(
        "module global",
        name,
        file,
        is_user=is_user_file(file) or name == "__main__",
        items=list(names.items()),
        namespace=names,
    )


def _loose(names: dict[str, Any]) -> Root:
    """Globals of code that runs without a module: `exec`, `runpy`."""
    name, file = names.get("__name__"), names.get("__file__")
    text = name if type(name) is str else "exec"
    user = is_user_file(file) or file is None
    return Root("module global", text, file, is_user=user, items=list(names.items()), namespace=names)


def _frames() -> tuple[list[Root], list[dict[str, Any]]]:
    """The frames of all threads, and the globals that their code has."""
    names = {thread.ident: _thread_name(thread) for thread in threading.enumerate()}
    mine = threading.get_ident()
    roots: list[Root] = []
    globals_of: dict[int, dict[str, Any]] = {}
    for ident, frame in _running():
        if not kinds.is_own_file(frame.f_code.co_filename):
            globals_of.setdefault(id(frame.f_globals), frame.f_globals)
            if frame.f_locals is not frame.f_globals:
                thread = None if ident == mine else names.get(ident, "without a name")
                roots.append(_of_frame(frame, thread))
    return roots, list(globals_of.values())


def _running() -> Iterator[tuple[int, types.FrameType]]:
    """The frames of all threads with the thread's number, those of the asking one first, without those of this module.

    A frame in a variable of its own function would be a reference cycle, with all that the function looked at.
    """
    mine = threading.get_ident()
    current = sys._current_frames()  # noqa: SLF001 - a documented function of Python
    try:
        for ident in sorted(current, key=lambda one: one != mine):
            frame: types.FrameType | None = current[ident]
            while frame is not None:
                if frame.f_code.co_filename != __file__:
                    yield ident, frame
                frame = frame.f_back
    finally:
        current.clear()
        frame = None


def _of_frame(frame: types.FrameType, thread: str | None) -> Root:
    code = frame.f_code
    return Root(
        "frame local",
        kinds.short_name(getattr(code, "co_qualname", code.co_name)),
        code.co_filename,
        frame.f_lineno,
        thread,
        is_user_file(code.co_filename),
        frame_locals(frame),
    )


def _thread_name(thread: threading.Thread) -> str:
    name = kinds.attributes_of(thread).get("_name")
    return name if type(name) is str else "without a name"


def _context() -> list[Root]:
    items = [(variable.name, value) for variable, value in contextvars.copy_context().items()]
    return [Root("context variable", "the running context", items=items)] if items else []


def _handled() -> list[Root]:
    """The exception that a running `except` block handles."""
    error = sys.exc_info()[1]
    if error is None:
        return []
    return [Root("traceback", "the exception being handled", items=[("exception", error)])]
