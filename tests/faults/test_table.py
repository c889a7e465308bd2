"""docs/faults.md names tests that exist, and every test of this folder."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_row_has_its_test_and_every_test_its_row() -> None:
    named = set(NAMED.findall((ROOT / "docs" / "faults.md").read_text("utf-8")))
    assert len(named) >= 80
    missing = [f"{file}::{name}" for file, name in named if f"def {name}(" not in (ROOT / file).read_text("utf-8")]
    assert not missing
    here = {
        (f"tests/faults/{file.name}", name)
        for file in Path(__file__).parent.glob("test_*.py")
        if file != Path(__file__)
        for name in re.findall(r"^(?:async )?def (test_\w+)\(", file.read_text("utf-8"), re.MULTILINE)
    }
    assert not here - named
