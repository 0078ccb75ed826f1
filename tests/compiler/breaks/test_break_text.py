"""Texts about breaks, of this torch and of others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.compiler.breaks.read import read_breaks, read_skips
from pyrometer.compiler.breaks.text import Cause, parse_break, parse_causes, user_stack
from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.log import CompileLog, LogEntry
from pyrometer.compiler.private import break_registry

STACK = """\
User code traceback:
  File "/home/me/train.py", line 30, in <module>
    model(x)
  File "/home/me/model.py", line 7, in forward
    print(x)
"""

# What torch 2.4 to 2.6 write.
OLD = f"""\
Graph break in user code at /home/me/model.py:7
Reason: Unsupported: builtin: print [<class 'torch._dynamo.variables.tensor.TensorVariable'>] False
{STACK}
Traceback (most recent call last):
  File "/v/lib/python3.11/site-packages/torch/_dynamo/symbolic_convert.py", line 641, in wrapper
    return inner_fn(self, inst)
torch._dynamo.exc.Unsupported: builtin: print [<class 'torch._dynamo.variables.tensor.TensorVariable'>] False
"""

NEW = f"""\
Graph break in user code at /home/me/model.py:7
Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):

Failed to trace builtin operator
  Higher Order Operator: cond
  Explanation: Dynamo does not know how to trace `print`.

      It takes:
        x: a tensor
  Hint: Avoid it.
    Or not.
  Hint: Report it.

  Developer debug context: builtin print
    of two lines

 For more details about this graph break, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0059.html

Stack variable source attribution:
  ListVariable(length=0) originated from:
  File "/home/me/model.py", line 3
      outputs = []

{STACK}
NoneType: None
"""


# Written where the whole frame is given up, and the reason comes from outside of the traced function.
OUTSIDE = """\
Graph break: torch.compile cannot properly resume from this graph break, which results in a skip.
torch.compile will skip tracing the frame forward (/home/me/model.py line 5) and fall back to eager.
The graph break occurred in the following user code:
  File "/home/me/model.py", line 7, in forward
    return self.layer(x)

Traceback (most recent call last):
  File "/v/lib/python3.11/site-packages/torch/_dynamo/convert_frame.py", line 2102, in _compile
    guarded_code, tracer_output = compile_inner(code, one_graph, hooks)
torch._dynamo.exc.Unsupported: Excessive RestartAnalysis() calls
  Explanation: Dynamo attempted to trace the same frame 100+ times.

  Developer debug context: none
"""

BACKEND = """\
WON'T CONVERT forward /home/me/model.py line 5
========== TorchDynamo Stack Trace ==========
Traceback (most recent call last):
  File "/v/lib/python3.11/site-packages/torch/_dynamo/output_graph.py", line 3000, in call_user_compiler
    compiled_fn = compiler_fn(gm, example_inputs)
torch._subclasses.fake_tensor.UnsupportedOperatorException: aten.sin.default

========== The above exception occurred while processing the following code ==========

  File "/home/me/model.py", line 8, in forward
    return y

==========
"""


# The same from torch 2.5 and 2.6.
OLD_SKIP = """\
Graph break: skip: from user code at:
  File "/home/me/model.py", line 7, in forward
    for x in parts:

Traceback (most recent call last):
  File "/v/lib/python3.11/site-packages/torch/_dynamo/convert_frame.py", line 1000, in _compile
    guarded_code = compile_inner(code, one_graph, hooks, transform)
torch._dynamo.exc.Unsupported: Graph break in a loop
"""


def log_of(*texts: str) -> CompileLog:
    own = CompileId(0, None, 0, 0)
    return CompileLog(
        tuple(LogEntry("dynamo_graph_break_reason", {}, text, compile_id=own) for text in texts),
        source="a.log",
    )


def test_a_text_with_everything() -> None:
    parsed = parse_break(NEW)
    assert parsed.causes == (
        Cause(
            reason="Failed to trace builtin operator",
            id="gb0059",
            explanation="Dynamo does not know how to trace `print`.\n\nIt takes:\n  x: a tensor",
            hints=("Avoid it.\nOr not.", "Report it."),
            context="builtin print\nof two lines",
        ),
    )
    assert [(place.line, place.source) for place in parsed.stack] == [(30, "model(x)"), (7, "print(x)")]
    assert (parsed.gives_up, parsed.gives_up_rest) == (False, False)


def test_a_text_of_an_older_torch_gives_reason_and_place() -> None:
    (graph_break,) = read_breaks(log_of(OLD))
    assert (graph_break.file, graph_break.line, graph_break.function, graph_break.source) == (
        "/home/me/model.py",
        7,
        "forward",
        "print(x)",
    )
    assert graph_break.reason.startswith("builtin: print [")
    assert (graph_break.id, graph_break.hints) == (None, [])


def test_a_skip_of_an_older_torch_gives_the_exception_and_place() -> None:
    (graph_break,) = read_breaks(log_of(OLD_SKIP))
    assert (graph_break.reason, graph_break.line, graph_break.skips_frame) == (
        "Graph break in a loop",
        7,
        True,
    )


@pytest.mark.parametrize(
    ("failure", "text", "raised"),
    [
        ("Unsupported", "Dynamo cache limit exceeded\n  Explanation: too many", False),
        ("Unsupported", "cache_size_limit reached", False),
        ("RecompileLimitExceeded", "accumulated_recompile_limit reached", False),
        ("FailOnRecompileLimitHit", "recompile_limit reached with one_graph=True. Excessive", True),
    ],
)
def test_recompile_limits_of_older_torch(failure: str, text: str, raised: bool) -> None:
    metrics = {"fail_type": failure, "fail_reason": text, "co_name": "f", "co_filename": "m.py"}
    log = CompileLog((LogEntry("compilation_metrics", metrics, compile_id=CompileId(0, None, 0, 8)),))
    (skip,) = read_skips(log)
    assert (skip.kind, skip.raised) == ("raised" if raised else "recompile_limit", raised)
    assert read_breaks(log) == []


def test_whether_a_break_without_a_text_was_raised_is_not_told_by_older_torch() -> None:
    metrics = {"fail_type": "Unsupported", "fail_reason": "generator", "co_name": "f", "co_filename": "m.py"}
    log = CompileLog((LogEntry("compilation_metrics", metrics, compile_id=CompileId(0, None, 0, 0)),))
    (skip,) = read_skips(log)
    assert (skip.kind, skip.raised, skip.reason) == ("break", None, "generator")
    (graph_break,) = read_breaks(log)
    assert (graph_break.reason, graph_break.file, graph_break.function) == ("generator", "m.py", "f")


def test_a_break_outside_of_the_traced_function() -> None:
    (graph_break,) = read_breaks(log_of(OUTSIDE))
    assert (graph_break.reason, graph_break.line, graph_break.skips_frame) == (
        "Excessive RestartAnalysis() calls",
        7,
        True,
    )
    assert graph_break.explanation == "Dynamo attempted to trace the same frame 100+ times."


def test_a_failing_backend_is_told_by_the_exception_where_there_is_no_other_text() -> None:
    (graph_break,) = read_breaks(log_of(BACKEND))
    assert (
        graph_break.reason == "torch._subclasses.fake_tensor.UnsupportedOperatorException: aten.sin.default"
    )
    assert (graph_break.line, graph_break.skips_frame) == (8, True)
    assert [other.reason for other in read_breaks(log_of(BACKEND, NEW))] == [
        "Failed to trace builtin operator"
    ]


def test_a_break_without_a_link_is_found_in_the_registry() -> None:
    if break_registry.missing():
        pytest.skip("this torch has no registry")
    (cause,) = parse_causes("Data-dependent branching\n  Explanation: No.\n")
    assert cause.id == "gb0170"


def test_three_breaks_in_one_text() -> None:
    again = "*** While handling this graph break, another graph break occurred: ***"
    parts = [f"{name}\n  Explanation: because\n\n  Developer debug context: {name}\n" for name in "abc"]
    text = f"Graph break in user code at m.py:1\nGraph Break Reason: x\n\n{f'{chr(10)}{again}{chr(10) * 2}'.join(parts)}"
    assert [cause.reason for cause in parse_break(text).causes] == ["a", "b", "c"]
    assert [(graph_break.reason, graph_break.chained_to) for graph_break in read_breaks(log_of(text))] == [
        ("a", None),
        ("b", "m.py:1"),
        ("c", "m.py:1"),
    ]


def test_the_stack_of_an_error_is_the_last_one() -> None:
    text = f'Traceback (most recent call last):\n{STACK}\nfrom user code:\n   File "m.py", line 2, in f\n    g()\n'
    assert [(place.file, place.line, place.source) for place in user_stack(text)] == [("m.py", 2, "g()")]
    assert user_stack("Traceback: nothing") == ()


@given(st.text())
def test_any_text_gives_a_break(text: str) -> None:
    (graph_break,) = read_breaks(log_of(text))
    assert graph_break.reason or not text.strip()


@given(st.lists(st.sampled_from([*NEW.splitlines(), *OUTSIDE.splitlines(), *BACKEND.splitlines(), ""])))
def test_lines_in_any_order_give_breaks(lines: list[str]) -> None:
    for graph_break in read_breaks(log_of("\n".join(lines))):
        assert "\n" not in graph_break.reason
