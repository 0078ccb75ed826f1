"""Rewrites, executed: on generated variants of each pattern the rewritten text computes what the original does, or there is none."""

from __future__ import annotations

import ast
import copy
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.rules.host.boolean_mask_indexing import kept_whole
from pyrometer.rules.host.item_in_hot_loop import fetched_whole
from pyrometer.rules.host.patterns.sizes import is_mask
from pyrometer.rules.kernels.inefficient_op import wastes
from pyrometer.rules.kernels.patterns.attention_pattern import written_out
from pyrometer.rules.kernels.patterns.fused_attention import fused
from pyrometer.rules.kernels.patterns.growing import collected
from pyrometer.rules.registry import rules
from pyrometer.source.edit import Edit, apply_edits, replace
from pyrometer.source.module import Module
from pyrometer.source.rewriting import rewritten, with_keywords

ROOT = Path(__file__).parents[2]
Edits = Callable[[Module], Iterator[list[Edit]]]


def changed(text: str, edits_of: Edits) -> str | None:
    """The text with the first edits that there are; None where there are none."""
    module = Module.parse("program.py", text)
    edits = next((edits for edits in edits_of(module) if edits), None)
    if edits is None:
        return None
    lines = rewritten(module, edits)
    assert lines is not None
    assert lines.replaces in textwrap.dedent(text) or lines.replaces.splitlines()[0] in text
    return apply_edits(text, edits)


def run(text: str, *arguments: Any) -> Any:
    """What `run` of a text returns, from the same random state each time."""
    names: dict[str, Any] = {}
    exec(compile(text, "program.py", "exec"), names)
    torch.manual_seed(0)
    return names["run"](*copy.deepcopy(arguments))


def assert_same(text: str, new: str, *arguments: Any, exact: bool) -> None:
    old, now = run(text, *arguments), run(new, *arguments)
    tolerance = {"rtol": 0, "atol": 0} if exact else {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(now, old, equal_nan=True, **tolerance)


def grown(module: Module) -> Iterator[list[Edit]]:
    return (collected(module, call) for call in module.calls("torch.cat", "torch.concat", "torch.hstack"))


NAMES = st.sampled_from(["out", "history", "parts", "x_all", "out_parts"])


@given(
    name=NAMES,
    dim=st.sampled_from(["", ", 0", ", dim=0", ", dim=1", ", -1", ", axis=-1"]),
    pieces=st.sampled_from(["y", "y, row", "row.flip(0)"]),
    before=st.booleans(),
    guarded=st.sampled_from(["", "if i % 2:\n    ", "if i == 2:\n    continue\n", "if i == 3:\n    break\n"]),
    rounds=st.integers(0, 4),
)
def test_a_tensor_that_grows_is_the_same_bit_by_bit(
    *, name: str, dim: str, pieces: str, before: bool, guarded: str, rounds: int
) -> None:
    parts = f"{pieces}, {name}" if before else f"{name}, {pieces}"
    grow = f"{name} = torch.cat([{parts}]{dim})"
    body = guarded + (textwrap.indent(grow, "    ").lstrip() if guarded.endswith("    ") else grow)
    text = "import torch\n\ndef run(first, rows):\n    {name} = first\n    for i, row in enumerate(rows):\n        y = torch.relu(row) * 2\n{body}\n    return {name}\n".format(
        name=name, body=textwrap.indent(body, "        ")
    )
    new = changed(text, grown)
    if before and "," in pieces:
        assert new is None
        return
    assert new is not None
    assert new.index("torch.cat") > new.index("for i")
    rows = torch.randn(rounds, 3, 3)
    assert_same(text, new, torch.randn(3, 3), rows, exact=True)


@given(name=NAMES, flipped=st.booleans(), rounds=st.integers(0, 3))
def test_a_tensor_that_begins_as_none_is_the_same(name: str, flipped: bool, rounds: int) -> None:
    first, more = f"{name} = row * 2", f"{name} = torch.cat(({name}, row * 2), dim=-1)"
    test, then, other = ("is not None", more, first) if flipped else ("is None", first, more)
    text = (
        f"import torch\n\ndef run(rows):\n    {name} = None\n    for row in rows:\n        if {name} {test}:\n            {then}\n"
        f"        else:\n            {other}\n    return {name}\n"
    )
    new = changed(text, grown)
    assert new is not None
    assert_same(text, new, torch.randn(rounds, 2, 3), exact=True)


@pytest.mark.parametrize(
    "body",
    [
        "y += row\n        out = torch.cat([out, y[None]])",  # what was added changes afterwards
        "y.add_(row)\n        out = torch.cat([out, y[None]])",
        "z = y.mul_(row)\n        out = torch.cat([out, z[None]])",
        "out = torch.cat([out, advanced(y)[None]])",
        "z = torch.relu(row)\n        out = torch.cat([out, z[None]])\n        z.add_(1)",
        "z = -row[None]\n        out = torch.cat([out, z])\n        z.add_(1)",
    ],
)
def test_what_may_change_after_it_was_added_is_copied(body: str) -> None:
    text = (
        "import torch\n\ndef advanced(state):\n    return state.add_(1)\n\n"
        f"def run(out, rows):\n    y = rows[0].clone()\n    for i, row in enumerate(rows):\n        {body}\n    return out\n"
    )
    new = changed(text, grown)
    assert new is not None
    assert ".clone())" in new
    assert_same(text, new, torch.randn(2, 3), torch.randn(4, 3), exact=True)


@pytest.mark.parametrize(
    "body",
    [
        "out = torch.cat([out, y[None]])\n        print(out.shape)",
        "out = torch.cat([out, y[None]], dim=i)",
        "out = torch.cat([out, *row])",
        "out = torch.hstack([out, y[None]])",
        "out = torch.cat([out, y[None]])\n        yield i",
        "out = torch.cat([out, torch.zeros(1, 3)]); y = lambda: out",
    ],
)
def test_no_list_where_it_might_differ(body: str) -> None:
    text = f"import torch\n\ndef run(out, rows):\n    y = rows[0].clone()\n    for i, row in enumerate(rows):\n        {body}\n    return out\n"
    assert changed(text, grown) is None


ATTENTION = """\
import math
import torch
from torch import nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, dim=8, heads=2):
        super().__init__()
        self.scale = (dim // heads) ** -0.5
        self.drop = nn.Dropout(0.5)

    def forward(self, {q}, {k}, v: torch.Tensor, mask: torch.Tensor | None = None, bias: torch.Tensor | None = None):
        B, H, T, D = {q}.shape
{body}


def run(q, k, v, mask, bias):
    return Attention().eval()(q, k, v, mask, bias)
"""


def attended(module: Module) -> Iterator[list[Edit]]:
    return (fused(module, attention) for attention in written_out(module))


@given(
    q=st.sampled_from(["q", "query", "x_q"]),
    k=st.sampled_from(["k", "keys"]),
    product=st.sampled_from(
        ["{q} @ {k}.transpose(-2, -1)", "torch.matmul({q}, {k}.transpose(-1, -2))", "{q}.matmul({k}.mT)", "({q} @ {k}.transpose(2, 3))",
         "torch.einsum('bhqd,bhkd->bhqk', {q}, {k})"]
    ),
    scale=st.sampled_from(
        ["", " / math.sqrt({q}.size(-1))", " * self.scale", " / D ** 0.5", " * 0.3", " / math.sqrt({q}.shape[-1]) * 2"]
    ),
    mask=st.sampled_from(
        ["", "s = s.masked_fill(mask == 0, float('-inf'))", "if mask is not None:\n    s = s.masked_fill(~mask, -torch.inf)",
         "s = s + bias", "s = torch.where(mask, s, -1e9)", "s = s.masked_fill(mask != 1, torch.finfo(s.dtype).min)", "s += bias",
         "if bias is not None:\n    s = s + bias",
         "s = s.masked_fill(~mask, -torch.inf)\nif bias is not None:\n    s = s.masked_fill(bias < -2, float('-inf'))"]
    ),
    softmax=st.sampled_from(["s.softmax(-1)", "torch.softmax(s, dim=-1)", "F.softmax(s, dim=-1, dtype=torch.float32).to(v.dtype)"]),
    dropout=st.sampled_from(["", "w = self.drop(w)\n", "w = F.dropout(w, p=0.1, training=self.training)\n"]),
    ending=st.sampled_from(["return w @ v", "out = torch.matmul(w, v)\nreturn out.transpose(1, 2)"]),
    given_mask=st.booleans(),
)  # fmt: skip
def test_attention_is_fused_with_its_scale_mask_and_dropout(
    *,
    q: str,
    k: str,
    product: str,
    scale: str,
    mask: str,
    softmax: str,
    dropout: str,
    ending: str,
    given_mask: bool,
) -> None:
    score = (product + scale).format(q=q, k=k)
    body = f"s = {score}\n{mask}\nw = {softmax}\n{dropout}{ending}"
    text = ATTENTION.format(q=q, k=k, body=textwrap.indent(body, "        "))
    new = changed(text, attended)
    if "finfo(s.dtype)" in mask:
        assert new is None  # the value to fill with is of a name that goes
        return
    assert new is not None, text
    assert "softmax" not in new
    inputs = [torch.randn(2, 2, 5, 4), torch.randn(2, 2, 5, 4), torch.randn(2, 2, 5, 4)]
    keep = torch.ones(5, 5, dtype=torch.bool).tril()
    needs = bool(mask) and not mask.startswith("if")
    masks = [keep, torch.randn(5, 5)] if given_mask or needs else [None, None]
    assert_same(text, new, *inputs, *masks, exact=False)


@pytest.mark.parametrize(
    "body",
    [
        "s = (q @ k.mT) * bias\nreturn s.softmax(-1) @ v",
        "s = (q @ k.mT).masked_fill(mask, 0.0)\nreturn s.softmax(-1) @ v",
        "s = (q @ k.mT).masked_fill(mask, -1e9) / 2\nreturn s.softmax(-1) @ v",
        "s = (q @ k.mT).clamp(-5, 5)\nreturn s.softmax(-1) @ v",
        "s = q @ k.mT\nq = q + 1\nreturn s.softmax(-1) @ v + q",
        "s = q @ k.mT\nw = s.softmax(-1)\ny = w @ v\nreturn y, s",
        "s = q @ k.mT\nif mask is None:\n    s = s.masked_fill(bias > 0, -torch.inf)\nelse:\n    s = s + bias\nreturn s.softmax(-1) @ v",
        "s = (q @ k.mT)[..., :3]\nreturn s.softmax(-1) @ v[..., :3, :]",
    ],
)
def test_attention_that_is_not_understood_has_no_rewrite(body: str) -> None:
    assert changed(ATTENTION.format(q="q", k="k", body=textwrap.indent(body, "        ")), attended) is None


def wasted(module: Module) -> Iterator[list[Edit]]:
    return ([replace(module, hit.better.node, hit.better.text)] for hit in wastes(module) if hit.better.text)


@given(
    name=st.sampled_from(["q", "scores"]),
    number=st.integers(1, 9),
    dim=st.sampled_from(["-1", "1", "0"]),
    descending=st.booleans(),
    keyword=st.booleans(),
    form=st.sampled_from(["sort", "argsort", "softmax", "trace", "inverse", "one_hot", "diag", "cdist"]),
)
def test_an_operator_that_does_less_gives_the_same(
    *, name: str, number: int, dim: str, descending: bool, keyword: bool, form: str
) -> None:
    index = {"-1": f"[..., :{number}]", "1": f"[:, :{number}]", "0": f"[:{number}]"}[dim]
    along = f"dim={dim}" if keyword else dim
    order = ", descending=True" if descending else ""
    line = {
        "sort": f"torch.sort({name}, {along}{order}).values{index}",
        "argsort": f"{name}.argsort({along}{order}){index}",
        "softmax": f"torch.softmax({name}, {along}).argmax({along}{', keepdim=True' if descending else ''})",
        "trace": f"torch.trace({name} @ k)",
        "inverse": f"torch.linalg.inv({name}) @ k",
        "one_hot": "torch.nn.functional.one_hot(ids, 6).float() @ k",
        "diag": f"{name} @ torch.diag(k[0]) @ k",
        "cdist": f"({name}[:, None, :] - k[None, :, :]).pow(2).sum({along if dim == '-1' else 'dim=2'})",
    }[form]
    text = f"import torch\n\ndef run({name}: torch.Tensor, k: torch.Tensor, ids):\n    return {line}\n"
    new = changed(text, wasted)
    assert new is not None, text
    generator = torch.Generator().manual_seed(number)
    first = torch.randn(6, 6, generator=generator) + 6 * torch.eye(6)
    arguments = (first, torch.randn(6, 6, generator=generator), torch.arange(6).flip(0))
    old, now = run(text, *arguments), run(new, *arguments)
    torch.testing.assert_close(now, old, rtol=1e-3, atol=1e-3)


def masked(module: Module) -> Iterator[list[Edit]]:
    reduced = (
        kept_whole(module, node) for node in module.nodes(ast.Subscript) if is_mask(module, node.slice)
    )
    return ([replace(module, call, text)] for call, text in filter(None, reduced))


@given(
    x=st.sampled_from(["errors", "x"]),
    mask=st.sampled_from(["{x} > 0.2", "~torch.isnan({x})", "keep"]),
    reduce=st.sampled_from(["sum", "mean", "prod", "nansum"]),
    chain=st.sampled_from(["", " * 2", ".sqrt()"]),
)
def test_a_selection_that_is_reduced_keeps_its_shape(x: str, mask: str, reduce: str, chain: str) -> None:
    text = f"import torch\n\ndef run({x}: torch.Tensor):\n    keep = {x} < 0.9\n    return {x}[{mask.format(x=x)}].{reduce}(){chain}\n"
    new = changed(text, masked)
    assert new is not None, text
    assert_same(text, new, torch.rand(4, 3), exact=False)


@pytest.mark.parametrize("mask", ["rows > 0", "keep", "x[:, 0] > 0"])
def test_a_mask_of_another_shape_has_no_rewrite(mask: str) -> None:
    text = f"import torch\n\ndef run(x: torch.Tensor, rows: torch.Tensor, keep: torch.Tensor):\n    return x[{mask}].sum()\n"
    assert changed(text, masked) is None


def fetched(module: Module) -> Iterator[list[Edit]]:
    return (fetched_whole(module, loop) for loop in module.nodes(ast.For))


@given(
    name=st.sampled_from(["loss", "v"]),
    read=st.sampled_from(["{v}.item()", "float({v})", "int({v})", "{v}.item() + float({v})"]),
    many=st.sampled_from(["xs", "xs.abs()", "xs + 1", "xs[:, None]"]),
)
def test_elements_that_are_fetched_at_once_are_the_same_numbers(name: str, read: str, many: str) -> None:
    text = (
        f"import torch\n\ndef run(xs: torch.Tensor):\n    seen = []\n    for {name} in {many}:\n"
        f"        if {name}.item() > 0:\n            seen.append({read.format(v=name)})\n    return seen\n"
    )
    new = changed(text, fetched)
    assert new is not None
    xs = torch.randn(7)
    assert run(text, xs) == run(new, xs)


@pytest.mark.parametrize(
    "body", ["seen.append(v.item()); kept = v", "xs[0] = v.item()", "seen.append((v * 2).item())"]
)
def test_elements_that_are_used_as_tensors_are_left_alone(body: str) -> None:
    text = f"import torch\n\ndef run(xs: torch.Tensor):\n    seen = []\n    for v in xs:\n        {body}\n    return seen\n"
    assert changed(text, fetched) is None


@given(
    arguments=st.lists(st.sampled_from(["1", "(2, 3)", "'a'"]), max_size=2),
    keywords=st.dictionaries(st.sampled_from(["lr", "fused", "foo"]), st.sampled_from(["0.1", "None"])),
    broken=st.booleans(),
)
def test_a_keyword_is_added_and_all_others_stay(
    arguments: list[str], keywords: dict[str, str], broken: bool
) -> None:
    inside = [*arguments, *(f"{name}={value}" for name, value in keywords.items())]
    joined = (
        "\n        " + "".join(f"{part},\n        " for part in inside)
        if broken and inside
        else ", ".join(inside)
    )
    text = f"def f(*args, **given):\n    return args, given\n\ndef run():\n    return f({joined})\n"

    def added(module: Module) -> Iterator[list[Edit]]:
        return (with_keywords(module, call, {"fused": "True"}) for call in module.nodes(ast.Call))

    new = changed(text, added)
    assert new is not None
    positional, named = run(text)
    assert run(new) == (positional, {**named, "fused": True})


HERE = "tests/rules/test_rewrites.py"
EXECUTED = {
    "PYR009": "test_the_edit_makes_the_replacement",
    "PYR101": f"{HERE}::test_elements_that_are_fetched_at_once_are_the_same_numbers",
    "PYR106": f"{HERE}::test_a_selection_that_is_reduced_keeps_its_shape",
    "PYR113": f"{HERE}::test_a_keyword_is_added_and_all_others_stay",
    "PYR114": f"{HERE}::test_a_keyword_is_added_and_all_others_stay",
    "PYR117": "test_both_forms_give_the_same_tensor_and_one_of_them_moves_nothing",
    "PYR201": "test_the_fix_decorates_the_function_and_nothing_is_recorded_any_more",
    "PYR202": "test_the_fix_keeps_the_sum_to_the_last_bit_and_lets_the_graph_go",
    "PYR205": "test_the_fix_deletes_the_call_and_is_not_made_without_asking",
    "PYR206": "test_a_collection_whose_result_is_used_has_no_fix",
    "PYR212": "test_the_exact_fix_trains_to_the_same_bits",
    "PYR214": "test_it_finds_activations_of_new_products_and_the_fix_gives_the_same_bits",
    "PYR215": f"{HERE}::test_a_tensor_that_begins_as_none_is_the_same",
    "PYR301": f"{HERE}::test_a_keyword_is_added_and_all_others_stay",
    "PYR304": "test_the_fix_adds_the_argument",
    "PYR305": "test_workers_that_are_kept_are_the_same_in_the_next_epoch",
    "PYR311": "test_the_fix_drops_it",
    "PYR401": "test_the_rewrites_make_one_graph_with_the_same_result",
    "PYR403": "test_each_property_is_named_and_its_rewrite_leaves_one_graph",
    "PYR407": "test_without_the_smaller_batch_there_is_one_graph",
    "PYR408": "test_without_anomaly_detection_gradients_are_the_same",
    "PYR410": "test_the_rewrite_changes_no_result_and_makes_a_break_an_error",
    "PYR413": "test_the_setting_leaves_two_graphs_with_the_same_results",
    "PYR416": "test_a_result_that_is_thrown_away_is_told_and_the_fix_compiles",
    "PYR501": "test_the_lower_precision_gives_the_same_within_its_digits",
    "PYR502": "test_the_rewritten_function_computes_the_same",
    "PYR509": "test_the_fix_switches_it_off_in_evaluation_and_leaves_training_alone",
    "PYR510": f"{HERE}::test_attention_is_fused_with_its_scale_mask_and_dropout",
    "PYR511": f"{HERE}::test_a_tensor_that_grows_is_the_same_bit_by_bit",
    "PYR512": "test_the_fused_update_gives_the_same_in_fewer_operators",
    "PYR514": "test_the_advice_sets_the_threads_and_gives_the_same",
    "PYR515": f"{HERE}::test_an_operator_that_does_less_gives_the_same",
    "PYR605": "test_the_advice_puts_gradients_into_the_buckets_and_changes_no_result",
    "PYR606": "test_the_advice_trains_the_same",
    "PYR710": "test_the_fix_computes_the_same_and_stays_in_range",
}
"""The test that carries a rule's rewrite out and compares results: in this file, or in the rule's own."""

SETTINGS = {
    "PYR119": "what the collector does changes no result",
    "PYR208": "a setting of the allocator",
    "PYR402": "a mark on the user's own argument, which its tests of recompilation carry out",
    "PYR409": "a setting of Inductor that rounds as eager does",
    "PYR415": "takes a setting of Dynamo out",
    "PYR513": "a setting of cuDNN",
    "PYR604": "an argument of the wrapper that searches, and computes nothing",
    "PYR708": "a setting of Inductor that rounds as eager does",
}
"""Rules whose rewrite is a setting by itself, which no property of a program's text decides."""

GIVES = re.compile(r"\brewrite=(?!None)|\bfix=|\bFix\(|\brewritten\(|\bremovable\b")


def test_every_rule_that_gives_code_has_it_executed() -> None:
    giving = set()
    for rule in rules():
        path = ROOT / "src/pyrometer/rules" / rule.family / f"{rule.name.replace('-', '_')}.py"
        if not path.exists() or not GIVES.search(path.read_text()):
            continue
        giving.add(rule.code)
        if rule.code in SETTINGS:
            continue
        test = EXECUTED.get(rule.code)
        assert test is not None, f"{rule.code} {rule.name} sets a rewrite, and no test executes it"
        own = ROOT / "tests/rules" / rule.family / f"test_{rule.name.replace('-', '_')}.py"
        file, _, name = test.rpartition("::")
        text = (ROOT / file if file else own).read_text()
        assert f"def {name}(" in text, f"{rule.code}: there is no {test}"
    assert giving >= EXECUTED.keys()
