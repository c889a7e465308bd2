"""How the families are called, for a first frame: to import them takes 30 ms. The records take it from here."""

from __future__ import annotations

from typing import NamedTuple


class Names(NamedTuple):
    """label: on the screen. start_command: the beginning of a usual command that starts such a server."""

    label: str
    start_command: str


SGLANG = Names("SGLang", "python -m sglang.launch_server")
VLLM = Names("vLLM", "vllm serve")
#: the most common first
_ALL = (SGLANG, VLLM)


def labels() -> str:
    """ "SGLang", "SGLang or vLLM": the families for a sentence."""
    return " or ".join(names.label for names in _ALL)


def start_command() -> str:
    """The beginning of a usual command that starts a server, for hints."""
    return _ALL[0].start_command
