"""The files under deploy/: they name what sgmon has, and what they are for accepts them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sgmon.export.fleet.answers import CHECKS
from tools import write_dashboard
from tui_app.cli import full_parser

DEPLOY = Path(__file__).parents[2] / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))


def objects(path: Path) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def pods(node: Any) -> Iterator[dict[str, Any]]:
    """Every pod spec in an object."""
    if isinstance(node, dict):
        if "containers" in node:
            yield node
        for value in node.values():
            yield from pods(value)


def probes(path: Path) -> list[tuple[str, dict[str, Any]]]:
    return [
        (kind, container[kind])
        for one in objects(path)
        for pod in pods(one)
        for container in pod["containers"]
        for kind in ("startupProbe", "livenessProbe", "readinessProbe")
        if kind in container
    ]


def commands(path: Path) -> list[list[str]]:
    """Command lines of sgmon in a manifest."""
    lines = [
        container["command"]
        for one in objects(path)
        for pod in pods(one)
        for container in (*pod.get("initContainers", ()), *pod["containers"])
    ]
    lines += [probe["exec"]["command"] for _, probe in probes(path) if "exec" in probe]
    return [line for line in lines if line[0] == "sgmon"]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_probes_ask_for_what_is_answered(path: Path) -> None:
    asked = probes(path)
    assert {"startupProbe", "livenessProbe"} <= {kind for kind, _ in asked}
    for _, probe in asked:
        if probe.get("httpGet", {}).get("port") == 9400:
            assert probe["httpGet"]["path"].strip("/") in CHECKS
    for line in commands(path):
        full_parser().parse_args(line[1:])
    assert commands(path)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_the_api_accepts_the_pods(path: Path) -> None:
    """By the schemas of Kubernetes (pip install kubernetes-validate: 108 MB, so not among the tests' packages)."""
    validate = pytest.importorskip("kubernetes_validate")
    for one in objects(path):
        for pod in pods(one) if one["kind"] != "Pod" else (one["spec"],):
            pod_object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": pod}
            validate.validate(pod_object, "1.30", strict=True)


def test_the_dashboard_is_the_written_one() -> None:
    assert write_dashboard.PATH.read_text() == write_dashboard.text(), "python -m tools.write_dashboard"


def test_rules_and_dashboard_name_metrics_that_exist() -> None:
    source = (Path(__file__).parents[2] / "sgmon/export/fleet/metrics.py").read_text()
    made = set(re.findall(r'"(sgmon_\w+)"', source)) | {
        f"{name}_seconds" for name in re.findall(r'_seconds\(\s*"(\w+)"', source)
    }
    made |= {f"sgmon_gpu_{name}_{unit}" for name, unit in re.findall(r'\("(\w+)", "(bytes|percent|watts)"', source)}
    text = (DEPLOY / "prometheus/sgmon.rules.yml").read_text() + write_dashboard.text()
    named = set(re.findall(r"\bsgmon_[a-z_]+\b", text))
    assert named and named <= made, named - made


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool: apt-get install prometheus")
def test_promtool_accepts_the_rules() -> None:
    rules = DEPLOY / "prometheus/sgmon.rules.yml"
    run = subprocess.run(
        ["promtool", "check", "rules", str(rules)], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
