"""Which lines are the user's own: not torch's, and not a library's where the user's own code called it."""

from __future__ import annotations

import linecache
import re
import sysconfig
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import msgspec

from pyrometer.compiler.place import Place
from pyrometer.compiler.stack import printed_stack

Origin = Literal["user", "library", "torch"]

_TORCH = re.compile(r"(?:site|dist)-packages/torch/|/torch/_(?:dynamo|inductor|functorch|higher_order_ops)/")
_LIBRARY = re.compile(
    r"(?:site|dist)-packages/|/lib(?:64)?/python3(?:\.\d+)?t?/|/Python3\d+/Lib/|^<(?:frozen |eval_with_key>)"
)
_STARTER = re.compile(r"/(?:bin|Scripts)/(?:pyrometer|torchrun|pytest)(?:-script\.py|\.exe)?$")
"""Scripts that an installation makes, and that only start another program."""
_GENERATED = re.compile(r"<string>:__\w+__$")
"""Methods that dataclasses, namedtuples and their like make out of text; code of the user's in a text defines no such function alone."""


@lru_cache(maxsize=4096)
def origin_of(file: str, function: str = "") -> Origin:
    """Whose a file is, by its path alone: logs may come from another machine.

    Code out of a text (`exec`, a notebook) is the user's, save methods such as `__init__` in `<string>`: dataclasses make
    these.

    >>> origin_of("/home/me/train.py"), origin_of("/venv/lib/python3.12/site-packages/timm/layers.py")
    ('user', 'library')
    >>> origin_of("/venv/lib/python3.12/site-packages/torch/optim/sgd.py"), origin_of("/usr/lib/python3.12/json/encoder.py")
    ('torch', 'library')
    """
    path = file.replace("\\", "/")
    if _GENERATED.match(f"{file}:{function}"):
        return "library"
    torch_folders, library_folders = _folders()
    if _TORCH.search(path) or path.startswith(torch_folders):
        return "torch"
    if _STARTER.search(path) or _LIBRARY.search(path) or path.startswith(library_folders):
        return "library"
    return "user"


def own_stack(stack: Sequence[Place]) -> tuple[Place, ...]:
    """The frames of the user's, and those of libraries that the innermost of them called; the outermost first.

    Without any frame of the user's: those of libraries; without these either: torch's.
    """
    outside = [place for place in stack if _origin(place) != "torch"]
    own = [place for place in outside if _origin(place) == "user"]
    if not own:
        return tuple(outside or stack)
    last = max(number for number, place in enumerate(outside) if place is own[-1])
    return (*own, *outside[last + 1 :])


def own_place(stack: Sequence[Place]) -> Place | None:
    """The innermost line that is the user's own; of a library where there is none, of torch where there is nothing else."""
    for wanted in ("user", "library", "torch"):
        for place in reversed(stack):
            if _origin(place) == wanted:
                return place
    return None


def line_outside_torch(stack: str) -> str:
    """The innermost line of a printed stack that is not torch's own, as `file:line`; empty if there is none.

    >>> line_outside_torch('  File "/home/me/net.py", line 7, in forward')
    '/home/me/net.py:7'
    """
    places = (place for place in reversed(printed_stack(stack)) if _origin(place) != "torch")
    return next((place.text for place in places), "")


def _origin(place: Place) -> Origin:
    return origin_of(place.file, place.function)


def with_source(place: Place, *, is_live: bool) -> Place:
    """The same with the text of its line, if that was not logged and the file is the one that runs here."""
    if place.source or not is_live:
        return place
    return msgspec.structs.replace(place, source=linecache.getline(place.file, place.line).strip())


@lru_cache(maxsize=1)
def _folders() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Where torch, and where libraries and we ourselves are installed here."""
    spec = find_spec("torch")
    torch_folders = (spec.submodule_search_locations if spec is not None else None) or []
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    libraries = {sysconfig.get_path(name) for name in names}
    libraries.add(str(Path(__file__).parents[1]))
    return _prefixes(torch_folders), _prefixes(folder for folder in libraries if folder)


def _prefixes(folders: Iterable[str]) -> tuple[str, ...]:
    return tuple(Path(folder).as_posix() + "/" for folder in folders)
