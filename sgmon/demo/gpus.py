"""The simulated GPUs as a JSON file, written by the guard about twice a second; read by sgmon instead of NVML.

Levels seen on H200: 78 W without a context, 119-125 W idle with one, 120-172 W moving while graphs are captured,
164 W to the watt at 100 % while a rank spins in a collective; 3 % while weights are read.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from sgmon.demo.blackboard import Blackboard, Slot
from sgmon.paths import write_whole

TOTAL_BYTES = 150_754_820_096
POWER_LIMIT_W = 700.0


def readings(board: Blackboard, count: int) -> dict[str, Any]:
    return {"simulated": True, "gpus": [_gpu(index, board.read(index)) for index in range(count)]}


def write(path: str, content: dict[str, Any]) -> None:
    """Whole or not at all: a reader never sees half a file."""
    write_whole(Path(path), (json.dumps(content).encode(),))


def _gpu(index: int, slot: Slot) -> dict[str, Any]:
    alive = slot.used_bytes > 0 and is_alive(slot.pid)
    mode = slot.mode if alive else "off"
    util, power = _activity(mode, index)
    used = slot.used_bytes if alive else 0
    return {
        "index": index,
        "name": "NVIDIA H200",
        "total_bytes": TOTAL_BYTES,
        "used_bytes": used,
        "util_percent": util,
        "power_w": power,
        "power_limit_w": POWER_LIMIT_W,
        "temperature_c": round(22 + power / 12 + index % 3),
        "processes": [{"pid": slot.pid, "used_bytes": used}] if alive else [],
    }


def _activity(mode: str, index: int) -> tuple[int, float]:
    """Utilisation and power; an idle card does not change its power by more than a fraction of a watt."""
    idle = 119.0 + index * 0.9
    if mode == "off":
        return 0, 77.5 + index * 0.4
    if mode == "load":
        return random.choice((0, 3, 4)), round(idle + random.uniform(0, 3), 1)
    if mode == "work":
        return random.randint(0, 70), round(idle + random.uniform(1, 53), 1)
    if mode == "spin":
        return 100, round(164.0 + index * 0.3, 1)
    return 0, round(idle + random.uniform(0, 0.4), 1)


def is_alive(pid: int) -> bool:
    """A stopped process holds its memory, a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
