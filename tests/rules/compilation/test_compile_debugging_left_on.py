from __future__ import annotations

import msgspec
import pytest
import torch

from pyrometer.hardware.environment import read_environment
from pyrometer.rules.case import Case
from pyrometer.source.edit import apply_edits
from pyrometer.source.module import Module
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.workload.program.record import Program

FIRING = [
    'import os\nimport torch\nos.environ["TORCH_LOGS"] = "+dynamo"  # <-\n',
    'import os\nos.environ["TORCH_COMPILE_DEBUG"] = "1"  # <-\n',
    'from os import environ\nenviron.setdefault("TORCHDYNAMO_VERBOSE", "1")  # <-\n',
    'import os\nif __name__ == "__main__":\n    os.environ["TORCH_COMPILE_DEBUG"] = "1"  # <-\n',
    'import os\nimport torch\nos.environ["TORCHDYNAMO_DISABLE"] = "1"  # <-\nmodel = torch.compile(model)\n',
    "import torch._dynamo\ntorch._dynamo.config.verbose = True  # <-\n",
    "import torch._dynamo.config as config\nconfig.repro_after = 'aot'  # <-\n",
    "import torch._inductor.config\ntorch._inductor.config.trace.enabled = True  # <-\n",
    "from torch._inductor import config\nconfig.force_disable_caches = True  # <-\n",
    "import torch\ntorch._logging.set_logs(graph_breaks=True, recompiles=True)  # <-\n",
    "import logging\nimport torch\ntorch._logging.set_logs(dynamo=logging.DEBUG)  # <-\n",
    "import torch\ntorch.autograd.set_detect_anomaly(True)  # <-\n",
    "import torch\nwith torch.autograd.detect_anomaly():  # <-\n    loss.backward()\n",
    "import torch\nmodel = torch.compile(model, backend='aot_eager')  # <-\n",
    "import torch\n@torch.compile(backend='eager')  # <-\ndef f(x):\n    return x\n",
    "import torch\nmodel = torch.compile(model, options={'trace.enabled': True})  # <-\n",
]

SILENT = [
    'import os\nos.environ["TORCHDYNAMO_DISABLE"] = "1"\n',
    'import os\nos.environ["TORCH_LOGS"] = "-dynamo,-inductor"\n',
    'import os\nos.environ["TORCH_COMPILE_DEBUG"] = "1"\nrun()\ndel os.environ["TORCH_COMPILE_DEBUG"]\n',
    "import torch\nwith torch.autograd.detect_anomaly(check_nan=False):\n    loss.backward()\n",
    "import torch\ncount = torch.compile(model, backend='eager')(x)\n",
    'import os\nos.environ["TORCH_LOGS"] = ""\n',
    'import os\nlogs = os.environ.get("TORCH_LOGS")\n',
    'import os\nos.environ["OMP_NUM_THREADS"] = "1"\n',
    'import os\nif args.debug:\n    os.environ["TORCH_LOGS"] = "+dynamo"\n',
    "import torch\ndef debug_compile():\n    torch._logging.set_logs(graph_breaks=True)\n",
    "import torch\ntorch.autograd.set_detect_anomaly(args.anomaly)\n",
    "import torch\ntorch.autograd.set_detect_anomaly(False)\n",
    "import logging\nimport torch\ntorch._logging.set_logs(all=logging.ERROR)\n",
    "import torch\ntorch._logging.set_logs()\n",
    "import torch\nmodel = torch.compile(model, backend='inductor')\n",
    "import torch\nmodel = torch.compile(model, backend=chosen)\n",
    "import torch\nmodel = torch.compile(model, options={'max_autotune': True})\n",
    "import torch._dynamo\ntorch._dynamo.config.recompile_limit = 16\n",
]


@pytest.mark.parametrize("source", FIRING)
def test_settings_outside_of_conditions(lines, marked, source):
    assert lines("PYR408", source) == marked(source)
    assert lines("PYR408", source, "tests/test_model.py") == []


@pytest.mark.parametrize("source", SILENT)
def test_near_misses(lines, source):
    assert lines("PYR408", source) == []


def test_fixes_take_the_setting_out_and_keep_the_rest(matches):
    source = (
        'import os\nimport torch\nos.environ["TORCH_LOGS"] = "+dynamo"\n'
        "torch._logging.set_logs(graph_breaks=True)\nmodel = torch.compile(model)\n"
    )
    found = matches("PYR408", source)
    assert {match.fix.fix_class for match in found} == {"exact"}
    fixed = apply_edits(source, [edit for match in found for edit in match.fix.edits])
    assert fixed == "import os\nimport torch\nmodel = torch.compile(model)\n"


def test_taking_out_what_switches_the_compiler_off_is_no_exact_fix(matches):
    source = "import torch._dynamo\ntorch._dynamo.config.disable = True\nmodel = torch.compile(model)\n"
    (match,) = matches("PYR408", source)
    assert match.fix.fix_class == "tolerance"


def test_without_anomaly_detection_gradients_are_the_same(matches):
    source = (
        "import torch\ntorch.autograd.set_detect_anomaly(True)\nx = torch.ones(3, requires_grad=True)\n"
        "(x * x).sum().backward()\ngradient = x.grad\n"
    )
    (match,) = matches("PYR408", source)
    assert match.fix.fix_class == "semantic"
    before, after = {}, {}
    was = torch.is_anomaly_enabled()
    try:
        exec(apply_edits(source, match.fix.edits), after)
        assert not torch.is_anomaly_enabled()
        exec(source, before)
    finally:
        torch.autograd.set_detect_anomaly(was)
    assert torch.equal(before["gradient"], after["gradient"])


def test_a_backend_for_debugging_fuses_nothing(matches):
    (match,) = matches("PYR408", FIRING[-3])
    assert "nothing is fused" in match.message
    assert matches("PYR408", FIRING[-3], "benchmarks/compile_overhead.py") == []
    assert match.fix is None


def test_variables_are_told_by_name_and_never_with_their_value(findings):
    environment = read_environment()
    settings = {**environment.settings, "TORCH_LOGS": "+secret", "TORCH_COMPILE_DEBUG": "0"}
    evidence = Case(target="", environment=msgspec.structs.replace(environment, settings=settings))
    (finding,) = findings("PYR408", evidence)

    assert finding.message == "The environment sets TORCH_LOGS, which has the compiler write logs"
    assert "secret" not in str(msgspec.to_builtins(finding))
    assert findings("PYR408", Case(target="", environment=environment)) == []


@pytest.mark.parametrize(("anomaly", "count"), [(True, 1), (False, 0), (None, 0)])
def test_anomaly_detection_of_a_program(findings, anomaly, count):
    program = Program(
        kind="training", device="cpu", compiled=False, grad_mode="grad", settings={"anomaly": anomaly}
    )
    assert len(findings("PYR408", Case(target="", program=program))) == count


def test_anomaly_detection_that_a_trace_shows_is_told_with_what_its_checks_cost(builder, findings):
    for i in range(3):
        start = i * 10_000.0
        builder.annotate(f"ProfilerStep#{i}", start, 10_000)
        for check in range(40):
            builder.op("aten::ne", start + 100 + 100 * check, 3)
            builder.op("aten::any", start + 110 + 100 * check, 3)
    source = (
        "import torch\nfrom model import train\n\ntorch.autograd.set_detect_anomaly(mode=True)\ntrain()\n"
    )
    trace = report_rank(builder.read())
    (finding,) = findings("PYR408", Case(target="", trace=trace, modules=(Module.parse("train.py", source),)))
    gain = finding.advice.gain
    assert (finding.severity, finding.where.line) == ("warning", 4)
    assert "40 gradients" in finding.message
    assert (gain.ratio_low, gain.ratio_high) == pytest.approx((0.48, 0.9))


def test_a_switch_whose_checks_no_step_shows_is_a_remark(builder, findings):
    builder.annotate("ProfilerStep#0", 0.0, 1000)
    builder.op("aten::mm", 10.0, 900)
    source = "import torch\ntorch.autograd.set_detect_anomaly(True)\n"
    case = Case(target="", trace=report_rank(builder.read()), modules=(Module.parse("train.py", source),))
    assert [finding.severity for finding in findings("PYR408", case)] == ["info"]
