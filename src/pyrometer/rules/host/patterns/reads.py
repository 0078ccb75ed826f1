"""Expressions that make the host wait for a tensor's values, as source text shows them.

Each search yields candidates, wherever they stand; `sure_reads` keeps those that certainly read a tensor in code that runs
once per step, which is what a rule may say without having run anything. With a trace in hand, which proves that the
function waits, `may_wait` is enough.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from pyrometer.advice import Confidence
from pyrometer.source.regions import NEAR_PARTS
from pyrometer.source.value import Kind
from pyrometer.text import one_line

if TYPE_CHECKING:
    from pyrometer.source.module import Hot, Module

CONVERSIONS = (
    "float",
    "int",
    "complex",
    "math.isnan",
    "math.isinf",
    "math.isfinite",
    "math.sqrt",
    "math.log",
    "math.exp",
)
"""Functions that ask a tensor for a Python number."""
ARRAYS = ("numpy.array", "numpy.asarray", "numpy.ascontiguousarray")
SYNCHRONIZE = (
    "torch.cuda.synchronize",
    "torch.accelerator.synchronize",
    "torch.xpu.synchronize",
    "torch.mps.synchronize",
)


OF_DEVICES = re.compile(r"cuda|accelerator|\bdevice\s*=|\.device\b|\.to\(\s*device")
"""What a file says that puts its tensors on a device, or leaves them where they are."""


OTHER_DEVICE = re.compile(r"""["'](mps|npu|xla|cpu)["']|\.is_(mps|xla|xpu)\b""")
ONCE = re.compile(
    r"(^|_)(calibrat\w*|export(s|er|ed)?|export_\w+|save\w*|checkpoint\w*|setup|build|convert(s|er|ed)?|visuali[sz]\w*|plot(s|ting)?|draw\w*|demo|summar(y|ize|ise)|"
    r"statistics|debug\w*|preprocess\w*|prepare|dump|render\w*|report|describe|inspect|animate|reference|naive|init_\w+|initiali[sz]e\w*)(_|$)"
    r"|^(__repr__|__str__|extra_repr|__init__)$",
    re.IGNORECASE,
)
"""Functions and files for what is done once, or for people to look at."""

ONCE_FOLDER = re.compile(
    r"(^|_)(export(s|ers?|ing)?|visuali[sz]\w*|plot(s|ting)?|convert(s|ers?)?|conversion|benchmarks?|test_utils)$",
    re.IGNORECASE,
)
"""Folders of such files."""

FEEDING = re.compile(r"(Sampler|Dataset)$")
INVERSE = re.compile(r"inv(erse)?(_|$)|jacobian|log_prob")
FEEDING_FILE = re.compile(r"^(transforms?|augmentations?|augment)$")
"""Files of transforms of samples."""

AGREEING = re.compile(r"(^|\.)(all_reduce|broadcast|all_gather|all_gather_into_tensor|reduce)$")
"""Collectives after which a number decides the same on all ranks: nobody can go on before it is known."""

ON_HOST = re.compile(r"(^|_)batch_sizes$")
"""Tensors that lie in the host's memory by contract: those of a PackedSequence."""


PACKING = "pack_padded_sequence"


class Read(NamedTuple):
    """One place that reads a tensor on the host."""

    node: ast.expr
    subject: ast.expr | None
    """The tensor; None where the call itself says that it waits."""
    text: str

    @property
    def line(self) -> int:
        """Where it begins."""
        return self.node.lineno


Reads = Callable[["Module"], Iterator[Read]]


def sure_reads(module: Module, reads: Reads) -> Iterator[tuple[Read, Hot, Confidence]]:
    """The reads of tensors that may lie on a device, in code that runs once per step and not seldom within it."""
    if not module.imports_torch:
        return
    nodes: set[ast.expr] = set()
    for read in reads(module):
        why = (
            None if read.node in nodes else hot_place(module, read.node)
        )  # asked first: it costs less than the value
        if why is None or _is_agreed(module, read.subject):
            continue
        if read.subject is None or is_tensor(module, read.subject):
            nodes.add(read.node)
            yield read, why, "high" if uses_device(module) else "medium"


def _is_agreed(module: Module, subject: ast.expr | None) -> bool:
    """Whether the same function has the ranks agree on a number before it reads it."""
    if "dist" not in module.text or subject is None:
        return False
    names = {part.id for part in ast.walk(subject) if isinstance(part, ast.Name)}
    return any(
        isinstance(call.args[0], ast.Name)
        and call.args[0].id in names
        and call.lineno < subject.lineno
        and module.function_of(call) is module.function_of(subject)
        for call in _collectives(module)
    )


@lru_cache(maxsize=4)
def _collectives(module: Module) -> tuple[ast.Call, ...]:
    calls = (
        call
        for call in module.nodes(ast.Call)
        if call.args and isinstance(call.func, ast.Attribute | ast.Name)
    )
    return tuple(call for call in calls if AGREEING.search(module.source(call.func)) is not None)


def during(why: Hot) -> str:
    """Why a place is hot, as the end of a sentence."""
    return why.during


def hot_place(module: Module, node: ast.expr | ast.stmt) -> Hot | None:
    """Why a place runs once per step; None for what runs seldom, in tests, under a profiler, or for the compiler."""
    why = module.hot(node)
    if why is None or module.is_rare(node):
        return None
    if _elsewhere(module, node) or _feeds(module, node) or _is_once(module, node):
        return None
    if why.within == "round" and why.loop is None:
        return None  # Called from a loop that neither trains nor loads: a search, whose length nobody knows.
    region = module.region(node)
    return None if region.test or region.scripted or region.profiled or region.compiled else why


def _is_once(module: Module, node: ast.expr | ast.stmt) -> bool:
    """Whether the functions around a place, or its file, are named after work that is done once."""
    functions = (
        above for above in module.ancestors(node) if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    names = [function.name for function in functions]
    path = PurePath(module.path)
    folders = path.parts[-NEAR_PARTS:-1]
    return any(ONCE.search(name) for name in [*names, path.stem]) or any(map(ONCE_FOLDER.search, folders))


def _feeds(module: Module, node: ast.expr | ast.stmt) -> bool:
    """Whether a place belongs to a sampler, a dataset or a transform of samples: these work on the host, ahead of the step."""
    owner = module.class_of(node)
    return owner is not None and (
        FEEDING.search(owner.name) is not None
        or any(module.classes.derives_from(owner, base) for base in ("Sampler", "Dataset"))
        or (
            (
                module.classes.derives_from(owner, "Transform")
                or FEEDING_FILE.search(PurePath(module.path).stem) is not None
            )
            and not _can_be_inverted(owner)
        )
    )


def _can_be_inverted(owner: ast.ClassDef) -> bool:
    """Whether a transform is a layer of a flow, and none of samples: it knows its inverse."""
    return any(
        isinstance(part, ast.FunctionDef) and INVERSE.search(part.name) is not None
        for part in ast.walk(owner)
    )


def _elsewhere(module: Module, node: ast.expr | ast.stmt) -> bool:
    """Whether a place is only for devices that cannot do something themselves: `if x.device.type == "mps"`."""
    if not _speaks_of_others(module):
        return False
    child: ast.AST = node
    for above in module.ancestors(node):
        if isinstance(above, ast.If) and child in above.body and _asks_for_other(module, above.test):
            return True
        child = above
    return False


@lru_cache(maxsize=4)
def _speaks_of_others(module: Module) -> bool:
    return OTHER_DEVICE.search(module.text) is not None


def _asks_for_other(module: Module, test: ast.expr) -> bool:
    text = module.source(test)
    return (
        ("device" in text or ".is_" in text)
        and OTHER_DEVICE.search(text) is not None
        and "cuda" not in text
        and "!=" not in text
    )


def is_tensor(module: Module, node: ast.expr) -> bool:
    """Whether an expression certainly is a tensor, and not certainly one in the host's memory."""
    name = _base_name(node)
    if ON_HOST.search(name) is not None or name in _packed_lengths(module, node):
        return False
    value = module.value_of(node)
    return value.is_tensor and value.device != "cpu"


def _base_name(node: ast.expr) -> str:
    """The last name of what elements are taken from: `batch_sizes` of `packed.batch_sizes[0]`."""
    while isinstance(node, ast.Subscript | ast.Call):
        inner = node.value if isinstance(node, ast.Subscript) else node.func
        if isinstance(node, ast.Call) and not isinstance(inner, ast.Attribute):
            return ""
        node = inner.value if isinstance(inner, ast.Attribute) and isinstance(node, ast.Call) else inner
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _packed_lengths(module: Module, node: ast.expr) -> set[str]:
    """Names that the same function passes as lengths to `pack_padded_sequence`, which takes them on the CPU only."""
    if PACKING not in module.text:
        return set()
    calls = [
        call for call in module.nodes(ast.Call) if module.source(call.func).rpartition(".")[2] == PACKING
    ]
    here = [call for call in calls if module.function_of(call) is module.function_of(node)]
    given = [call.args[1] if len(call.args) > 1 else module.keyword(call, "lengths") for call in here]
    return {inner.id for inner in given if isinstance(inner, ast.Name)}


def may_wait(module: Module, read: Read) -> bool:
    """Whether a read could be the one that a trace saw: its subject is a tensor or unknown, and not one that was copied.

    Where a file names no device its tensors lie in the host's memory, and reading them costs time all the same.
    """
    if read.subject is None:
        return True
    value = module.value_of(read.subject)
    return value.kind in {Kind.TENSOR, Kind.UNKNOWN} and (value.device != "cpu" or not uses_device(module))


@lru_cache(maxsize=4)
def uses_device(module: Module) -> bool:
    """Whether a file speaks of devices at all."""
    return OF_DEVICES.search(module.text) is not None


def depth(module: Module, read: Read) -> int:
    """Loops and comprehensions around a read, within its function."""
    comprehensions = sum(
        isinstance(above, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp)
        for above in module.ancestors(read.node)
    )
    return len(module.loops_around(read.node)) + comprehensions


def scalar_reads(module: Module) -> Iterator[Read]:
    """`t.item()`, `t.tolist()`, `float(t)`, `int(t)`, `math.isnan(t)`."""
    for call in module.method_calls("item", "tolist"):
        if not call.args and not call.keywords:
            yield read_of(module, call, receiver(call))
    for call in module.calls(*CONVERSIONS):
        if len(call.args) == 1 and not isinstance(call.args[0], ast.Starred):
            yield read_of(module, call, call.args[0])


def copies_to_host(module: Module) -> Iterator[Read]:
    """`t.cpu()`, `t.numpy()`, `t.to("cpu")`, `numpy.asarray(t)`."""
    for call in module.method_calls("cpu", "numpy"):
        yield read_of(module, call, receiver(call))
    for call in module.method_calls("to"):
        if goes_to_cpu(module, call) and not is_non_blocking(module, call):
            yield read_of(module, call, receiver(call))
    for call in module.calls(*ARRAYS):
        if call.args and not isinstance(call.args[0], ast.Starred):
            yield read_of(module, call, call.args[0])


def synchronisations(module: Module) -> Iterator[Read]:
    """`torch.cuda.synchronize()`, `stream.synchronize()`, `event.synchronize()`."""
    calls = list(module.calls(*SYNCHRONIZE))
    for call in calls:
        yield Read(call, None, one_line(module.source(call)))
    for call in module.method_calls("synchronize"):
        if call not in calls and module.name_of(call.func) is None and not call.args:
            yield Read(call, None, one_line(module.source(call)))


def goes_to_cpu(module: Module, call: ast.Call) -> bool:
    """Whether a call of `.to` names the CPU."""
    target = call.args[0] if call.args else module.keyword(call, "device")
    if target is None:
        return False
    if isinstance(target, ast.Call) and module.name_of(target.func) == "torch.device" and target.args:
        target = target.args[0]
    return module.literal(target) == "cpu"


def is_non_blocking(module: Module, call: ast.Call) -> bool:
    """Whether a copy is asked not to wait."""
    flag = module.keyword(call, "non_blocking")
    return flag is not None and module.literal(flag) is True


def receiver(call: ast.Call) -> ast.expr:
    """What a method is called on."""
    assert isinstance(call.func, ast.Attribute)
    return call.func.value


def read_of(module: Module, node: ast.expr, subject: ast.expr) -> Read:
    """A place with its text."""
    return Read(node, subject, one_line(module.source(node)))
