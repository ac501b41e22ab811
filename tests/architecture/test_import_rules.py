from __future__ import annotations

import tomllib
from typing import Any

from tests.architecture.source import MODULES, ROOT, imports, subpackages

RULES: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"][
    "importlinter"
]


def test_a_package_is_forbidden_to_all_of_ids_but_where_it_is_allowed() -> None:
    forbidding = [contract for contract in RULES["contracts"] if "forbidden_modules" in contract]
    assert forbidding
    for contract in forbidding:
        assert contract["source_modules"] == ["ids"], contract["id"]
        allowed = {
            line.split(" -> ")[0].split(".")[1] for line in contract.get("ignore_imports", ())
        }
        assert allowed < subpackages(), contract["id"]


def test_a_subpackage_is_imported_through_its_init_only() -> None:
    reached = []
    for module in MODULES:
        own = module.removesuffix(".py").split("/")[1]
        for line, name in imports(module):
            parts = name.split(".")
            if parts[0] == "ids" and len(parts) > 2 and parts[1] != own:
                reached.append(f"{module}, line {line}: {name}")
    assert not reached, "import these names from the subpackage, and export them there"
