"""What sgmon brings along may be used: every licence is named, and none of them asks for sgmon's own source."""

from __future__ import annotations

import pytest

from tools.licences import Licence, brought


def test_every_dependency_has_a_licence_that_is_wanted() -> None:
    found = {one.name: one for one in brought()}
    assert {"textual", "msgspec", "httpx", "psutil", "packaging", "aiohttp", "rich"} <= set(found)
    assert {name: one.trouble for name, one in found.items() if one.trouble} == {}


@pytest.mark.parametrize(
    ("words", "trouble"),
    [
        ("", "no licence is named"),
        ("GPL-3.0-or-later", "copyleft"),
        ("GNU Affero General Public License v3", "copyleft"),
        ("AGPL-3.0", "copyleft"),
        ("LGPL-2.1-only", ""),
        ("GNU Lesser General Public License v3 (LGPLv3)", ""),
        ("MIT", ""),
        ("Mozilla Public License 2.0 (MPL 2.0)", ""),
    ],
)
def test_what_is_not_wanted(words: str, trouble: str) -> None:
    assert Licence("x", "1", words).trouble == trouble
