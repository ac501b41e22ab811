"""Rules for every module, a walk over the tree each: a failure lists all that break the rule."""

from __future__ import annotations

import ast
import importlib

from tests.house.source import MODULES, parse

FUNCTION_LINES = 60
NAMELESS = {"utils", "util", "helpers", "helper", "misc", "common"}


def test_a_function_fits_on_the_screen() -> None:
    long = [
        f"{module}: {node.name}"
        for module in MODULES
        for node in ast.walk(parse(module))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno + 1 > FUNCTION_LINES
    ]
    assert not long, f"more than {FUNCTION_LINES} lines; divide them"


def test_a_module_is_named_for_what_it_does() -> None:
    assert len(MODULES) > 10
    nameless = [name for name in MODULES if NAMELESS & set(name.removesuffix(".py").split("/"))]
    assert not nameless


def test_a_module_says_what_it_is() -> None:
    assert not [module for module in MODULES if not ast.get_docstring(parse(module))]


def test_a_module_lists_what_it_offers_and_offers_what_it_lists() -> None:
    faults = []
    for module in MODULES:
        body = [node for node in parse(module).body if not isinstance(node, ast.Expr)]
        if not body and module.endswith("__init__.py"):
            continue  # a docstring alone offers nothing
        name = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        loaded = importlib.import_module(name)
        offered = getattr(loaded, "__all__", None)
        if offered is None:
            faults.append(f"{module} has no __all__")
            continue
        if len(set(offered)) != len(offered):
            faults.append(f"{module} lists a name twice")
        faults += [
            f"{module} lists {each}, but lacks it" for each in offered if not hasattr(loaded, each)
        ]
    assert not faults
