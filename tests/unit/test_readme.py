"""The README lists the keys that the screen has."""

from __future__ import annotations

from tools import write_keys


def test_the_keys_are_current() -> None:
    text = write_keys.FILE.read_text(encoding="utf-8")
    assert write_keys.with_keys(text) == text, "run: python -m tools.write_keys"
