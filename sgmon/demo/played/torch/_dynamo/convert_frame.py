"""torch/_dynamo/convert_frame.py: Dynamo traces the model on one core, without a child and without a line."""

from __future__ import annotations

from sgmon.demo.load import work


def compile_frame(seconds: float) -> None:
    work(seconds)
