"""The same file is opened for every item.

## What it does
Finds `__getitem__` of datasets that opens an HDF5, zip, tar, LMDB or SQLite file, or reads a whole table or array, from a path that does not
depend on the index.

## Why it costs
Opening parses the header or the directory of the file, and reading a whole table gives one row of it, for every item. On two CPU cores
opening a zip archive of 2,000 members took 7.5 ms, reading one small member from it while it is open 13 µs.

## Example
```python
import zipfile

import torch
from torch.utils.data import Dataset


class Archive(Dataset):
    def __init__(self, path: str, names: list[str]) -> None:
        self.path, self.names = path, names

    def __getitem__(self, index: int) -> torch.Tensor:
        with zipfile.ZipFile(self.path) as archive:
            return torch.frombuffer(bytearray(archive.read(self.names[index])), dtype=torch.uint8)
```

## Use instead
```python
import zipfile

import torch
from torch.utils.data import Dataset


class Archive(Dataset):
    def __init__(self, path: str, names: list[str]) -> None:
        self.path, self.names = path, names
        self.archive = None

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.archive is None:  # each worker opens it for itself
            self.archive = zipfile.ZipFile(self.path)
        return torch.frombuffer(bytearray(self.archive.read(self.names[index])), dtype=torch.uint8)
```

## Fix safety
Left to a person: an open file must not be shared by processes, so that each worker has to open its own, after it was started.

## References
- PyTorch documentation, torch.utils.data, multi-process data loading: https://docs.pytorch.org/docs/stable/data.html
- Python documentation, zipfile: https://docs.python.org/3/library/zipfile.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.data.patterns.datasets import item_getters
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Module, declare

RULE = declare(code="PYR313", severity="warning", fix_class="semantic")

OPENERS = frozenset(
    {
        "h5py.File",
        "tables.open_file",
        "zipfile.ZipFile",
        "tarfile.open",
        "tarfile.TarFile",
        "lmdb.open",
        "lmdb.Environment",
        "sqlite3.connect",
        "netCDF4.Dataset",
        "pandas.read_csv",
        "pandas.read_parquet",
        "pandas.read_hdf",
        "numpy.loadtxt",
        "numpy.genfromtxt",
    }
)


@RULE.in_source
def find(module: Module) -> Matches:
    """Openings in `__getitem__` that nothing makes conditional, of a path that is the same for all items."""
    for _, function in item_getters(module):
        names = [arg.arg for arg in function.args.args]
        if len(names) < 2:
            continue
        varying = _varying(function, names[1])
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            if (
                module.name_of(call.func) not in OPENERS
                or not call.args
                or _is_conditional(module, call, function)
            ):
                continue
            path = call.args[0]
            used = {node.id for node in ast.walk(path) if isinstance(node, ast.Name)}
            if not used & varying and used <= {"self"} | _imports(module):
                yield match(
                    call,
                    f"`{module.source(path)}` is opened anew for every item",
                    advice="Open it once per worker: on first use, kept in an attribute that __init__ sets to None.",
                )


def _varying(function: ast.FunctionDef, index: str) -> set[str]:
    """The names that depend on the index: all that the function assigns, and the index itself."""
    stored = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return stored | {index}


def _imports(module: Module) -> set[str]:
    """Names of the file's own constants and imports, which are the same for all items."""
    return {
        target.id
        for statement in module.tree.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def _is_conditional(module: Module, call: ast.Call, function: ast.FunctionDef) -> bool:
    for above in module.ancestors(call):
        if above is function:
            return False
        if isinstance(above, ast.If | ast.IfExp | ast.BoolOp | ast.ExceptHandler):
            return True
    return False
