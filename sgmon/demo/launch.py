"""How the launcher is started: a command line and an environment like those of a real server."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sgmon.demo.play import GPUS_VARIABLE, PLAY_VARIABLE, Play


def launcher_command(play: Play) -> list[str]:
    if play.scenario.family == "vllm":
        return [
            *(sys.executable, str(Path(play.site) / "bin" / "vllm"), "serve", play.model_path),
            *("-tp", str(play.tp), "--max-model-len", "32768", "--host", "127.0.0.1", "--port", str(play.port)),
        ]
    command = [
        *(sys.executable, "-m", "sglang.launch_server"),
        *("--model-path", play.model_path),
        *("--tp", str(play.tp)),
        *("--host", "127.0.0.1", "--port", str(play.port)),
    ]
    if play.nnodes > 1:
        address = f"127.0.0.1:{play.dist_port}"
        command += ["--nnodes", str(play.nnodes), "--node-rank", "0", "--dist-init-addr", address]
    if play.gate_port:
        command += ["--gated-launch-port", str(play.gate_port)]
    return command


def launcher_environment(play: Play) -> dict[str, str]:
    """The played package comes first on the path, then the sgmon that plays it."""
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join((play.site, package_root()))
    environment[PLAY_VARIABLE] = str(Path(play.directory) / "play.json")
    environment[GPUS_VARIABLE] = play.gpus_path
    environment.pop("PYTHONSTARTUP", None)
    return environment


def package_root() -> str:
    """The folder that holds the package sgmon."""
    return str(Path(__file__).resolve().parents[2])
