"""The order in which the workers of pytest-xdist (``--dist loadfile``) get the files of tests."""

from __future__ import annotations

from collections import Counter

import pytest
from xdist.scheduler import LoadFileScheduling

#: files that take longest though their tests are few, the longest first: begun late, they would end long after all others
LONGEST = (
    "tests/logs/test_containers.py",
    "tests/e2e/test_wait.py",
    "tests/demo/test_faults.py",
    "tests/faults/test_terminal.py",
    "tests/e2e/test_serve.py",
    "tests/ui/test_terminal.py",
    "tests/ui/test_recordings.py",
    "tests/fleet/test_export_command.py",
    "tests/faults/test_disk.py",
    "tests/faults/test_nvml.py",
    "tests/memory/test_commands.py",
    "tests/nodes/test_commands.py",
    "tests/memory/test_same_verdicts.py",
    "tests/nodes/test_one_host.py",
    "tests/situations/test_storage.py",
    "tests/nodes/test_hosts_by_ssh.py",
    "tests/soak/test_replaced.py",
    "tests/security/test_traced.py",
    "tests/logs/test_journald.py",
    "tests/stacks/test_command.py",
    "tests/e2e/test_screen.py",
    "tests/memory/test_replay_screen.py",
    "tests/demo/test_cleanup.py",
    "tests/deaths/test_stress.py",
    "tests/ui/test_keys.py",
    "tests/fleet/test_prometheus.py",
    "tests/situations/test_workers.py",
    "tests/demo/test_stuck_rank.py",
    "tests/demo/test_vllm.py",
    "tests/demo/test_healthy.py",
)
#: files that one worker gets together with another: the daemon which they need is started once a worker
TOGETHER = {"tests/logs/test_docker_exec.py": "tests/logs/test_containers.py"}


class FilesInOrder(LoadFileScheduling):
    """Gives out the files as they are collected."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return TOGETHER.get(file, file)


def longest_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """By file: ``LONGEST``, then those with most tests."""
    tests = Counter(_file(item) for item in items)
    place = {file: number for number, file in enumerate(LONGEST)}

    def key(item: pytest.Item) -> tuple[int, int, str]:
        file = _file(item)
        return place.get(file, len(LONGEST)), -tests[file], file

    return sorted(items, key=key)


def _file(item: pytest.Item) -> str:
    return item.nodeid.split("::", 1)[0]
