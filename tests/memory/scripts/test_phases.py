"""Names for what a script is doing."""

from __future__ import annotations

from pyrometer.memory.scripts.phases import RUN, SETUP, Phases
from pyrometer.workload.script.startup._pyrometer_inside import kinds

DATA, FORWARD, BACKWARD, OPTIMIZER = (
    kinds.DATA_BEGIN,
    kinds.FORWARD_BEGIN,
    kinds.BACKWARD_BEGIN,
    kinds.OPTIMIZER_BEGIN,
)


def named(*happens: int) -> list[str]:
    """The names of the stretches before each of these: a kind begins where it is positive, ends where it is negative."""
    phases = Phases()
    return [phases.begin(kind) if kind > 0 else phases.end(1 - kind) for kind in happens]


def test_a_training_step_has_the_phases_of_a_workload() -> None:
    step = [DATA, -DATA, FORWARD, -FORWARD, BACKWARD, -BACKWARD, OPTIMIZER, -OPTIMIZER]
    assert named(*step, *step) == [
        *(SETUP, "data", "h2d", "forward", "forward", "backward", "rest", "optimizer"),
        *("rest", "data", "h2d", "forward", "forward", "backward", "rest", "optimizer"),
    ]


def test_what_is_made_between_steps_without_a_loader_is_the_batch() -> None:
    assert named(OPTIMIZER, -OPTIMIZER, FORWARD)[-1] == "data"


def test_an_optimizers_closure_belongs_to_the_optimizer() -> None:
    inside = named(FORWARD, -FORWARD, OPTIMIZER, FORWARD, -FORWARD, BACKWARD, -BACKWARD, -OPTIMIZER)
    assert inside[3:] == ["optimizer", "forward", "optimizer", "backward", "optimizer"]


def test_an_optimizer_that_raised_is_over_with_the_next_step() -> None:
    assert named(OPTIMIZER, DATA, -DATA, FORWARD)[-1] == "h2d"


def test_a_script_without_steps_is_one_run() -> None:
    phases = Phases()
    assert phases.rest() == RUN
    phases.begin(FORWARD)
    phases.end(FORWARD + 1)
    assert phases.rest() == "rest"
