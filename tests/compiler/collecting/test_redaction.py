"""What a report for handing on no longer holds."""

from __future__ import annotations

import msgspec

from pyrometer.compiler.breaks.record import Break, SkippedFrame
from pyrometer.compiler.collecting.redaction import redacted
from pyrometer.compiler.fusion.record import FusedGroup
from pyrometer.compiler.place import Place


def test_no_folder_and_no_source_is_left() -> None:
    file, line = "/home/me/secret/model.py", Place(file=r"C:\secret\model.py", line=3, source="y = SECRET")
    found = Break(
        id="gb0170",
        reason="Data-dependent branching",
        file=file,
        line=3,
        source="if SECRET:",
        user_stack=[line],
        chained_to=f"{file}:2",
        context="SECRET",
    )
    group = FusedGroup(compile_id="0/0", name="op0", kind="fused", ops=[], num_nodes=1, places=[f"{file}:3"])
    skip = SkippedFrame(
        compile_id="0/0", function="f", file=file, line=1, reason="", kind="break", called_from=[line]
    )
    for record in (found, group, skip):
        text = msgspec.json.encode(redacted(record)).decode()
        assert "model.py" in text
        assert "secret" not in text.lower()
    assert redacted(found).chained_to == "model.py:2"
