"""The wording of every error, in one file, ``messages.txt``: as the source has it, then as read.

Other tests hold an error's class, its place in the script and the fact that it states. After a
deliberate change of the wording, ``python -m tests.golden.test_messages`` writes the file anew.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import MODULES, parse
from tests.query.test_mistakes import MISTAKES, refused

MESSAGES = Path(__file__).with_name("messages.txt")


def template(node: ast.expr) -> str:
    """The text that an expression gives, with ``{…}`` where it depends on the input."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(template, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return template(node.left) + template(node.right)
    return f"{{{ast.unparse(node.value if isinstance(node, ast.FormattedValue) else node)}}}"


def errors(module: str) -> Iterator[str]:
    """Each error that a module makes: its class, and its arguments that are not names alone."""
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Error") and node.args:
            told = [argument for argument in node.args if not isinstance(argument, ast.Name)]
            if told:
                yield f"{ast.unparse(node.func)}: {' | '.join(map(template, told))}"


def catalogue() -> str:
    """What ``messages.txt`` should hold."""
    parts = []
    for module in MODULES:
        lines = sorted(set(errors(module)))
        if lines:
            parts.append("\n".join([module, *(f"  {line}" for line in lines)]))
    parts += [f"{name}:\n  {refused(mistake)[0]}" for name, mistake in MISTAKES.items()]
    return "\n\n".join(parts) + "\n"


def test_the_wording_of_every_error_is_the_one_that_was_reviewed() -> None:
    assert MESSAGES.read_text(encoding="utf-8") == catalogue(), (
        "read the difference, then: python -m tests.golden.test_messages"
    )


if __name__ == "__main__":
    MESSAGES.write_text(catalogue(), encoding="utf-8")
