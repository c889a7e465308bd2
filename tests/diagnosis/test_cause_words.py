"""A crash headline carries the fact that the log has: the exception's own text, the file, the key, the sizes."""

from __future__ import annotations

import pytest

from sgmon.model import Role
from tests.diagnosis.world import World

HIT = "[2026-11-29 15:00:01 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
PACKAGE = "/v/lib/python3.11/site-packages/sglang/srt"
FRAME = f'  File "{PACKAGE}/models/llama.py", line 12, in load_weights\n    param = params_dict[name]\n            ~~~~~~~~~^^^^^^\n'
JSON = '  File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode\n    raise JSONDecodeError("Expecting value", s)\n'
CHAIN = (
    "\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n"
)


@pytest.mark.parametrize(
    ("block", "headline"),
    [
        (FRAME + "KeyError: 'model.layers.0.qkv'", "TP1: KeyError: 'model.layers.0.qkv' (weight load)"),
        (
            FRAME + "ModuleNotFoundError: No module named 'vllm_flash'",
            "TP1: ModuleNotFoundError: No module named 'vllm_flash' (weight load)",
        ),
        (FRAME + "AssertionError: tp must divide 7", "TP1: AssertionError: tp must divide 7 (weight load)"),
        (
            FRAME + "AssertionError",
            "TP1: assertion error: param = params_dict[name], in load_weights (llama.py:12) (weight load)",
        ),
        (
            FRAME.replace("load_weights", "read_config")
            + JSON
            + "json.decoder.JSONDecodeError: Expecting value: line 3 column 5 (char 40)\n"
            + CHAIN
            + FRAME
            + "OSError: It looks like the config file at '/models/m/config.json' is not a valid JSON file.",
            "TP1: JSONDecodeError: Expecting value: line 3 column 5 (char 40) (config.json) (weight load)",
        ),
        (
            FRAME
            + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 924.00 MiB. GPU 1 has a total capacity of "
            "139.81 GiB of which 230.00 MiB is free.",
            "TP1: out of GPU memory (weight load): 924.00 MiB asked, 230.00 MiB free",
        ),
    ],
    ids=["key", "module", "assertion", "bare-assertion", "json", "memory"],
)
def test_the_headline_carries_the_fact(block: str, headline: str) -> None:
    world = World(2).to("weights")
    world.run(3)
    world.raw(HIT + block + "\n\n")
    for rank in world.ranks:
        rank.does(gone=True)
    world.launcher.does(gone=True, role=Role.LAUNCHER)
    world.run(3)
    assert (world.verdict.state, world.verdict.headline) == ("crashed", headline)
