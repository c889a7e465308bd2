"""torch/_inductor/graph.py: inductor makes kernels of the traced model."""

from __future__ import annotations

from sgmon.demo.load import work


def compile_to_module(seconds: float) -> None:
    work(seconds)
