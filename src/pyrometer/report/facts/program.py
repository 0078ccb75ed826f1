"""How a program is set up and what its numbers did: the evidence of findings that no drawing shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyrometer.numerics.report import Gradients, NumericsReport, OutputShift
from pyrometer.place import Place
from pyrometer.quantity import counted, format_bytes, format_percent, significant
from pyrometer.report.facts.layout import Fact, Section, Table, shortened
from pyrometer.workload.program.record import InputTensor, Program

MOST_ROWS = 12

Settings = Mapping[str, int | float | str | bool | None]


def program_section(program: Program) -> Section:
    """What findings about `/program` rest on."""
    facts = [
        Fact("parameters", f"{program.trainable_parameters:,} to be trained", f"on {program.device}"),
        Fact("grad mode", program.grad_mode),
        Fact("autocast", program.autocast_dtype or "none seen"),
        Fact("compiled", "yes" if program.compiled else "no"),
    ]
    if program.loss:
        facts.append(Fact("loss", program.loss))
    if program.optimizer is not None:
        facts.append(Fact("optimizer", program.optimizer.type_name, _settings(program.optimizer.settings)))
    if program.active_dropouts is not None:
        facts.append(Fact("active dropouts", f"{program.active_dropouts:,} in one step"))
    facts += [
        Fact("wrapper", f"{wrapper.type_name} {wrapper.path}".strip(), _settings(wrapper.settings))
        for wrapper in program.wrappers
    ]
    facts += [
        Fact(
            "read across memory",
            f"{strided_read.function} of {strided_read.shape}, {strided_read.calls:,} calls",
            f"{strided_read.file or ''}:{strided_read.line}",
        )
        for strided_read in program.strided_reads[:MOST_ROWS]
    ]
    facts += [Fact(name, str(value)) for name, value in program.settings.items()]
    return Section("program", "The program", facts, _inputs(program.inputs))


def numerics_section(report: NumericsReport) -> Section:
    """What findings about `/numerics` rest on."""
    facts = [Fact("watched", counted(report.num_steps, "step"), report.device), *_non_finite(report)]
    if report.gradients is not None:
        facts += _gradients(report.gradients)
    if report.scaling is not None:
        skipped = f"{len(report.scaling.skipped)} of {len(report.scaling.scales)} steps skipped"
        facts.append(Fact("loss scale", f"{report.scaling.final_scale:g}", skipped))
    if report.shift is not None:
        facts += _shift(report.shift)
    facts += [
        Fact(
            "computed in low precision",
            f"{use.kind} in {use.dtype}, {use.calls:,} calls per step",
            _place(use.where),
        )
        for use in report.precision[:MOST_ROWS]
    ]
    facts += [
        Fact(
            "whole numbers cast",
            f"{cast.from_dtype} to {cast.to_dtype}, {cast.num_changed:,} of {cast.num_values:,} changed",
            cast.name or _place(cast.where),
        )
        for cast in report.casts[:MOST_ROWS]
    ]
    facts += [Fact("note", note) for note in report.notes]
    layers = _layers(report.gradients) if report.gradients is not None else None
    how = "A few steps, watched value by value; they were not timed."
    if layers is not None:
        how += " The table has the root mean square of each layer's gradients, in the first and the last of them."
    change = "Other inputs, or a later stage of the training, may show what these steps did not."
    return Section("numerics", "What the numbers did", facts, layers, how, change)


def _inputs(inputs: list[InputTensor]) -> Table | None:
    rows = [
        (
            tensor.name,
            str(tensor.shape),
            tensor.dtype,
            tensor.device,
            format_bytes(tensor.num_bytes),
            "yes" if tensor.pinned else "no",
        )
        for tensor in inputs
    ]
    columns = ("input", "shape", "type", "device", "bytes", "pinned")
    return shortened(Table(columns, rows, frozenset({1, 2, 3})), MOST_ROWS) if rows else None


def _non_finite(report: NumericsReport) -> Iterator[Fact]:
    non_finite = report.non_finite
    if non_finite is None:
        yield Fact("NaN or infinity", "none")
        return
    value = "NaN" if non_finite.kind == "nan" else "infinity"
    where = non_finite.source_name or _place(non_finite.origin) or non_finite.seen_in or ""
    yield Fact(
        "NaN or infinity", f"{value} first in step {non_finite.step}, from an {non_finite.source}", where
    )
    yield Fact("steps with such a result", f"{report.num_non_finite_steps:,} of {report.num_steps:,}")


def _gradients(gradients: Gradients) -> Iterator[Fact]:
    known = [norm for norm in gradients.norms if norm is not None]
    if known:
        yield Fact("gradient norm", f"{significant(known[0])} to {significant(known[-1])}", gradients.trend)
    if gradients.depth_ratio is not None:
        yield Fact("last layers over first", f"{significant(gradients.depth_ratio)}×", "of their gradients")
    for gradient in gradients.non_finite[:MOST_ROWS]:
        yield Fact(
            "gradient not finite",
            gradient.parameter,
            f"{counted(gradient.num_steps, 'step')}, first {gradient.step}",
        )
    if gradients.never:
        more = len(gradients.never) - MOST_ROWS
        names = ", ".join(gradients.never[:MOST_ROWS]) + (f" and {more} more" if more > 0 else "")
        yield Fact("never a gradient", names)


def _layers(gradients: Gradients) -> Table | None:
    rows = [
        (layer.module, f"{layer.num_parameters:,}", _rms(layer.rms[:1]), _rms(layer.rms[-1:]))
        for layer in gradients.layers
    ]
    columns = ("layer", "parameters", "first step", "last step")
    return shortened(Table(columns, rows), 2 * MOST_ROWS) if rows else None


def _rms(values: list[float | None]) -> str:
    return "–" if not values or values[0] is None else f"{values[0]:.2g}"


def _shift(shift: OutputShift) -> Iterator[Fact]:
    said = shift.mismatch or ("within tolerance" if shift.within_tolerance else "beyond tolerance")
    yield Fact("output shift", f"{shift.max_rel:.2g} relative, tolerance {shift.tolerance:.2g}", said)
    yield Fact("compared", f"{shift.changed} with {shift.reference}")
    if shift.same_top is not None:
        yield Fact("same largest entry", format_percent(shift.same_top), "of the rows")


def _settings(settings: Settings) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _place(where: Place) -> str:
    place = f"{where.file}:{where.line}" if where.file else ""
    return " ".join(part for part in (place, where.function or where.module or "", where.op or "") if part)
