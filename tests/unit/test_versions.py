"""The order of versions."""

from __future__ import annotations

import pytest

from sgmon.servers.sglang.health import ok_means_ready
from sgmon.versions import release


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.5.3.post3", (0, 5, 3, 3)),
        ("0.5.3rc1+cu128", (0, 5, 3, 0)),
        ("0.5", (0, 5, 0, 0)),
        ("0.4.10.post2", (0, 4, 10, 2)),
        ("torch", None),
        ("", None),
    ],
)
def test_release(version: str, expected: tuple[int, ...] | None) -> None:
    assert release(version) == expected


def test_when_a_200_proves_readiness() -> None:
    assert [ok_means_ready(v) for v in ("0.4.8", "0.4.9", "0.4.10.post2", "0.5.23", "", "0.3.9")] == [
        *(False, True, True, True, True, False),
    ]
