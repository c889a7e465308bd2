"""What the launched processes must know of the play that they are in; travels as a JSON file and by pickling."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

from sgmon.demo.scenarios import BY_NAME, Scenario

#: environment variable of the launcher: the file of this play
PLAY_VARIABLE = "SGMON_DEMO_PLAY"
#: environment variable of the launcher: the simulated GPUs, where sgmon looks for them
GPUS_VARIABLE = "SGMON_DEMO_GPUS"


class Play(Struct, frozen=True):
    """One run of one scenario."""

    name: str
    version: str
    speed: float
    tp: int
    nnodes: int
    port: int
    dist_port: int
    gate_port: int
    directory: str

    @property
    def scenario(self) -> Scenario:
        return BY_NAME[self.name]

    @property
    def local_ranks(self) -> int:
        return self.tp // self.nnodes

    @property
    def model_path(self) -> str:
        return str(Path(self.directory) / "models" / self.scenario.model)

    @property
    def site(self) -> str:
        """The folder that plays site-packages."""
        return str(Path(self.directory) / "site")

    @property
    def board_path(self) -> str:
        return str(Path(self.directory) / "ranks.bin")

    @property
    def gpus_path(self) -> str:
        return str(Path(self.directory) / "gpus.json")

    @property
    def log_path(self) -> str:
        return str(Path(self.directory) / "server.log")

    @property
    def lock_path(self) -> str:
        """The build lock of the ``compiling`` scenario, laid out like flashinfer's."""
        return str(Path(self.directory) / "cache" / "flashinfer" / "norm.lock")

    def release(self) -> tuple[int, ...]:
        """0.5.23 -> (0, 5, 23)."""
        return tuple(int(part) for part in self.version.split(".")[:3])

    @property
    def parallel_init(self) -> bool:
        """From 0.5.21 on the log says "Init parallel" instead of "Init torch distributed"."""
        return self.release() >= (0, 5, 21)

    @property
    def polls_children(self) -> bool:
        """From 0.5.10 on the launcher notices a scheduler that dies while it loads."""
        return self.release() >= (0, 5, 10)

    def odd(self, rank: int) -> bool:
        return self.scenario.odd_rank == rank

    def pause(self, seconds: float) -> None:
        time.sleep(seconds / self.speed)

    def write(self) -> Path:
        path = Path(self.directory) / "play.json"
        path.write_text(json.dumps(asdict(self)))
        return path

    @classmethod
    def read(cls, path: str | Path) -> Play:
        return cls(**json.loads(Path(path).read_text()))

    @classmethod
    def from_environment(cls) -> Play:
        return cls.read(os.environ[PLAY_VARIABLE])
