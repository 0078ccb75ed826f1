"""A finding about one shape is where that shape is: in its module, at the line that calls it."""

from __future__ import annotations

from msgspec.structs import replace

from pyrometer.rules.case import Case
from pyrometer.rules.kernels.patterns.operators import module_words, place_of_operator, place_of_point
from pyrometer.source.module import Module
from pyrometer.trace.reporting.totals import LineOp, LineTotal, RoofPoint
from pyrometer.workload.program.record import ModuleFact
from recorded import evidence_of

CONV = "aten::mkldnn_convolution"
SOURCE = """\
from torch import nn


class Block(nn.Module):
    def forward(self, x):
        y = self.first(x)
        return self.second(y) + x


class Camera(nn.Module):
    def forward(self, image):
        features = self.backbone(image)
        return features.mean(dim=2)
"""


def point(line: int, module: str, shapes: str = "[[1,3,8,8]]") -> RoofPoint:
    return RoofPoint(
        op=CONV,
        shapes=shapes,
        calls=1,
        time_ns=1000,
        share=0.5,
        file="net.py",
        line=line,
        function="forward",
        module=module,
    )


def case_of(*points: RoofPoint) -> Case:
    evidence = evidence_of("video_encoder")
    assert evidence.trace is not None
    assert evidence.program is not None
    used = LineTotal(
        file="net.py", line=5, function="forward", self_ns=9, forward_ns=9, backward_ns=0, device_ns=0, num_ops=9, num_kernels=0,
        host_share=0.9, device_share=0.0, top_ops=[LineOp(name=CONV, host_ns=9, device_ns=0)],
    )  # fmt: skip
    facts = [
        ModuleFact(
            path="camera.backbone.0",
            type_name="Conv2d",
            training=False,
            num_parameters=9,
            settings={"in_channels": 3, "out_channels": 32},
        )
    ]
    return Case(
        target="t",
        modules=(Module.parse("net.py", SOURCE),),
        trace=replace(evidence.trace, num_kernels=0, roofline=list(points), top_lines=[used]),
        program=replace(evidence.program, modules=facts),
    )


def test_a_shape_is_where_its_module_is_called_not_where_most_of_its_operator_is():
    stem = point(11, "camera.backbone.0")
    case = case_of(stem, point(5, "blocks.3.second", "[[1,32,8,8]]"))
    place = place_of_point(case, stem)
    assert (place.module, place.text) == ("camera.backbone.0", "net.py:12")
    assert module_words(case, place) == " in camera.backbone.0, Conv2d 3→32, called at net.py:12"


def test_a_module_that_a_block_calls_has_the_line_of_that_call():
    second = point(5, "blocks.3.second")
    assert place_of_point(case_of(second), second).text == "net.py:7"


def test_an_operator_of_one_module_has_its_line_and_one_of_several_none_of_theirs():
    first, second = point(5, "blocks.0.first"), point(5, "blocks.1.second")
    assert place_of_operator(case_of(first, point(5, "blocks.1.first")), CONV).line == 6
    assert place_of_operator(case_of(first, second), CONV).line == 5
