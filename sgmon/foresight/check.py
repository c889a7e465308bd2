"""All rules over one start, in the order in which a start meets them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sgmon.foresight import disks, files, gpus, machine, memory, model, parallel, topology, versions
from sgmon.foresight.start import Start
from sgmon.model.preflight import Forecast, Level

Rule = Callable[[Start], Iterable[Forecast]]

RULES: tuple[Rule, ...] = (
    files.model_path,
    files.config,
    model.architecture,
    model.remote_code,
    files.tokenizer,
    model.chat_template,
    files.shards,
    parallel.nodes,
    parallel.heads,
    parallel.stages,
    parallel.experts,
    parallel.devices,
    gpus.driver,
    gpus.quantisation,
    topology.peers,
    topology.iommu,
    topology.numa,
    topology.driver_settings,
    machine.rendezvous_port,
    machine.addresses,
    machine.interfaces,
    memory.gpu_memory,
    memory.balance,
    memory.host_memory,
    memory.group_limits,
    disks.spaces,
    disks.shared_memory,
    disks.stale_locks,
    versions.known_defects,
    versions.demands,
    versions.flashinfer,
    machine.clock,
    machine.http_port,
)
_WORST = (Level.WILL_FAIL, Level.WARNING, Level.UNKNOWN, Level.OK)


def forecast(start: Start) -> tuple[Forecast, ...]:
    """What every rule says, the worst first; equals in the order in which a start meets them."""
    found = [one for rule in RULES for one in rule(start)]
    return tuple(sorted(found, key=lambda one: _WORST.index(one.level)))
