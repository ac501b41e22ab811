from __future__ import annotations

import ast
import importlib

import pytest

from tests.house.source import MODULES, parse

FUNCTION_LINES = 60
NAMELESS = {"utils", "util", "helpers", "helper", "misc", "common"}


def test_there_is_a_source_to_judge() -> None:
    assert len(MODULES) > 10


@pytest.mark.parametrize("module", MODULES)
def test_a_function_fits_on_the_screen(module: str) -> None:
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= FUNCTION_LINES, f"{module}: {node.name} has {lines} lines; divide it"


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_named_for_what_it_does(module: str) -> None:
    assert not NAMELESS & set(module.removesuffix(".py").split("/"))


@pytest.mark.parametrize("module", MODULES)
def test_a_module_says_what_it_is(module: str) -> None:
    assert ast.get_docstring(parse(module)), f"{module} has no docstring"


@pytest.mark.parametrize("module", MODULES)
def test_a_module_lists_what_it_offers_and_offers_what_it_lists(module: str) -> None:
    name = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    body = [node for node in parse(module).body if not isinstance(node, ast.Expr)]
    if not body and module.endswith("__init__.py"):
        return  # a room with only a sign on its door offers nothing
    offered = getattr(importlib.import_module(name), "__all__", None)
    assert offered is not None, f"{module} has no __all__"
    assert len(set(offered)) == len(offered)
    missing = [each for each in offered if not hasattr(importlib.import_module(name), each)]
    assert not missing, f"{module} lists {missing} in __all__ and does not have them"
