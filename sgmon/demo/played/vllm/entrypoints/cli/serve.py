"""vllm/entrypoints/cli/serve.py: ``vllm serve MODEL``."""

from __future__ import annotations

import asyncio
import sys

from sgmon.demo.play import Play
from sgmon.demo.played.vllm.entrypoints.openai.api_server import run_server
from sgmon.demo.played.vllm.v1.engine.utils import EngineDeadError


class ServeSubcommand:
    """The command; its process is never retitled."""

    @staticmethod
    def cmd(play: Play) -> None:
        try:
            asyncio.run(run_server(play))
        except EngineDeadError:
            sys.exit(1)
