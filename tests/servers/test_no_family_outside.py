"""Nothing outside sgmon/servers names a family of servers: no name, and no string that is not documentation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sgmon.servers import names, registry
from sgmon.servers.registry import families

ROOT = Path(__file__).parents[2]
WORDS = re.compile("|".join({"vllm", *(family.name for family in families())}), re.IGNORECASE)
#: simulated servers are of a family; a family's own folder is where its name belongs
EXEMPT = ("sgmon/servers/", "sgmon/demo/")
#: file -> why it may
ALLOWED = {
    "sgmon/model/server.py": "recordings from before there were families are of this one",
}


def _files() -> Iterator[Path]:
    for package in ("sgmon", "widgets", "tui_app"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if not str(path.relative_to(ROOT)).startswith(EXEMPT):
                yield path


def _docstrings(tree: ast.AST) -> set[int]:
    """ids of the nodes that are docstrings, or strings that stand alone as one."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def _namings(path: Path) -> list[str]:
    """ "line: text" of every name and string of a file that names a family."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = _docstrings(tree)
    found = []
    for node in ast.walk(tree):
        texts: list[str] = []
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in documentation:
            texts = [node.value if isinstance(node.value, str) else node.value.decode("latin-1")]
        elif isinstance(node, ast.Name):
            texts = [node.id]
        elif isinstance(node, ast.Attribute):
            texts = [node.attr]
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            texts = [node.name]
        elif isinstance(node, ast.arg):
            texts = [node.arg]
        elif isinstance(node, ast.alias):
            texts = [node.name, node.asname or ""]
        elif isinstance(node, ast.ImportFrom):
            texts = [node.module or ""]
        elif isinstance(node, ast.keyword):
            texts = [node.arg or ""]
        found += [f"{node.lineno}: {text[:80]}" for text in texts if WORDS.search(text)]  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("path", [pytest.param(p, id=str(p.relative_to(ROOT))) for p in _files()])
def test_no_family_is_named(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    found = _namings(path)
    if name in ALLOWED:
        assert found, f"{name} names no family any more: take it off the list"
    else:
        assert not found, f"{name} names a family: {found}"


def test_a_naming_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text('"""Of SGLang."""\n\n\ndef of_vllm() -> str:\n    """As SGLang."""\n    return f"{1} SGLang"\n')
    assert _namings(path) == ["4: of_vllm", "6:  SGLang"]


def test_the_names_of_a_first_frame_are_those_of_the_families() -> None:
    assert names.labels() == " or ".join(family.label for family in registry.families())
    assert names.start_command() == registry.families()[0].start_command
