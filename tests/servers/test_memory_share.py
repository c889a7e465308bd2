"""When the formula of SGLang's share of GPU memory counts."""

from __future__ import annotations

import pytest

from sgmon.model import ServerArgs
from sgmon.model.preflight import Installed
from sgmon.servers.sglang.memory import share


@pytest.mark.parametrize("name", ["enable_dp_attention", "moe_a2a_backend"])
@pytest.mark.parametrize(
    ("value", "counts"),
    [
        *((unset, True) for unset in ("", "None", "null", "none", "False", "false")),
        ("True", False),
        ("deepep", False),
    ],
)
def test_an_argument_that_is_off_leaves_the_formula(name: str, value: str, counts: bool) -> None:
    """A log has Python's words for it, ``/get_server_info`` those of JSON."""
    found = share(ServerArgs(raw=((name, value),)), 80 * 2**30, "0.5.23", Installed(), {})
    assert (found is not None and found == share(ServerArgs(), 80 * 2**30, "0.5.23", Installed(), {})) is counts
