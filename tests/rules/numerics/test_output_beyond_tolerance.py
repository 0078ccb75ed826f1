from __future__ import annotations

import msgspec
import torch
from torch import nn

import pyrometer as pm
from pyrometer.bench.matrix.numerics import numeric_error
from pyrometer.compiler.report import CompileReport
from pyrometer.numerics.comparison import shift_of
from pyrometer.rules.case import Case


def compiled(error):
    report = msgspec.structs.replace(msgspec.convert(smallest(CompileReport), CompileReport), error=error)
    return Case(target="test", compiled=report)


def smallest(kind):
    """Nothing in each field of a record that has no default."""
    found = {}
    for field in msgspec.structs.fields(kind):
        if field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT:
            bare = (
                getattr(field.type, "__origin__", None) if hasattr(field.type, "__metadata__") else field.type
            )
            is_record = isinstance(bare, type) and issubclass(bare, msgspec.Struct)
            found[field.name] = smallest(bare) if is_record else EMPTY.get(bare, [])
    return found


EMPTY = {int: 0, float: 0.0, bool: False, str: "", dict[str, int]: {}, dict[str, float]: {}}


def test_a_compiled_output_beyond_the_tolerance_is_an_error(findings):
    error = numeric_error(torch.tensor([1.0, 2.2]), torch.tensor([1.0, 2.0]), tolerance=1e-4)
    (finding,) = findings("PYR708", compiled(error))
    assert finding.severity == "error"
    assert "by 0.100 of the largest value, where 0.000100 is legal" in finding.message
    assert finding.links == ["/compiled/error"]


def test_another_shape_is_told_in_words(findings):
    error = numeric_error(torch.ones(3), torch.ones(2), tolerance=1e-4)
    (finding,) = findings("PYR708", compiled(error))
    assert "shape (3,) for (2,)" in finding.message


def test_rounding_and_what_was_not_compared_are_silent(findings):
    x = torch.randn(100)
    assert findings("PYR708", compiled(numeric_error(x * (1 + 1e-6), x, tolerance=1e-4))) == []
    assert findings("PYR708", compiled(None)) == []


class Sensitive(nn.Module):
    """Takes a small difference of large values: hopeless in low precision."""

    def __init__(self, *, wide: bool) -> None:
        super().__init__()
        self.layer, self.wide = nn.Linear(8, 8), wide

    def forward(self, x):
        h = self.layer(x)
        h = h.float() if self.wide else h
        return (h + 1000) - 1000


def test_a_model_that_low_precision_breaks_is_found_and_float32_mends_it(findings, watched):
    x = torch.randn(16, 8, dtype=torch.bfloat16)
    (finding,) = findings("PYR708", watched(pm.Inference(Sensitive(wide=False).bfloat16(), x), steps=1))
    assert finding.severity == "warning"
    assert "the output in bfloat16 differs from the same in float32" in finding.message
    assert findings("PYR708", watched(pm.Inference(Sensitive(wide=True).bfloat16(), x), steps=1)) == []


def test_a_sound_model_in_low_precision_is_silent(findings, watched):
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))
    work = pm.Inference(model, torch.randn(16, 8)).variant(autocast="bfloat16")
    assert findings("PYR708", watched(work, steps=1)) == []


def test_the_difference_is_that_of_the_records():
    shift = shift_of(torch.ones(2), torch.ones(2) * 2, reference="a", changed="b")
    assert (shift.max_rel, shift.within_tolerance) == (1.0, False)
