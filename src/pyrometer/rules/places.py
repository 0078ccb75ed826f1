"""Places that records name, as places of findings and as words in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.place import Place
from pyrometer.rules.joining import Located, module_of

if TYPE_CHECKING:
    from pyrometer.rules.rule import Case


def place_of(case: Case, where: Located, *, line: int | None = None, op: str | None = None) -> Place:
    """The place of a finding; `line` is the exact one where the source told it.

    The file is named as the source is, so that comments in it and its path are found again.
    """
    module = module_of(where.file, case.modules)
    return Place(
        file=module.path if module is not None else where.file,
        line=where.line if line is None else line,
        function=getattr(where, "function", None),
        module=getattr(where, "module", None),
        op=op if op is not None else getattr(where, "op", None),
    )


def spoken(place: Place) -> str:
    """A place within a sentence, empty where nothing is known.

    >>> spoken(Place(file="src/train.py", line=12, function="step")), spoken(Place(module="encoder")), spoken(Place())
    (' in step (train.py:12)', ' in module encoder', '')
    """
    if place.file is not None:
        end = f":{place.line}" if place.line else ""
        name = place.file.rpartition("/")[2]
        return f" in {place.function} ({name}{end})" if place.function else f" in {name}{end}"
    return f" in module {place.module}" if place.module else ""
