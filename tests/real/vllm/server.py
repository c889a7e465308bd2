"""A real vLLM server on a CPU for tests. Needs ``make real-vllm`` once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.real.server import CACHE, RealServer, until

HERE = Path(__file__).parent
HOME = Path(os.environ.get("SGMON_REAL_VLLM") or CACHE / "sgmon" / "real-vllm")
INSTALLED = (HOME / "venv" / "bin" / "vllm").exists()
HOW = "no real vLLM server is installed: run `make real-vllm` once (4 GB), or set SGMON_REAL_VLLM"
ENGINE = "VLLM::EngineCore"
#: a start takes one minute on two idle cores, six on busy ones
START_S = 480.0


class VllmServer(RealServer):
    SCRIPT = HERE / "serve.sh"
    HOME = HOME

    def wait_for_workers(self, count: int, timeout_s: float = START_S) -> list[int]:
        """The first ``count`` workers in birth order, while they import: children of the engine core without a title."""
        until(lambda: len(self.workers()) >= count or self.ended, timeout_s, f"{count} workers")
        assert not self.ended, self.text()[-3000:]
        return self.workers()[:count]

    def workers(self) -> list[int]:
        engine = self.pid_of(ENGINE)
        below = set() if engine is None else {int(word) for word in _children(engine)}
        return sorted(below & set(super().workers()))


@contextmanager
def vllm_server(
    directory: Path,
    model: str,
    *flags: str,
    port: int | None = None,
    env: Mapping[str, str] | None = None,
    log: str = "",
    wrap: tuple[str, ...] = (),
) -> Iterator[VllmServer]:
    server = VllmServer(directory, model, *flags, port=port, env=env, log=log, wrap=wrap)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _children(pid: int) -> list[str]:
    found = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += (task / "children").read_text().split()
    except OSError:
        pass
    return found
