"""Reading a graph as torch prints it: Python with types as annotations, and the user's lines as comments.

What cannot be read is left out, line by line; nothing is raised.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from pyrometer.compiler.graphs.annotation import Value, read_annotation
from pyrometer.compiler.graphs.expressions import Expression, operator_name, read_expression, read_names
from pyrometer.compiler.graphs.record import GraphNode
from pyrometer.place import Place

_PLACE = re.compile(r"File: (?P<file>.+?):(?P<line>\d+) in (?P<function>.*?), code: ?(?P<source>.*)$")
_WORD = re.compile(r"\w+")
_ASSIGNED = re.compile(r"(?P<name>\w+)(?:: \"(?P<annotation>[^\"]*)\")? = (?P<rest>.*)")
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
OUTPUT = "output"
_NOWHERE = Place()


class Body(NamedTuple):
    """The graph itself, or the body of a subgraph."""

    name: str
    nodes: list[GraphNode]
    remarks: dict[str, str]
    """What AOTAutograd says of inputs and outputs, by name: `PlainAOTInput(idx=0)`. An output's stands under `output:<name>`."""


class _Statement(NamedTuple):
    indent: int
    code: str
    remarks: dict[str, str]


def read_bodies(text: str) -> list[Body]:
    """The graph, then its subgraphs, from the text of a graph module.

    >>> text = '''
    ... class GraphModule(torch.nn.Module):
    ...     def forward(self, L_x_: "f32[4, 4][4, 1]cpu"):
    ...         l_x_ = L_x_
    ...         # File: model.py:3 in forward, code: return x.sin()
    ...         sin: "f32[4, 4][4, 1]cpu" = l_x_.sin();  l_x_ = None
    ...         return (sin,)'''
    >>> [(node.name, node.op, node.target, node.inputs, node.line) for node in read_bodies(text)[0].nodes]
    [('l_x_', 'input', 'L_x_', [], 0), ('sin', 'call', 'Tensor.sin', ['l_x_'], 3), ('output', 'output', '', ['sin'], 0)]
    """
    readers, open_bodies = list[_BodyReader](), list[tuple[int, _BodyReader]]()
    for statement in _statements(text):
        while open_bodies and open_bodies[-1][0] >= statement.indent:
            open_bodies.pop()
        if statement.code.startswith("class "):
            name = statement.code[6:].partition("(")[0].strip()
            reader = _BodyReader(".".join([*(outer.name for _, outer in open_bodies[1:]), name]))
            readers.append(reader)
            open_bodies.append((statement.indent, reader))
            continue
        if not open_bodies:
            readers.append(_BodyReader(""))
            open_bodies.append((-1, readers[-1]))
        open_bodies[-1][1].take(statement)
    return [reader.body() for reader in readers]


class _BodyReader:
    """Reads the statements of one body."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: dict[str, GraphNode] = {}
        self._variables: dict[str, str] = {}
        """Names of nodes by the variables that hold them."""
        self._renamed: dict[str, str] = {}
        self._taken: set[str] = set()
        self._remarks: dict[str, str] = {}
        self._place = _NOWHERE

    def body(self) -> Body:
        def final(name: str) -> str:
            return self._renamed.get(name, name)

        nodes = [
            replace(node, name=final(node.name), inputs=[final(name) for name in node.inputs])
            for node in self._nodes.values()
        ]
        return Body(self.name, nodes, {final(name): remark for name, remark in self._remarks.items()})

    def take(self, statement: _Statement) -> None:
        code = statement.code
        if code.startswith("#"):
            self._place = _read_place(code)
            return
        try:
            # A signature stands alone: an empty body makes it whole.
            parsed = ast.parse(f"{code} pass" if code.startswith("def ") else code).body
            for part in _joined(parsed):
                self._take_parsed(part, statement)
        except _UNREADABLE:
            self._salvage(code)

    def _take_parsed(self, part: ast.stmt | tuple[ast.stmt, ast.stmt], statement: _Statement) -> None:
        if isinstance(part, ast.FunctionDef):
            self._take_signature(part, statement.remarks)
        elif isinstance(part, ast.Return):
            inputs = read_names(part, self._variables)
            self._add(GraphNode(name=OUTPUT, op="output", inputs=list(inputs)))
            self._remarks |= {
                f"output:{self._variables.get(name, name)}": remark
                for name, remark in statement.remarks.items()
            }
        elif isinstance(part, tuple):
            changed, assigned = part
            inputs = read_names(changed, self._variables)
            self._add_assigned(assigned, Expression("call", _change(changed), inputs))
        elif isinstance(part, (ast.Assign, ast.AnnAssign)):
            self._take_assignment(part, statement)

    def _take_signature(self, signature: ast.FunctionDef, remarks: dict[str, str]) -> None:
        for argument in (*signature.args.posonlyargs, *signature.args.args, *signature.args.kwonlyargs):
            if argument.arg != "self":
                self._add_input(argument.arg, _value(argument.annotation))
        self._remarks |= remarks

    def _take_assignment(self, part: ast.Assign | ast.AnnAssign, statement: _Statement) -> None:
        target = part.target if isinstance(part, ast.AnnAssign) else part.targets[0]
        value = part.value
        if isinstance(target, ast.Tuple):  # inputs that arrive as a tree: their names replace the trees
            self._take_flattened(target, value)
        elif isinstance(target, ast.Name) and value is None:
            self._add_input(
                target.id, _value(part.annotation) if isinstance(part, ast.AnnAssign) else Value()
            )
            self._remarks |= statement.remarks
        elif isinstance(target, ast.Name) and isinstance(value, ast.Name):
            self._alias(value.id, target.id)
        elif value is not None and not (isinstance(value, ast.Constant) and value.value is None):
            self._add_assigned(part, read_expression(value, self._variables))

    def _take_flattened(self, target: ast.Tuple, value: ast.expr | None) -> None:
        names = [element.id for element in target.elts if isinstance(element, ast.Name)]
        for tree in read_names(value, self._variables) if value is not None else ():
            if tree not in names and self._nodes[tree].op == "input":
                del self._nodes[tree], self._variables[tree]
        for name in names:
            if name not in self._variables:
                self._add_input(name, Value())

    def _alias(self, variable: str, name: str) -> None:
        """One value under two names. Dynamo's inputs begin so, `l_x_ = L_x_`: the second is then the node's name."""
        node = self._nodes.get(self._variables.get(variable, ""))
        if node is None:
            return
        if node.op == "input" and node.name not in self._renamed and self._is_free(name):
            self._renamed[node.name] = name
            self._taken.add(name)
        self._variables[name] = node.name

    def _add_assigned(self, part: ast.stmt, expression: Expression) -> None:
        target = part.target if isinstance(part, ast.AnnAssign) else getattr(part, "targets", [None])[0]
        if not isinstance(target, ast.Name):
            return
        value = _value(part.annotation) if isinstance(part, ast.AnnAssign) else Value()
        self._add(_node(target.id, expression, value, self._place))

    def _add_input(self, name: str, value: Value) -> None:
        self._add(_node(name, Expression("input", name, ()), value, _NOWHERE))

    def _add(self, node: GraphNode) -> None:
        """Names are unique in what torch prints; where they are not, the later node gets another one."""
        variable, number = node.name, 1
        while not self._is_free(node.name):
            number += 1
            node = replace(node, name=f"{variable}:{number}")
        self._nodes[node.name] = node
        self._taken.add(node.name)
        self._variables[variable] = node.name

    def _is_free(self, name: str) -> bool:
        return name not in self._taken

    def _salvage(self, code: str) -> None:
        """A node from a line that is no Python, such as one with the address of an object in it."""
        match = _ASSIGNED.match(code)
        if match is None:
            return
        rest = match["rest"].partition(";")[0]
        words = dict.fromkeys(
            self._variables[word] for word in _WORD.findall(rest) if word in self._variables
        )
        target = rest.partition("(")[0].strip().removeprefix("torch.ops.")
        expression = Expression("call", target, tuple(words))
        self._add(_node(match["name"], expression, read_annotation(match["annotation"] or ""), self._place))


def _node(name: str, expression: Expression, value: Value, place: Place) -> GraphNode:
    return GraphNode(
        name=name,
        op=expression.op,
        target=expression.target,
        inputs=list(expression.inputs),
        dtype=value.dtype,
        shape=list(value.shape),
        stride=list(value.stride),
        device=value.device,
        num_bytes=value.num_bytes,
        symbol=value.symbol,
        module=expression.module,
        file=place.path,
        line=place.line_number,
        source=place.source or "",
        function=place.function_name,
    )


def _value(annotation: ast.expr | None) -> Value:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return read_annotation(annotation.value)
    return Value()


def _joined(parts: list[ast.stmt]) -> Iterator[ast.stmt | tuple[ast.stmt, ast.stmt]]:
    """The statements of a line; `x += y;  iadd = x` is one node, and so is `x[0] = y;  setitem = x`."""
    changed: ast.stmt | None = None
    for part in parts:
        if _change(part):
            changed = part
        elif changed is not None:
            yield changed, part
            changed = None
        else:
            yield part


def _change(part: ast.stmt) -> str:
    """The operator with which a statement changes a value in place; empty where it changes none."""
    if isinstance(part, ast.AugAssign):
        return operator_name(part.op, in_place=True)
    is_item = isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Subscript)
    return "operator.setitem" if is_item else ""


def _read_place(comment: str) -> Place:
    match = _PLACE.search(comment)
    if match is None:
        return _NOWHERE
    return Place(
        file=match["file"], line=int(match["line"]), function=match["function"], source=match["source"]
    )


def _statements(text: str) -> Iterator[_Statement]:
    """Statements and comments; a signature or a result over several lines as one, with the remarks behind its parts."""
    lines = iter(text.split("\n"))
    for line in lines:
        code = line.strip()
        if not code:
            continue
        indent = len(line) - len(line.lstrip())
        gathered, remarks = list[str](), dict[str, str]()
        if not code.startswith("#"):
            code = _without_remark(code, remarks)
            while code.endswith(("(", "([")) or gathered:
                gathered.append(code)
                if code.startswith((")", "]")) and len(gathered) > 1:
                    break
                following = next(lines, None)
                if following is None:
                    break
                code = _without_remark(following.strip(), remarks)
            code = " ".join(gathered) or code
        yield _Statement(indent, code, remarks)


def _without_remark(code: str, remarks: dict[str, str]) -> str:
    kept, mark, remark = code.partition("  # ")
    name = _WORD.match(kept)
    if mark and name is not None:
        remarks.setdefault(name[0], remark.strip())  # an output that is also saved stands first as an output
    return kept.rstrip() if mark else code
