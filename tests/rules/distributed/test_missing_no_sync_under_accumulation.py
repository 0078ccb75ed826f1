from __future__ import annotations

import pytest

from pyrometer.workload.program.record import Program, Wrapper

HEAD = """
from torch.nn.parallel import DistributedDataParallel as DDP
model = DDP(model)
"""

FIRES = {
    "a remainder": """
for i, (x, y) in enumerate(loader):
    loss = criterion(model(x), y) / accumulate
    loss.backward()  # <-
    if (i + 1) % accumulate == 0:
        optimizer.step()
        optimizer.zero_grad()
""",
    "a named remainder and a scaler": """
for i, (x, y) in enumerate(loader):
    is_last = (i + 1) % 4 == 0
    scaler.scale(criterion(model(x), y)).backward()  # <-
    if is_last:
        scaler.step(optimizer)
        scaler.update()
""",
    "a file that only speaks of it": """
path = os.path.join(folder, "no_sync")
for i, (x, y) in enumerate(loader):
    criterion(model(x), y).backward()  # <-
    if (i + 1) % 4 == 0:
        optimizer.step()
""",
    "a loop within": """
for step in range(steps):
    for micro in range(grad_accum_steps):
        model(next(batches)).backward()  # <-
    optimizer.step()
""",
}

SILENT = {
    "no accumulation": """
for x, y in loader:
    criterion(model(x), y).backward()
    optimizer.step()
""",
    "no_sync": """
for i, (x, y) in enumerate(loader):
    with model.no_sync() if (i + 1) % 4 else nullcontext():
        criterion(model(x), y).backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
""",
    "switched by hand": """
for step in range(steps):
    for micro in range(accum):
        model.require_backward_grad_sync = micro == accum - 1
        model(next(batches)).backward()
    optimizer.step()
""",
    "an epoch": """
for epoch in range(epochs):
    for x, y in loader:
        criterion(model(x), y).backward()
        optimizer.step()
""",
    "logging every so often": """
for i, (x, y) in enumerate(loader):
    criterion(model(x), y).backward()
    optimizer.step()
    if i % 100 == 0:
        print(i)
""",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_it_fires(lines, marked, text):
    assert lines("PYR603", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_it_is_silent(lines, text):
    assert lines("PYR603", HEAD + text) == []


def test_accumulation_without_ranks_is_silent(lines):
    assert lines("PYR603", FIRES["a remainder"]) == []


def program(parameters, **settings):
    wrapper = Wrapper(path="", type_name="DistributedDataParallel", settings=settings)
    return Program(
        kind="training",
        device="cuda",
        compiled=False,
        grad_mode="grad",
        parameter_dtypes={"float32": parameters},
        trainable_parameters=parameters,
        wrappers=[wrapper],
    )


def test_steps_that_reduce_four_times_their_gradients_are_found_in_a_trace(findings, reducing):
    evidence = reducing(calls=4, elements=1_000_000, each_us=100, program=program(1_000_000))
    (finding,) = findings("PYR603", evidence)
    assert "4.00 times what the model has in gradients" in finding.message
    assert finding.cost.share == pytest.approx(300 / 1440, rel=0.05)


def test_the_advice_brings_what_is_predicted(findings, reducing, builder):
    before = reducing(calls=4, elements=1_000_000, each_us=100, program=program(1_000_000))
    (finding,) = findings("PYR603", before)
    builder.events.clear()
    after = reducing(calls=1, elements=1_000_000, each_us=100, program=program(1_000_000))
    assert findings("PYR603", after) == []
    assert finding.advice.gain.ratio_low == pytest.approx(
        after.trace.span_ns / before.trace.span_ns, abs=0.02
    )


def test_several_buckets_of_one_reduction_are_silent(findings, reducing):
    evidence = reducing(calls=4, elements=250_000, each_us=100, program=program(1_000_000))
    assert findings("PYR603", evidence) == []
