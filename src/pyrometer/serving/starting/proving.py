"""The gate: before a version takes a request, its outputs are held against those of the model as the user wrote it.

Two things may change numbers: a recipe, and sharing a batch. The first is judged as in `pyrometer tune`, on its cases. For the second
several requests of unlike values go through in one batch and each must get what the model alone says to it; a model that mixes the rows
of a batch fails here.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from pyrometer.advice import FixClass
from pyrometer.errors import InputError, UserProgramError
from pyrometer.serving.running.program import Program, Rows
from pyrometer.serving.running.shaping import Shaping, told
from pyrometer.serving.running.signature import Signature, to_numpy
from pyrometer.tuning.shapes.axes import Sizes
from pyrometer.tuning.trials.cases import cases_of, refreshed
from pyrometer.tuning.trials.gate import CaseError, Limits, Numerics, judge
from pyrometer.tuning.trials.results import case_error
from pyrometer.workload.failure import described
from pyrometer.workload.inference import InferenceSession
from pyrometer.workload.inputs import Arguments

MOST_TOGETHER = 4
"""Requests that share the batch of the proof."""
SEED = 20


def prove(
    program: Program, plain: InferenceSession, fix_class: FixClass, tolerance: float, most_rows: int
) -> Numerics:
    """Hold what the server would answer against the model itself.

    Raises:
        InputError: the numbers are others than they may be.
    """
    cases: list[CaseError] = []
    if program.shaping is not None:  # first: how outputs are cut back is learned here
        cases = [_bucket_case(program, plain, program.shaping, bucket) for bucket in program.shaping.edges()]
    cases += _cases(program, plain, most_rows)
    found = judge(cases, fix_class, Limits(tolerance=tolerance))
    if found.refused is not None:
        raise InputError(
            f"version {program.version}: does not compute what the model computes ({found.refused}); it is not served"
        )
    return found


def rows_of(signature: Signature, call: Arguments, positions: dict[str, int]) -> Rows:
    """The inputs of a call as a request would bring them."""
    values = [value_of(call, spec.name, positions) for spec in signature.inputs]
    arrays = [to_numpy(value.detach().cpu().contiguous()) for value in values]
    return Rows(arrays, len(arrays[0]))


def value_of(call: Arguments, name: str, positions: dict[str, int]) -> torch.Tensor:
    """An input of a call, by keyword or position."""
    value = call.kwargs[name] if name in call.kwargs else call.args[positions[name]]
    assert isinstance(value, torch.Tensor)
    return value


def example_rows(program: Program, rows: int, sizes: Sizes = ()) -> Rows:
    """A request of so many rows, from the example inputs of the target."""
    call = program.signature.call
    if program.shaping is not None and sizes:
        call = program.shaping.resized(call, sizes)
    one = rows_of(program.signature, call, program.positions)
    repeats = -(-rows // one.rows)
    arrays = [array.repeat(repeats, axis=0)[:rows].copy() for array in one.arrays]
    return Rows(arrays, rows, sizes)


def _cases(program: Program, plain: InferenceSession, most_rows: int) -> Iterator[CaseError]:
    generator = torch.Generator().manual_seed(SEED)
    for case in cases_of(lambda: program.signature.call, True, SEED):
        one = rows_of(program.signature, case.arguments, program.positions)
        if one.rows <= most_rows and not (case.resized and program.is_fixed):
            yield _compared(program, plain, case.label, [_shaped(program, one)])
    together = max(1, min(MOST_TOGETHER, most_rows))
    if together > 1 and not program.is_fixed:
        requests = []
        for _ in range(together):
            alone = example_rows(program, 1)
            fresh = [
                to_numpy(refreshed(spec.to_torch(array), generator).contiguous())
                for spec, array in zip(program.signature.inputs, alone.arrays, strict=True)
            ]
            requests.append(_shaped(program, Rows(fresh, 1)))
        yield _compared(program, plain, f"{together} requests in one batch", requests)


def _shaped(program: Program, one: Rows) -> Rows:
    if program.shaping is None:
        return one
    names = [spec.name for spec in program.signature.inputs]
    return one._replace(sizes=program.shaping.sizes_of(names, [array.shape for array in one.arrays]))


def _bucket_case(program: Program, plain: InferenceSession, shaping: Shaping, bucket: Sizes) -> CaseError:
    """A request that is shorter than its bucket beside one that fills it."""
    shorter = tuple(max(1, edge - max(1, edge // 4)) for edge in bucket)
    call = shaping.resized(program.signature.call, shorter)
    pair = (call.args, call.kwargs)
    padded = shaping.fitting.padded(pair, shorter, bucket)
    output = shaping.fitting.reference.run(padded)
    shaping.fitting.check(pair, padded, shorter, bucket, output=output)
    shaping.fitting.challenge(pair, padded, shorter, bucket)
    requests = [example_rows(program, 1, shorter), example_rows(program, 1, bucket)]
    return _compared(program, plain, f"the bucket {told(bucket)}", requests, bucket)


def _compared(
    program: Program,
    plain: InferenceSession,
    label: str,
    requests: list[Rows],
    bucket: Sizes | None = None,
) -> CaseError:
    expected = [_alone(program, plain, one) for one in requests]
    if program.shaping is not None and bucket is None:
        bucket = program.shaping.bucket(requests[0].sizes)
    try:
        found = program.run(requests, bucket or ())
    except Exception as error:  # noqa: BLE001 - what a lever's library raises is a finding
        return CaseError(label=label, mismatch=f"raised {described(error)}")
    specs = program.signature.outputs
    ours = [spec.to_torch(array) for outputs in found for spec, array in zip(specs, outputs, strict=True)]
    return case_error(label, ours, [leaf for leaves in expected for leaf in leaves])


def _alone(program: Program, plain: InferenceSession, one: Rows) -> list[torch.Tensor]:
    """What the model as the user wrote it says to one request.

    Raises:
        UserProgramError: it fails on inputs that it should take.
    """
    alone = Program("plain", plain, program.signature, program.positions, worker=program.worker)
    try:
        [outputs] = alone.run([one])
    except UserProgramError:
        raise
    except Exception as error:
        raise UserProgramError(
            f"the model, on a request like its example inputs, raised {described(error)}"
        ) from error
    return [spec.to_torch(array) for spec, array in zip(program.signature.outputs, outputs, strict=True)]
