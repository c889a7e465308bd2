"""What the source distribution holds: all that the README leads to and that its tests need."""

from __future__ import annotations

import re
from pathlib import Path

from sgmon.tables import tomllib

ROOT = Path(__file__).resolve().parents[2]


def included() -> set[str]:
    """Names at the top of the repository that go into it; pyproject.toml always does."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return {name.lstrip("/") for name in project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]}


def test_all_that_is_named_is_there() -> None:
    assert all((ROOT / name).exists() for name in included())


def test_what_the_readme_leads_to() -> None:
    links = re.findall(r'(?:\]\(|src="|srcset=")([^)"#]+)', (ROOT / "README.md").read_text())
    wanted = {link.split("/")[0] for link in links if not re.match(r"\w+:", link)}
    assert {"docs", "screenshots", "SECURITY.md"} <= wanted <= included()


def test_what_the_tests_import_and_what_runs_them() -> None:
    words = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    imported = set(re.findall(r"^\s*(?:from|import) (\w+)", words, re.MULTILINE))
    ours = {name for name in imported if (ROOT / name).is_dir()}
    assert {"benchmarks", "tools", "tests"} <= ours <= included()
    assert {"Makefile", "requirements.lock", ".ci"} <= included()
