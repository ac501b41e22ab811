"""Every error message of the package in one file, ``tests/golden/error_messages.txt``.

``python -m tests.architecture.test_error_messages`` writes the file anew. What a message fills in
is shown in braces, as in the source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.source import MODULES, ROOT, parse

GOLDEN = ROOT / "tests" / "golden" / "error_messages.txt"
# what errors are made of, besides the classes of ids.errors
BUILTIN = {"AttributeError", "ImportError", "TypeError", "ValueError"}


def family() -> set[str]:
    """The error classes of the package."""
    return {
        node.name for node in ast.walk(parse("ids/errors.py")) if isinstance(node, ast.ClassDef)
    }


def text_of(node: ast.expr) -> str:
    """A string expression as it is written, without its quotes."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(text_of, parts))
        case ast.FormattedValue(value=value):
            return f"{{{ast.unparse(value)}}}"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return text_of(left) + text_of(right)
        case ast.IfExp(body=body, orelse=other):
            return f"{{{text_of(body)} | {text_of(other)}}}"
    return f"{{{ast.unparse(node)}}}"


def messages() -> Iterator[str]:
    """A line for each error that the package makes: module, class, then the texts it is given."""
    known = family() | BUILTIN
    for module in MODULES:
        found = set()
        for node in ast.walk(parse(module)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
                if node.func.id in known and given:
                    texts = [text for text in map(text_of, given) if text != "{None}"]
                    found.add(f"{node.func.id}: {' | '.join(texts)}")
        yield from (f"{module}: {line}".replace("\n", "\\n") for line in sorted(found))


def written() -> str:
    """The golden file's text."""
    return "".join(f"{line}\n" for line in messages())


def test_every_error_message_is_in_the_golden_file() -> None:
    assert GOLDEN.read_text(encoding="utf-8") == written(), (
        "review the wording, then run python -m tests.architecture.test_error_messages"
    )


def test_a_message_is_read_however_it_is_put_together() -> None:
    made = ast.parse('E(f"no {x!r} here" + (" at all" if y else "") + z)').body[0]
    assert isinstance(made, ast.Expr) and isinstance(made.value, ast.Call)
    assert text_of(made.value.args[0]) == "no {x} here{ at all | }{z}"


if __name__ == "__main__":
    GOLDEN.write_text(written(), encoding="utf-8")
