from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

import ids
from ids.cli.app import app
from tests.architecture.source import MODULES, ROOT, documents, parse

TYPERS_OWN = {"--help", "--install-completion", "--show-completion"}


def test_every_public_name_is_in_the_documents() -> None:
    text = documents()
    missing = [
        name
        for name in getattr(ids, "__all__", ())
        if not name.startswith("__") and not re.search(rf"\b{re.escape(name)}\b", text)
    ]
    assert not missing, f"public, and nowhere in README.md or docs/: {missing}"


def options(command: Any, path: str = "ids") -> Iterator[tuple[str, str]]:
    """Every visible option of a click command and of those under it, with where it belongs."""
    for parameter in command.params:
        if parameter.param_type_name == "option" and not parameter.hidden:
            yield path, max(parameter.opts, key=len)
    for name, under in getattr(command, "commands", {}).items():
        if not under.hidden:
            yield from options(under, f"{path} {name}")


def test_every_option_of_the_command_line_is_in_the_documents() -> None:
    text = documents("README.md", "docs/cli.md")
    missing = [
        f"{path} {option}"
        for path, option in options(command_line())
        if option not in TYPERS_OWN
        and not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text)
    ]
    assert not missing, f"nowhere in README.md or docs/cli.md: {missing}"


def command_line() -> Any:
    """The click command behind ``ids``."""
    return get_command(app)


def test_errors_outside_the_command_line_do_not_name_its_options() -> None:
    known = {option for _, option in options(command_line())}
    for module in MODULES:
        if module.startswith("ids/cli/"):
            continue
        for node in ast.walk(parse(module)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = known & set(re.findall(r"--[a-z][a-z-]+", node.value))
                assert not named, f"{module}, line {node.lineno}: {named}; say the argument"


def test_the_files_that_documents_name_exist() -> None:
    named = re.findall(r"\b(src/ids/[\w/.-]*[\w/])", documents())
    assert len(named) > 20
    assert not [name for name in named if not (ROOT / name).exists()]


def test_the_modules_that_documents_name_exist() -> None:
    modules = {module.removesuffix(".py").replace("/", ".") for module in MODULES}
    packages = {name.removesuffix(".__init__") for name in modules if name.endswith(".__init__")}
    for subpackage, name in re.findall(r"`ids\.([a-z]+)\.([a-z_]+)`", documents()):
        module = f"ids.{subpackage}.{name}"
        if f"ids.{subpackage}" in packages and module not in modules:
            exported = importlib.import_module(f"ids.{subpackage}").__all__
            assert name in exported, f"{module} is neither a module nor exported"
