"""Guards are counted as torch wrote them; over-strict ones say what they tie down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.recompiles.guards import read_guards, with_eval_seconds
from pyrometer.compiler.recompiles.record import GuardSummary, StrictGuard
from pyrometer.record import from_json, to_json

LogOf = Callable[..., CompileLog]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)
        self.repeats, self.mode = 3, "plain"

    def forward(self, x: Tensor, items: Any = (), choose: Any = None) -> Tensor:
        x = self.norm(self.linear(x)) * self.repeats
        for item in items:
            x = x + item
        if choose is not None:
            x = choose(x)
        return x if self.mode == "plain" else -x


def strict(log: CompileLog, source: str) -> StrictGuard:
    return next(guard for guard in read_guards(log).strict if guard.source == source)


def test_every_leaf_of_the_tree_is_counted_once(log_of: LogOf) -> None:
    log = log_of(Net(), [lambda c: c(torch.ones(2, 4))])
    summary = read_guards(log)
    (entry,) = log.of("dynamo_cpp_guards_str")
    leaves = [line for line in entry.payload.splitlines() if "+- " in line and "Manager" not in line]
    assert summary.total == sum(summary.by_type.values()) == len(leaves)
    assert summary.by_type["TENSOR_MATCH"] == 5  # the input, and weight and bias of two modules
    assert summary.per_compilation[0].cold_eval_s is not None


def test_an_integer_of_a_module_a_text_a_length_and_a_function_are_over_strict(log_of: LogOf) -> None:
    log = log_of(Net(), [lambda c: c(torch.ones(2, 4), [1.0, 2.0], torch.relu)])
    assert "allow_unspec_int_on_nn_module" in strict(log, "L['self'].repeats").why
    assert "the text 'plain'" in strict(log, "L['self'].mode").why
    assert "length of items is 2" in strict(log, "L['items']").why
    assert "one object as choose" in strict(log, "L['choose']").why
    assert "mark_dynamic(x, DIM)" in strict(log, "L['x']").why


def test_library_modules_and_parameters_are_not_over_strict(log_of: LogOf) -> None:
    summary = read_guards(log_of(Net(), [lambda c: c(torch.ones(2, 4))]))
    assert not [
        guard for guard in summary.strict if "_modules" in guard.source or guard.source.startswith("G")
    ]


def test_how_modules_are_made_is_not_over_strict(log_of: LogOf) -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 2)
    log = log_of(
        encoder, [lambda c: c(torch.ones(2, 3, 8)), lambda c: (encoder.eval(), c(torch.ones(2, 3, 8)))]
    )
    summary = read_guards(log)
    assert summary.total > 400
    assert {guard.type for guard in summary.strict} <= {
        "TENSOR_MATCH",
        "TRUE_MATCH",
        "FALSE_MATCH",
        "LENGTH_CHECK",
    }
    assert len(summary.strict) < 10


def test_what_a_break_hands_over_is_the_breaks_and_counts_only_where_it_failed(log_of: LogOf) -> None:
    def broken(x: Tensor) -> Tensor:
        y = x + 1
        number = x.sum().item()
        print(end="")
        return y * number

    once = read_guards(log_of(broken, [lambda c: c(torch.ones(2))])).strict
    assert {guard.source for guard in once} == {"L['x']"}
    torch._dynamo.reset()
    guards = read_guards(log_of(broken, [lambda c, n=n: c(torch.ones(n)) for n in (2, 3)])).strict
    rests = [guard.why for guard in guards if not guard.compile_id.startswith("0/")]
    assert any(
        "holds only for y of size (2), torch.float32: code before the break hands it over" in why
        for why in rests
    )
    assert any("2.0 as unnamed value 0" in why for why in rests)
    assert not any("mark_dynamic" in why or "___stack" in why for why in rests)


def test_what_several_compilations_want_alike_is_said_once(log_of: LogOf) -> None:
    def scaled(x: Tensor, mode: str, name: str) -> Tensor:
        return x + len(mode) * len(name)

    log = log_of(scaled, [lambda c, name=name: c(torch.ones(2), "m", name) for name in ("a", "b", "c")])
    assert [guard.guard for guard in read_guards(log).strict if "mode" in guard.source] == ["mode == 'm'"]


def test_parameters_are_not_to_be_marked_and_the_keys_of_modules_are_nobodys_to_choose(log_of: LogOf) -> None:
    class Holder(nn.Module):
        def __init__(self, **layers: nn.Module) -> None:
            super().__init__()
            self.layers = nn.ModuleDict(layers)

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers.values():
                x = layer(x)
            return x

    module = Holder(a=nn.Linear(4, 4))

    def rebuilt(compiled: Any) -> None:
        module.layers = nn.ModuleDict({"b": nn.Linear(4, 6)})
        compiled(torch.ones(2, 4))

    summary = read_guards(log_of(module, [lambda c: c(torch.ones(2, 4)), rebuilt]))
    guards = summary.strict
    assert summary.total
    assert not [guard for guard in guards if guard.source == "L['x']"]  # it was the same in both calls
    assert not [guard for guard in guards if guard.source.endswith("._modules") or "dict.keys" in guard.guard]
    assert not [guard for guard in guards if "_parameters" in guard.source]


def test_guards_that_failed_come_first_and_say_so(log_of: LogOf) -> None:
    module = Net()
    log = log_of(
        module,
        [
            lambda c: c(torch.ones(2, 4)),
            lambda c: (module.eval(), setattr(module, "mode", "b"), c(torch.ones(2, 4))),
        ],
    )
    first = read_guards(log).strict[0]
    assert (first.guard, first.compile_id) == ("self.mode == 'plain'", "0/0")
    assert first.why.endswith("It failed 1 time here.")


def test_global_state_is_over_strict_only_where_it_failed(log_of: LogOf) -> None:
    def without_grad(compiled: Any) -> None:
        with torch.no_grad():
            compiled(torch.ones(2))

    log = log_of(lambda x: x + 1, [lambda c: c(torch.ones(2)), without_grad])
    assert [guard.compile_id for guard in read_guards(log).strict if guard.type == "GLOBAL_STATE"] == ["0/0"]


def test_a_condition_on_an_open_size_is_over_strict(log_of: LogOf) -> None:
    def halves(x: Tensor) -> Tensor:
        return x * 2 if x.shape[0] > 3 else x + 1

    log = log_of(halves, [lambda c, n=n: c(torch.ones(n)) for n in (2, 3)])
    strict_guard = next(guard for guard in read_guards(log).strict if guard.type == "LAMBDA_GUARD")
    assert strict_guard.guard == "2 <= x.size()[0] <= 3"
    assert "x, dimension 0 to one side of 3" in strict_guard.why


def test_only_what_was_compiled_after_the_last_reset_is_in_use(log_of: LogOf) -> None:
    calls = [lambda c: c(torch.ones(2)), lambda _: torch._dynamo.reset(), lambda c: c(torch.ones(3))]
    summary = read_guards(log_of(lambda x: x + 1, calls))
    assert [frame.compile_id for frame in summary.per_compilation] == ["r1:0/0"]
    timed = with_eval_seconds(summary, {"0/0": 2e-6}, {"0/0": ["x: 1.00 µs"]})
    assert (timed.eval_s, timed.per_compilation[0].eval_s) == (2e-6, 2e-6)
    assert timed.per_compilation[0].slowest == ["x: 1.00 µs"]


def test_no_compilation_no_guards() -> None:
    assert read_guards(CompileLog(())) == GuardSummary()


def test_summary_survives_json(log_of: LogOf) -> None:
    summary = read_guards(log_of(Net(), [lambda c: c(torch.ones(2, 4))]))
    assert from_json(GuardSummary, to_json(summary)) == summary
