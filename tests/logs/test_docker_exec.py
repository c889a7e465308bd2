"""A container as a host: the collector goes in through `docker exec -i`."""

from __future__ import annotations

import shlex
import sys

import pytest

from sgmon.remote.hosts import reach
from sgmon.settings import Settings
from tests.logs.starts import serve
from tests.nodes.watching import Watch

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_a_collector_in_a_container(docker):
    container = serve(docker, network="none")
    via = f"{shlex.join(docker.argv)} exec -i {{}}"
    with Watch([reach(container.name, via, sys.executable)], Settings(gpu=False)) as watch:
        watch.wait_for(lambda: len(watch.snapshot(container.name).ranks) == 2)
        watch.wait_for(lambda: watch.snapshot(container.name).port is not None)
        assert watch.links[container.name][-1].hostname == container.id[:12]
    with Watch([reach("sgmon-nobody", via, sys.executable)], Settings(gpu=False)) as watch:
        watch.wait_for(lambda: watch.state("sgmon-nobody") == "failed")
        assert "No such container" in watch.links["sgmon-nobody"][-1].why
    with Watch([reach(container.name, via, "/nowhere/python3")], Settings(gpu=False)) as watch:
        watch.wait_for(lambda: watch.state(container.name) == "failed")
        assert "--remote-python" in watch.links[container.name][-1].remedy
