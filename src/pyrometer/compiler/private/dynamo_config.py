"""torch._dynamo.config: settings of Dynamo, read, and set for a while.

Names of settings come and go between releases of torch; each is looked up before it is used.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

from pyrometer.errors import InputError

USED = (
    "capture_scalar_outputs",
    "capture_dynamic_output_shape_ops",
    "reorderable_logging_functions",
    "ignore_logging_functions",
    "allow_rnn",
    "trace_autograd_ops",
    "trace_numpy",
)
"""Settings that the advice on breaks names."""


def value(name: str) -> Any:
    """What a setting is.

    Raises:
        InputError: this torch has no such setting.
    """
    config = _config()
    if not hasattr(config, name):
        raise InputError(f"torch._dynamo.config.{name}: this torch has no such setting")
    return getattr(config, name)


@contextlib.contextmanager
def set_to(name: str, content: Any) -> Iterator[None]:
    """Hold a setting at a value for the length of a block.

    Raises:
        InputError: this torch has no such setting.
    """
    value(name)
    with _config().patch({name: content}):
        yield


def function(name: str) -> Any:
    """The function of a dotted name: of a module, of a class in one, or built in.

    Raises:
        InputError: there is none.
    """
    first, *rest = name.split(".")
    try:
        found: Any = importlib.import_module(first if rest else "builtins")
        for part in rest or [first]:
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise InputError(f"{name}: no function of that name: {error}") from error
    return found


def missing() -> list[str]:
    """What this torch does not have of this, in words."""
    try:
        config = _config()
    except ImportError:
        return ["settings of Dynamo: this torch has no torch._dynamo.config"]
    return [f"torch._dynamo.config.{name}" for name in USED if not hasattr(config, name)]


def _config() -> Any:
    return importlib.import_module("torch._dynamo.config")
