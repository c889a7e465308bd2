"""Before a start: what would spoil it, by the rules of foresight, and the tools of builds. Runs nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from sgmon.analyse.foreseen import all_gpus
from sgmon.collect.preflight.read import read
from sgmon.doctor.check import Check, Status
from sgmon.foresight.check import forecast
from sgmon.foresight.start import Start
from sgmon.model import GpuReading, Server, ServerArgs
from sgmon.model.preflight import Forecast, Level
from sgmon.servers import registry

GROUP = "before a start"
_STATUS: dict[Level, Status] = {
    Level.OK: "ok",
    Level.WARNING: "note",
    Level.WILL_FAIL: "bad",
    Level.UNKNOWN: "unknown",
}


def starting(root: str, port: int, gpu: GpuReading | None) -> list[Check]:
    """All checks of this group for a start on ``port`` of a model that is not known."""
    family = registry.families()[0]
    server = Server(os.getpid(), 0, args=ServerArgs(port=port), family=family.name)
    facts = read(root, server, started=False)
    cards = len(gpu.gpus) if gpu is not None and gpu.gpus else None
    links = gpu.links if gpu is not None else ()
    start = Start(family, server.args, facts, all_gpus(gpu), cards=cards, links=links)
    return [*(_check(one) for one in forecast(start)), *_tools()]


def _check(one: Forecast) -> Check:
    step = one.step
    remedy = "" if step is None else step.command or step.text
    return Check(GROUP, one.check, _STATUS[one.level], one.text, remedy)


def _tools() -> Iterator[Check]:
    for name, why in (("ninja", "JIT builds need it"), ("nvcc", "flashinfer and DeepGEMM builds need it")):
        path = shutil.which(name)
        yield Check(GROUP, name, "ok" if path else "note", path or f"not on PATH: {why}")
