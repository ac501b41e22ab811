"""State is changed by the object that owns it: nobody assigns to another object's attributes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.source import MODULES, parse

OWNERS = ("ids/engine/", "ids/state/")
CHANGES = {"append", "extend", "insert", "add", "discard", "remove", "pop", "clear", "update"}
CORES = {"core", "_core"}


def targets(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement assigns to or deletes, tuples taken apart, subscripts taken off."""
    found: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        found = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        found = [node.target]
    while found:
        target = found.pop()
        if isinstance(target, ast.Tuple | ast.List):
            found += target.elts
        elif isinstance(target, ast.Subscript | ast.Starred):
            found.append(target.value)
        else:
            yield target


def made_here(function: ast.AST) -> set[str]:
    """The names under which a class method makes an object of its class, and ``self``."""
    if not isinstance(function, ast.FunctionDef):
        return set()
    if not any(isinstance(d, ast.Name) and d.id == "classmethod" for d in function.decorator_list):
        return {"self"}
    makes = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    return {
        target.id
        for node in makes
        if isinstance(node.value, ast.Call) and "cls" in ast.unparse(node.value.func)
        for target in targets(node)
        if isinstance(target, ast.Name)
    }


def foreign_assignments(tree: ast.AST, own: set[str]) -> Iterator[str]:
    """Assignments to an attribute of anything but the object itself."""
    for node in ast.iter_child_nodes(tree):
        inner = made_here(node) if isinstance(node, ast.FunctionDef) and not own else own
        for target in targets(node):
            if not isinstance(target, ast.Attribute) or target.attr == "daemon":
                continue  # of a thread: there is no other way to say it
            if not (isinstance(target.value, ast.Name) and target.value.id in own):
                yield f"{target.lineno}: {ast.unparse(target)}"
        yield from foreign_assignments(node, inner)


def changed_parts(tree: ast.AST) -> Iterator[str]:
    """Lists, sets and dicts of a core that are changed by their own methods."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        part = node.func.value
        if node.func.attr in CHANGES and isinstance(part, ast.Attribute):
            core = part.value
            name = core.attr if isinstance(core, ast.Attribute) else getattr(core, "id", "")
            if name in CORES:
                yield f"{node.lineno}: {ast.unparse(node.func)}"


def test_an_object_alone_changes_its_attributes() -> None:
    faults = [
        f"{module}:{fault}"
        for module in MODULES
        if module.startswith(OWNERS)
        for fault in foreign_assignments(parse(module), set())
    ]
    assert not faults


def test_nobody_changes_the_parts_of_a_core() -> None:
    faults = [f"{module}:{fault}" for module in MODULES for fault in changed_parts(parse(module))]
    assert not faults


def test_what_is_refused_is_found() -> None:
    planted = ast.parse(
        "def grow(core):\n"
        "    core.rows += 1\n"
        "    core.measures[0].window, x = 1, 2\n"
        "    core.provisional.clear()\n"
        "class Core:\n"
        "    @classmethod\n"
        "    def of(cls):\n"
        "        made = cls()\n"
        "        made.rows = 1\n"
        "    def add(self):\n"
        "        self.rows = 1\n"
        "        self.part.rows = 1\n"
    )
    found = sorted(foreign_assignments(planted, set()))
    assert found == ["12: self.part.rows", "2: core.rows", "3: core.measures[0].window"]
    assert list(changed_parts(planted)) == ["4: core.provisional.clear"]
