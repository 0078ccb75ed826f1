"""Datasets in source text: their classes, and what they do for every item."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyrometer.rules.rule import Module
from pyrometer.source.value import Kind

DECODERS = {
    "PIL.Image.open": "PIL.Image.open",
    "cv2.imread": "cv2.imread",
    "cv2.imdecode": "cv2.imdecode",
    "imageio.imread": "imageio.imread",
    "imageio.v2.imread": "imageio.imread",
    "imageio.v3.imread": "imageio.imread",
    "skimage.io.imread": "skimage.io.imread",
    "torchvision.io.read_image": "torchvision.io.read_image",
    "torchvision.io.decode_image": "torchvision.io.decode_image",
    "torchvision.io.decode_jpeg": "torchvision.io.decode_jpeg",
    "torchvision.io.read_video": "torchvision.io.read_video",
    "torchaudio.load": "torchaudio.load",
    "librosa.load": "librosa.load",
    "soundfile.read": "soundfile.read",
    "nibabel.load": "nibabel.load",
    "pydicom.dcmread": "pydicom.dcmread",
    "numpy.load": "numpy.load",
    "torch.load": "torch.load",
    "pandas.read_csv": "pandas.read_csv",
    "pandas.read_parquet": "pandas.read_parquet",
}
"""Functions that open and decode a file, and take milliseconds."""

DECODING_DATASETS = (
    "torchvision.datasets.ImageFolder",
    "torchvision.datasets.DatasetFolder",
    "torchvision.datasets.ImageNet",
    "torchvision.datasets.CocoDetection",
    "torchvision.datasets.CocoCaptions",
    "torchvision.datasets.VOCDetection",
    "torchvision.datasets.VOCSegmentation",
    "torchvision.datasets.CelebA",
    "torchvision.datasets.Places365",
    "torchvision.datasets.Food101",
    "torchvision.datasets.Flowers102",
    "torchvision.datasets.OxfordIIITPet",
    "torchvision.datasets.Cityscapes",
)
"""Datasets of torchvision that decode a file for every item."""


def item_getters(module: Module) -> Iterator[tuple[ast.ClassDef, ast.FunctionDef]]:
    """The datasets of a file with their `__getitem__`."""
    for function in module.nodes(ast.FunctionDef):
        owner = module.class_of(function)
        if function.name == "__getitem__" and owner is not None and _is_dataset(module, owner):
            yield owner, function


def dataset_class(module: Module, dataset: ast.expr | None) -> ast.ClassDef | str | None:
    """The class of a dataset: of this file, or a dotted name; also through the name that holds it."""
    node = _made(module, dataset)
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Name):
        for owner in module.nodes(ast.ClassDef):
            if owner.name == node.func.id:
                return owner
    return module.name_of(node.func)


def creation_of(module: Module, dataset: ast.expr | None) -> ast.Call | None:
    """The call that makes a dataset."""
    node = _made(module, dataset)
    return node if isinstance(node, ast.Call) else None


def decoding_call(module: Module, dataset: ast.expr | None) -> str | None:
    """What a dataset calls to decode each item, in words; `None` where it does not, or nothing is known of it."""
    found = dataset_class(module, dataset)
    if isinstance(found, str):
        return f"the decoding by {found.rpartition('.')[2]}" if found in DECODING_DATASETS else None
    if found is None:
        return None
    for owner, function in item_getters(module):
        if owner is found:
            return next(
                (
                    f"the {name}"
                    for node in _with_methods(module, owner, function)
                    if (name := _decoder(module, node))
                ),
                None,
            )
    return None


def _decoder(module: Module, call: ast.Call) -> str | None:
    return DECODERS.get(module.name_of(call.func) or "")


def _with_methods(module: Module, owner: ast.ClassDef, function: ast.FunctionDef) -> Iterator[ast.Call]:
    """The calls in a method, and in the methods of the same class that it calls."""
    methods = {
        statement.name: statement for statement in owner.body if isinstance(statement, ast.FunctionDef)
    }
    free = {
        statement.name: statement for statement in module.tree.body if isinstance(statement, ast.FunctionDef)
    }
    seen: set[str] = set()
    waiting = [function]
    while waiting:
        for node in ast.walk(waiting.pop()):
            if not isinstance(node, ast.Call):
                continue
            yield node
            called = node.func
            if (
                isinstance(called, ast.Attribute)
                and isinstance(called.value, ast.Name)
                and called.value.id == "self"
            ):
                name, pool = called.attr, methods
            elif isinstance(called, ast.Name):
                name, pool = called.id, free
            else:
                continue
            if name in pool and name not in seen:
                seen.add(name)
                waiting.append(pool[name])


PARTS = ("torch.utils.data.random_split", "torch.utils.data.Subset")
"""What gives parts of a dataset, which are taken from it."""


def _made(module: Module, dataset: ast.expr | None, depth: int = 4) -> ast.expr | None:
    """What makes a dataset: through names, parts of it, and parameters, where all calls give what is made in one way."""
    if depth and isinstance(dataset, ast.Name):
        values = module.assignments(dataset.id, dataset)
        if values:
            return _made(module, values[0], depth - 1) if len(values) == 1 else None
        given = [_made(module, value, depth - 1) for value in _given(module, dataset)]
        makers = {ast.dump(made.func) if isinstance(made, ast.Call) else "" for made in given}
        return given[0] if len(makers) == 1 else None
    if depth and isinstance(dataset, ast.Call) and dataset.args and module.name_of(dataset.func) in PARTS:
        return _made(module, dataset.args[0], depth - 1)
    return dataset


def _given(module: Module, parameter: ast.Name) -> list[ast.expr]:
    """What calls in this file give for a parameter of the function around a name."""
    function = module.function_of(parameter)
    if not isinstance(function, ast.FunctionDef):
        return []
    names = [argument.arg for argument in [*function.args.posonlyargs, *function.args.args]]
    given = []
    for call in module.nodes(ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id == function.name and parameter.id in names:
            place = names.index(parameter.id)
            value = module.keyword(call, parameter.id) or (
                call.args[place] if place < len(call.args) else None
            )
            given += [] if value is None else [value]
    return given


def _is_dataset(module: Module, owner: ast.ClassDef) -> bool:
    for base in owner.bases:
        name = module.name_of(base) or ""
        if name.startswith(("torch.utils.data.", "torchvision.datasets.")):
            return True
        if isinstance(base, ast.Name) and base.id.endswith("Dataset"):
            return True
        if isinstance(base, ast.Subscript) and (module.name_of(base.value) or "").startswith(
            "torch.utils.data."
        ):
            return True
    return module.value_of(owner.bases[0]).kind is Kind.DATASET if owner.bases else False
