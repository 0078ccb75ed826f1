"""Who holds bytes: allocations of one place, added up."""

from __future__ import annotations

from typing import Annotated

from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc


class HeldBytes(Record, frozen=True, kw_only=True):
    """Bytes that one place had allocated and that were alive at one instant."""

    site: Annotated[str, doc("file:line of the user's code, or the operator where no line is known")]
    bytes: Bytes
    count: Annotated[int, doc("allocations")]
    module: Annotated[str | None, doc("path of the module that ran, such as blocks.3.mlp")] = None
    operator: Annotated[str | None, doc("the operator that allocated most of them, such as aten.mm")] = None
    category: Annotated[
        str | None, doc("of a snapshot, the category with most of the bytes; else that of all")
    ] = None
    dtype: Annotated[str | None, doc("the dtype with most of the bytes")] = None
    function: Annotated[str | None, doc("the function around the line")] = None
    source: Annotated[str | None, doc("the line's text")] = None
