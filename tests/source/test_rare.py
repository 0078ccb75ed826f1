"""What runs seldom within code that runs often."""

from __future__ import annotations

import ast

import pytest

RARE = """
def train(loader, model, args, scaler):
    for step, x in enumerate(loader):
        here()
        if step % 100 == 0:
            here()  # rare
        else:
            here()
        if step % args.log_every != 0:
            here()
        if not step % 100:
            here()  # rare
        if (step + 1) % args.accumulation_steps == 0:
            here()
        if step % 2 == 0:
            here()
        if "%d" % step == 0:
            here()
        if step == 0:
            here()  # rare
        if step == len(loader) - 1:
            here()  # rare
        if step < 5:
            here()  # rare
        if step < limit:
            here()
        if args.debug:
            here()  # rare
        if not args.debug:
            here()
        if rank == 0:
            here()
        if rank == 0 and step % 50 == 0:
            here()  # rare
        if rank == 0 or step % 50 == 0:
            here()
        if torch.isnan(x).any():
            here()  # rare
        if not torch.isfinite(x).all():
            here()  # rare
        if should_log(step):
            here()  # rare
        if time.time() - last > 10:
            here()
        if __debug__:
            here()  # rare
        if model.training:
            here()
        if overflowed:
            logger.warning("the gradients overflow")
            here()  # rare
        step % 100 == 0 and here()  # rare
        y = here() if step % 100 == 0 else 0  # rare
        y = 0 if step % 100 == 0 else here()
        try:
            here()
        except ValueError:
            here()  # rare
        finally:
            here()
        assert x, here()  # rare
        assert here()
        if broken:
            raise ValueError(here())  # rare
        if done:
            here()  # rare
            break
        if logger.isEnabledFor(logging.DEBUG):
            here()  # rare
        if here() % 100 == 0:
            pass
    else:
        here()
"""


def is_rare(module, call):
    return module.is_rare(call)


def test_rare_places(expect_lines):
    expect_lines(RARE, "rare", is_rare)


def test_time_is_told_by_clocks(expect_lines):
    text = """
    import time
    for x in loader:
        now = 3
        if time.time() - last > 10:
            here()  # rare
        if now - last > 10:
            here()
    """
    expect_lines(text, "rare", is_rare)


def test_what_follows_a_common_exit_is_rare(expect_lines):
    text = """
    for step, x in enumerate(loader):
        here()
        if step % 100 != 0:
            continue
        here()  # rare
    for step, x in enumerate(loader):
        if step % 100 == 0:
            continue
        here()
    def log(step):
        if step % 100:
            return
        here()  # rare
    """
    expect_lines(text, "rare", is_rare)


def test_what_is_around_the_hot_loop_does_not_make_it_rare(expect_lines):
    text = """
    for epoch in range(9):
        if epoch % 10 == 0:
            for x in loader:
                here()
                if x:
                    here()
    """
    expect_lines(text, "rare", is_rare)


def test_returns_leave_loops_but_not_forwards(expect_lines):
    text = """
    class Net(nn.Module):
        def forward(self, x):
            if self.training:
                here()
                return x
            for layer in self.layers:
                if layer:
                    here()  # rare
                    return x
            return x
    """
    expect_lines(text, "rare", is_rare)


@pytest.mark.parametrize("depth", [3, 400])
def test_conditions_may_be_nested_deeply(parse_torch, depth):
    module = parse_torch(f"for x in loader:\n    if {'not ' * depth}y:\n        here()\n")
    assert not module.is_rare(list(module.nodes(ast.Call))[-1])


def test_what_is_collected_and_emptied_counts_steps(expect_lines):
    text = """
    from collections import deque

    EVERY = 100
    BATCH_SIZE = 32
    for x in loader:
        losses.append(x)
        if len(losses) == 100:
            here()  # rare
            losses.clear()
        if len(losses) >= EVERY:
            here()  # rare
            losses = []
        if len(self.losses) > 50 and log:
            here()  # rare
            self.losses = deque()
        if len(losses) == 100:
            here()  # rare
            del losses[:]
        else:
            here()
        if len(losses) == 100:
            here()
        if len(losses) >= 100:
            here()
            losses = losses[1:]
        if len(losses) >= 100:
            here()
            times.clear()
        if len(losses) == 2:
            here()
            losses.clear()
        if len(losses) >= BATCH_SIZE:
            here()
            losses.clear()
        if len(losses) < 100:
            here()
            losses.clear()
        if len(losses) >= 100 or log:
            here()
            losses.clear()
    """
    expect_lines(text, "rare", is_rare)
