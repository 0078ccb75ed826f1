"""The text of guards is made for people: whatever it holds, reading it does not raise."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.log import CompileLog, LogEntry
from pyrometer.compiler.recompiles.expression import literal, truth
from pyrometer.compiler.recompiles.facts import Facts, facts_of
from pyrometer.compiler.recompiles.failing import failures
from pyrometer.compiler.recompiles.guards import read_guards
from pyrometer.compiler.recompiles.kinds import in_words, kind_of
from pyrometer.compiler.recompiles.read import read_limits, read_recompiles
from pyrometer.compiler.recompiles.reason import read_reason
from pyrometer.compiler.recompiles.symbols import read_symbols
from pyrometer.compiler.recompiles.tree import origin, read_tree, read_types, split_comment

PIECES = [
    "+- ", "| ", "GuardManager: source=L['x'], type=<class 'int'>, tag_safe=(False, False)", "EQUALS_MATCH: ", "L['x']",
    " == ", "'a # b'", '"', "'", "  # ", " (HINT: ", "TENSOR_MATCH: check_tensor(L['x'], Tensor, DispatchKeySet(CPU), torch.float32, ",
    "device=None, requires_grad=False, size=[2, None], stride=[1]", ")", "GLOBAL_STATE: ___check_global_state() against ", '{"a": [1]}',
    "NO_TENSOR_ALIASING", ": check_no_aliasing(L['x'], L['y'])", "___check_type_id(", "123", "\n", "\\", "[" * 30, "not ", " is ", "0/0: ", "-",
]  # fmt: skip
ODD = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=30).map("".join)


@given(ODD, ODD)
def test_odd_trees_are_read_and_compared_without_an_error(old: str, new: str) -> None:
    facts = facts_of(read_tree(new), read_types(new), {"L['x']": old})
    for failure in failures(read_tree(old), facts):
        assert failure.text
    assert not failures(
        read_tree(old),
        facts_of(read_tree(old), read_types(old), {}),
        {(g.type, g.text) for g in read_tree(old)},
    )


@given(ODD)
def test_odd_texts_are_read_without_an_error(text: str) -> None:
    split_comment(text)
    origin(text, [text])
    literal(text)
    truth(text, Facts())
    kind_of(text)
    in_words(text)
    assert read_reason(text, read_tree(text)).guard is not None


@given(st.lists(st.tuples(st.sampled_from(["recompile_reasons", "dynamo_cpp_guards_str", "create_symbol", "dynamo_start", "compilation_metrics", "guard_added_fast", "symbolic_shape_specialization"]), st.none() | ODD | st.dictionaries(st.sampled_from(["stack", "symbol", "source", "val", "expr", "co_name", "co_firstlineno", "fail_reason", "user_stack"]), ODD | st.none() | st.lists(ODD)), ODD | st.lists(ODD).map(json.dumps), st.integers(0, 2))))  # fmt: skip
def test_odd_logs_are_read_without_an_error(rows: list[tuple[str, object, str, int]]) -> None:
    log = CompileLog(
        tuple(
            LogEntry(kind, content, payload, CompileId(0, None, 0, n)) for kind, content, payload, n in rows
        )
    )
    for read in (read_recompiles, read_limits, read_guards, read_symbols):
        read(log)


def test_a_hash_in_a_string_is_no_comment() -> None:
    (guard,) = read_tree(
        "+- EQUALS_MATCH: L['s'] == 'a  # b'   # if s:  # dir/model.py:3 in f (HINT: type str)"
    )
    assert guard.text == "L['s'] == 'a  # b'"
    place = origin(guard.comment, ["/home/me/dir/model.py", "/home/me/other.py"])
    assert place is not None
    assert (place.file, place.line, place.function, place.source) == (
        "/home/me/dir/model.py",
        3,
        "f",
        "if s:",
    )


def test_a_line_that_only_used_the_size_first_is_not_blamed() -> None:
    comment = (
        "y = linear(x)  # nn/linear.py:1 in forward (user code shown is first use of this value--the guard itself) "
        "and if x.shape[0] > 3:  # model.py:9 in forward (_dynamo/tensor.py:2 in evaluate_expr)"
    )
    place = origin(comment)
    assert place is not None
    assert (place.text, place.source) == ("model.py:9", "if x.shape[0] > 3:")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("2 <= L['x'].size()[0] <= 3", False),
        ("4 <= L['x'].size()[0]", True),
        ("L['x'].size()[0] % 4 == 0", False),
        ("L['y'].size()[0] == L['x'].size()[0]", None),
        ("L['y'].size()[0] == 2 and L['x'].size()[0] == 4", False),
        ("L['y'].size()[0] == 2 or L['x'].size()[0] == 5", True),
        ("L['x'].size()[0] // 0 == 1", None),
        ("not L['x'].size()[0] == 5", False),
        ("Max(1, L['x'].size()[0]) == 5", True),
        ("__import__('os').system('true') == 0", None),
    ],
)
def test_conditions_are_decided_where_the_known_values_suffice(condition: str, expected: bool | None) -> None:
    facts = Facts()
    facts.texts["L['x'].size()[0]"] = "5"
    assert truth(condition, facts)[0] is expected
