"""A simulated SGLang server: real processes, a real log, a real port, chosen faults. No GPU, no SGLang needed.

with sgmon.demo.start("stuck-rank") as server:
    print(server.pid, server.port, server.log, server.gpus)
"""

from __future__ import annotations

from sgmon.demo.scenarios import SCENARIOS
from sgmon.demo.starter import DemoServer, start

__all__ = ["SCENARIOS", "DemoServer", "start"]
