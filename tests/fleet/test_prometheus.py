"""A real Prometheus scrapes three watches; every query of the dashboard returns data, the alerts go off."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sgmon.export.fleet.prometheus import text
from sgmon.export.fleet.web import Newest, WebServer
from sgmon.model import Snapshot
from sgmon.model.baseline import Eta
from tests.fleet.moments import worst
from tests.waiting import eventually, free_port
from tools.write_dashboard import dashboard

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="no prometheus: apt-get install prometheus"
)

RULES = Path(__file__).parents[2] / "deploy/prometheus/sgmon.rules.yml"
#: a hung start, one on GPUs that is ready, one that takes longer than usual
WATCHED: dict[str, Callable[[], Snapshot]] = {
    "hung": lambda: worst("cpu-tp2-live-hang-load", "stalled"),
    "ready": lambda: worst("h200x2-cold", "ready"),
    "late": lambda: replace(worst("h200x2-cold", "progressing"), eta=Eta(usual_s=1.0, count=9)),
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a Prometheus that has scraped every watch."""
    folder = tmp_path_factory.mktemp("prometheus")
    with ExitStack() as stack:
        targets = []
        for name, made in WATCHED.items():
            snapshot = made()
            now = snapshot.epoch + snapshot.t
            server = stack.enter_context(
                WebServer("127.0.0.1", 0, Newest(lambda s=snapshot: s, lambda at=now: at), text, 60.0)
            )
            targets.append({"targets": [f"127.0.0.1:{server.server_address[1]}"], "labels": {"instance": name}})
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": "sgmon", "static_configs": targets}],
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
        port = free_port()
        log = stack.enter_context((folder / "log").open("w"))
        process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{port}"],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        stack.callback(process.wait, 60)
        stack.callback(process.terminate)
        url = f"http://127.0.0.1:{port}/api/v1/"
        eventually(lambda: len(query(url, "sgmon_info")) == len(WATCHED))
        yield url


def ask(url: str, path: str) -> Any:
    with urllib.request.urlopen(url + path, timeout=60) as answer:
        return json.load(answer)["data"]


def query(url: str, expression: str) -> list[Any]:
    try:
        return list(ask(url, "query?" + urllib.parse.urlencode({"query": expression}))["result"])
    except OSError:
        return []


QUERIES = [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]


@pytest.mark.parametrize("expression", QUERIES)
def test_every_query_of_the_dashboard_returns_data(api: str, expression: str) -> None:
    assert query(api, expression.replace("$instance", ".*")), expression


def test_the_right_alerts_go_off(api: str) -> None:
    def active() -> set[tuple[str, str]]:
        alerts = ask(api, "alerts")["alerts"]
        return {(alert["labels"]["alertname"], alert["labels"]["instance"]) for alert in alerts}

    wanted = {("ModelServerStartStalled", "hung"), ("ModelServerStartLate", "late")}
    assert eventually(lambda: active() if active() >= wanted else None) == wanted
