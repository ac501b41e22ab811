"""Rules for every module, a walk over the tree each: a failure lists all that break the rule."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from pathlib import PurePosixPath

from tests.architecture.source import MODULES, parse

FUNCTION_LINES = 60
# Names that say nothing, and gerunds, which say what is done but not what is there.
NAMELESS = re.compile(r"utils?|helpers?|misc|common|\w*ing")


def test_a_function_fits_on_the_screen() -> None:
    long = [
        f"{module}: {node.name}"
        for module in MODULES
        for node in ast.walk(parse(module))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno + 1 > FUNCTION_LINES
    ]
    assert not long, f"more than {FUNCTION_LINES} lines; divide them"


def test_a_module_is_named_by_a_noun() -> None:
    assert len(MODULES) > 10
    nameless = [
        module
        for module in MODULES
        for word in module.removesuffix(".py").split("/")
        if NAMELESS.fullmatch(word)
    ]
    assert not nameless


def test_a_file_name_is_used_once() -> None:
    names = Counter(PurePosixPath(module).name for module in MODULES)
    names.pop("__init__.py")
    assert not [name for name, times in names.items() if times > 1]


def test_a_subpackage_exports_no_name_of_its_own_modules() -> None:
    """``from ids.a import b`` would give the function or the module, by what was imported first."""
    clashes = []
    for module in MODULES:
        path = PurePosixPath(module)
        if path.name == "__init__.py" and path.parent.name != "ids":
            below = {p.stem for p in map(PurePosixPath, MODULES) if p.parent == path.parent}
            exported = getattr(
                importlib.import_module(str(path.parent).replace("/", ".")), "__all__", ()
            )
            clashes += [f"{path.parent}: {name}" for name in below & {*exported}]
    assert not clashes


def test_a_module_says_what_it_is() -> None:
    assert not [module for module in MODULES if not ast.get_docstring(parse(module))]


def test_a_subpackage_lists_what_it_offers_and_offers_what_it_lists() -> None:
    faults = []
    for module in MODULES:
        if not module.endswith("__init__.py"):
            continue
        name = module.removesuffix("/__init__.py").replace("/", ".")
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
