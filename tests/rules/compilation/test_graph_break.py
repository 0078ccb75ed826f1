from __future__ import annotations

import textwrap

import msgspec
import pytest
import torch
from representative import every

from pyrometer.compiler.advice.apply import apply_rewrite
from pyrometer.compiler.inspection.inspect import inspect_compile
from pyrometer.rules.case import Case
from pyrometer.rules.compilation.graph_break import RULE
from pyrometer.rules.compilation.patterns.certain_breaks import FUNCTIONS, LEFT_IN
from pyrometer.source.edit import apply_edits
from pyrometer.workload.call import Call

PROGRAM = """
import torch


@torch.compile(backend="eager")
def f(x):
    y = x.sin()
    print(end="")
    if y.sum() > 0:
        y = y + 1
    return y.cos()


def run():
    return f(torch.ones(3))
"""

BODIES = [
    "y = y * y.sum().item()",
    "y = y * float(y.sum())",
    "y = y * int(y.sum())",
    "if y.sum() > 0:\n        y = y * 2",
    "y = y * 2 if y.sum() > 0 else y",
    "if not (y > 0).any():\n        y = y * 2",
    "if torch.isnan(y).any():\n        raise ValueError('NaN')",
    "while y.sum() < 0:\n        y = y * 2",
    "y = y.nonzero()",
    "y = y[y > 0]",
    "y = y.unique()",
]

CALLS = {
    "print": "print(end='')",
    "pprint.pprint": "pprint.pprint('', stream=sys.stderr)",
    "warnings.warn": "warnings.warn('step', stacklevel=1)",
    "open": "open(os.devnull).close()",
    "exec": "exec('1')",
    "torch.save": "torch.save(y, os.devnull)",
    "torch.load": "torch.load(path)",
    "time.sleep": "time.sleep(0)",
    "torch.nonzero": "torch.nonzero(y)",
    "torch.masked_select": "torch.masked_select(y, y > 0)",
    "torch.unique": "torch.unique(y)",
    "logging": "{name}('step')",
}
"""How a function is called, where that is not without arguments."""

FINE = [
    "y = y.cpu()",
    "y = y * y.shape[0]",
    "if y.shape[0] > 2:\n        y = y * 2",
    "if y.dim() == 1:\n        y = y * 2",
    "if y is not None:\n        y = y * 2",
    "y[y > 0] = 0",
    "y = torch.where(y > 0, y, 0)",
    "if not torch.compiler.is_compiling():\n        print(end='')",
    "name = f'{y.shape}'",
    "value = os.environ.get('HOME')",
    "y = y * float(y.shape[0])",
]


def _function(body: str) -> str:
    return (
        "import gc\nimport logging\nimport os, sys\nimport pprint\nimport time\nimport warnings\n\nimport torch\n\n\n@torch.compile(backend='eager')\n"
        f"def f(x: torch.Tensor):\n    y = x + 1\n    {body}\n    return y * 2\n\n\ndef run():\n    return f(torch.ones(4))\n"
    )


@pytest.mark.filterwarnings("ignore:step", "ignore:Dynamo does not know how to trace")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("body", BODIES)
def test_what_the_text_calls_a_break_is_told_and_breaks(lines, ran, body):
    source = _function(body)
    assert lines("PYR401", source) == [14]
    report = ran(source).report
    assert {graph_break.line for graph_break in report.breaks} == {14}


@pytest.mark.filterwarnings("ignore:step", "ignore:Dynamo does not know how to trace")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("name", every(3, sorted({*FUNCTIONS, *LEFT_IN})))
def test_every_function_that_is_known_to_break_does(lines, ran, monkeypatch, tmp_path, name):
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")
    torch.save(torch.ones(1), tmp_path / "saved.pt")
    call = CALLS.get(name) or CALLS.get(name.partition(".")[0], "{name}()").format(name=name)
    source = _function(call).replace("path", repr(str(tmp_path / "saved.pt")))
    assert lines("PYR401", source) == [14]
    assert 14 in {graph_break.line for graph_break in ran(source).report.breaks}


@pytest.mark.parametrize("body", FINE)
def test_what_compiles_into_one_graph_is_not_told(lines, ran, body):
    source = _function(body)
    assert lines("PYR401", source) == []
    assert (ran(source).report.graphs, ran(source).report.breaks) == (1, [])


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            "import torch\ndef f(x):\n    y = x + 1\n    print(y)\n    return y.sum().item()\n", id="eager"
        ),
        pytest.param(
            "import torch\nimport torch._dynamo.config\ntorch._dynamo.config.capture_scalar_outputs = True\n"
            "@torch.compile\ndef f(x):\n    y = x + 1\n    return y * y.sum().item()\n",
            id="numbers are let in",
        ),
        pytest.param(
            "import torch\n@torch.compile\ndef f(x, debug):\n    y = x + 1\n    if debug:\n        print(y)\n    return y\n",
            id="rare",
        ),
        pytest.param(
            "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x: torch.Tensor):\n        n = x.sum().item()\n"
            "        return x * n\nprogram = torch.export.export(Net(), (torch.ones(2),))\n",
            id="exported",
        ),
        pytest.param(
            "import torch\nimport warnings\n@torch.compile\ndef f(x, deprecated=None):\n    if deprecated is not None:\n"
            "        warnings.warn('deprecated')\n    return x * 2\n",
            id="said in a case of its own",
        ),
        pytest.param("def compile(f):\n    return f\n@compile\ndef f(x):\n    print(x)\n", id="no torch"),
    ],
)
def test_near_misses_in_source(lines, source):
    assert lines("PYR401", source) == []


def test_methods_of_a_module_that_the_file_compiles_are_looked_at(lines, marked):
    source = """
    import torch


    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, x):
            y = self.layer(x)
            print("layer")  # <-
            return self.scaled(y)

        def scaled(self, y: torch.Tensor):
            return y * y.max().item()  # <-


    model = torch.compile(Net())
    """
    assert lines("PYR401", source) == marked(source)


def test_a_call_left_in_can_be_taken_out_and_the_graph_is_whole(matches, ran):
    source = _function("torch._dynamo.graph_break()")
    (match,) = matches("PYR401", source)
    assert match.fix.fix_class == "tolerance"
    fixed = apply_edits(source, match.fix.edits)
    assert ran(fixed).report.graphs == 1
    assert torch.allclose(ran(fixed).output, ran(source).output)


def test_only_what_every_call_meets_is_certain(matches):
    source = textwrap.dedent("""
    import torch

    @torch.compile
    def f(x: torch.Tensor, scaled: bool):
        if scaled:
            return x * x.sum().item()
        return x
    """)
    (match,) = matches("PYR401", source)
    assert match.confidence == "medium"


def test_each_site_is_a_finding_with_reason_and_rewrite(ran, findings):
    program = ran(PROGRAM)
    printed, branched = findings("PYR401", program.evidence)

    assert (printed.where.file, printed.where.line) == (str(program.path), program.line_of("print(end"))
    assert branched.where.line == program.line_of("if y.sum()")
    assert "Data-dependent branching" in branched.message
    assert branched.advice.rewrite == "y = torch.where(y.sum() > 0, y + 1, y)"
    assert printed.links == ["/compiled/breaks/0"]
    assert printed.advice.gain is None
    assert {printed.severity, branched.severity} == {"warning"}


def test_the_rewrites_make_one_graph_with_the_same_result(ran, findings):
    program = ran(PROGRAM)
    source = program.source
    for finding in sorted(findings("PYR401", program.evidence), key=lambda one: -one.where.line):
        number = int(finding.links[0].rpartition("/")[2])
        source = apply_rewrite(source, program.report.breaks[number].advice[0], finding.where.line)
    fixed = ran(source)

    assert (program.report.graphs, fixed.report.graphs) == (3, 1)
    assert findings("PYR401", fixed.evidence) == []
    assert torch.equal(fixed.output, program.output)


def test_chained_breaks_and_those_inside_torch_are_left_out(ran, findings):
    program = ran(PROGRAM)
    first, second = program.report.breaks
    breaks = [
        msgspec.structs.replace(first, chained=True),
        msgspec.structs.replace(second, inside_torch=True),
    ]
    report = msgspec.structs.replace(program.report, breaks=breaks)
    assert findings("PYR401", Case(target="", compiled=report)) == []


def test_of_a_program_that_does_not_compile_breaks_are_worth_knowing_only(ran, findings):
    report = msgspec.structs.replace(ran(PROGRAM).report, as_written=False)
    found = findings("PYR401", Case(target="", compiled=report))
    assert {finding.severity for finding in found} == {"info"}
    assert all("would" in finding.message and finding.cost is None for finding in found)


def test_entering_one_more_graph_is_a_cost_where_steps_were_profiled(findings):
    def breaks(x):
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    work = Call(torch.compile(breaks, backend="eager"), torch.ones(8))
    report = inspect_compile(work, budget_s=0.2, steps=2)
    (finding,) = findings("PYR401", Case(target="", compiled=report))

    assert 0 < finding.cost.share <= 1
    assert finding.cost.seconds_per_step == pytest.approx(finding.cost.share * report.cost.steady_s)
    runtime = report.runtime
    assert finding.cost.share == pytest.approx(runtime.dispatch_s / 2 / runtime.profiled_step_s)


def test_the_documented_rewrite_is_one_graph_with_the_results_and_gradients_of_the_original():
    def block(heading):
        part = RULE.doc.partition(f"## {heading}")[2].partition("```python\n")[2].partition("```")[0]
        scope = {"torch": torch}
        exec(part.replace("@torch.compile\n", ""), scope)
        return scope["normalise"]

    before, after = block("Example"), block("Use instead")
    whole = torch.compile(after, backend="eager", fullgraph=True)
    for values in ([1.0, 2.0, 3.0], [1.0, -1.0, 0.0], [-1.0, -2.0, 0.5], [0.0, 0.0, 0.0]):
        expected, x = (torch.tensor(values, requires_grad=True) for _ in range(2))
        weights = torch.arange(3.0)
        (before(expected) * weights).sum().backward()
        result = whole(x)
        (result * weights).sum().backward()
        torch.testing.assert_close(result, before(expected))
        torch.testing.assert_close(x.grad, expected.grad)
