from __future__ import annotations

import math

import pytest
import torch


@pytest.fixture(scope="module")
def control(load_example):
    return load_example("control_loop.py")


@pytest.fixture(scope="module")
def policy(control):
    return control.trained_policy()


@pytest.mark.exhaustive
def test_commands_that_are_all_late_are_counted_and_let_the_pole_fall(run_example):
    output = run_example("control_loop.py", "--ticks", "1000", "--deadline-ms", "0")
    fell, _, _, late = output.splitlines()
    num_ticks = int(fell.split()[2])
    assert fell.startswith("fell after")
    assert num_ticks < 1000
    assert f"{num_ticks} of {num_ticks} (100.0%) at 0 ms" in late


def test_commands_in_time_keep_the_pole_up_through_a_gust(control, policy):
    run = control.simulate(control.Controller(policy), num_ticks=800, deadline_s=math.inf)
    assert len(run.latencies_s) == 800
    assert control.count_missed(run.latencies_s, math.inf) == 0
    assert run.largest_angle_rad < 0.5
    assert abs(float(run.states[-1][2])) < 0.1


def test_only_latencies_beyond_the_deadline_are_missed(control):
    assert control.count_missed([0.001, 0.002, 0.003], deadline_s=0.002) == 1
    assert control.count_missed([], deadline_s=0.002) == 0


def test_a_pole_that_leans_falls_further_and_an_upright_one_stays(control):
    force = torch.zeros(())
    leaning = control.advance(torch.tensor([0.0, 0.0, 0.1, 0.0]), force, 0.01)
    assert float(leaning[3]) > 0
    assert float(leaning[1]) < 0
    assert torch.equal(control.advance(torch.zeros(3, 4), force, 0.01), torch.zeros(3, 4))


def test_the_belief_finds_the_true_state(control, policy):
    controller = control.Controller(policy)
    state = torch.tensor([0.5, 0.0, 0.2, 0.0])
    with torch.inference_mode():
        for _ in range(300):
            force = controller(state[::2])
            state = control.advance(state, force, control.TICK_S)
    torch.testing.assert_close(
        control.advance(controller.belief, force, control.TICK_S), state, rtol=0, atol=0.02
    )


def test_workload_steps_and_restores_what_the_controller_remembers(control):
    work = control.workload()
    assert (work.unit, work.deadline_s) == ("control steps", 0.002)
    with work.open() as session:
        belief = session.model.belief
        before = belief.clone()
        forces = torch.stack([session.step(session.prepare()) for _ in range(20)])
        assert not torch.equal(belief, before)
    assert forces.shape == (20,)
    assert (forces.abs() <= control.MAX_FORCE_N).all()
    assert torch.equal(belief, before)
    assert session.units_per_step == 1
