"""Which overload of an operator a recorded call was: the profiler writes the operator's name alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrometer.errors import InputError
from pyrometer.trace.costs.call import LIST
from pyrometer.trace.replaying.arguments import Recorded, torch_dtype


def overload_of(name: str, recorded: Sequence[Recorded]) -> Any:
    """The overload whose schema has as many arguments as were recorded, of fitting types; of several the first.

    Raises:
        InputError: it is no operator, or none that is registered here, or none of its schemas fits.
    """
    import torch

    namespace, colons, rest = name.partition("::")
    if not colons:
        raise InputError(
            f"--replay {name}: not an operator, which has a name such as aten::mm; see the chapter Operators"
        )
    packet = getattr(getattr(torch.ops, namespace), rest.partition(".")[0], None)
    if packet is None:
        raise InputError(
            f"--replay {name}: no operator of that name is registered here; import the library that defines it, or replay an operator of aten below it"
        )
    fitting = [
        overload
        for overload in (getattr(packet, one) for one in packet.overloads())
        if len(schema_of(overload).arguments) == len(recorded)
        and all(map(_fits, schema_of(overload).arguments, recorded))
    ]
    if not fitting:
        raise InputError(
            f"--replay {name}: no overload takes the {len(recorded)} recorded arguments; another version of torch may have recorded them"
        )
    return fitting[0]


def schema_of(overload: Any) -> Any:
    """The arguments of an overload: torch has no public name for them."""
    return overload._schema  # noqa: SLF001


def _fits(argument: Any, recorded: Recorded) -> bool:
    kind = str(argument.type)
    if torch_dtype(recorded.kind) is not None:
        return "Tensor" in kind and "List" not in kind
    if recorded.kind == LIST:
        return "List[" in kind and "Tensor" in kind
    if recorded.kind == "ScalarList":
        return "List[" in kind and "Tensor" not in kind
    if recorded.kind == "Scalar":
        return "Tensor" not in kind and "List[" not in kind
    return "Optional" in kind or argument.has_default_value() or not recorded.kind
