"""The page of a bundle has the headings of the bug form of the server's project."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from sgmon.export.bundle.page import page
from tests.memory.test_bundle import _materials

#: .github/ISSUE_TEMPLATE of sgl-project/sglang and vllm-project/vllm
FORMS = {
    "sglang": ["Describe the bug", "Reproduction", "Environment"],
    "vllm": ["Your current environment", "🐛 Describe the bug"],
}


@pytest.mark.parametrize("family", FORMS)
def test_headings(family: str) -> None:
    materials = _materials()
    server = materials.snapshot.server
    assert server is not None
    snapshot = replace(materials.snapshot, server=replace(server, family=family))
    text = page(replace(materials, snapshot=snapshot), log=False, inside=())
    assert re.findall(r"^### (.*)$", text, re.M) == FORMS[family]
    assert " ".join(server.argv[:2]) in text
