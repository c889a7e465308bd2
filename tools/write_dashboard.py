"""Writes ``deploy/grafana/sgmon.json``: ``python -m tools.write_dashboard``. A test holds the file to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).parents[1] / "deploy/grafana/sgmon.json"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WHERE = '{instance=~"$instance"}'


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana's JSON model (schemaVersion 39: Grafana 10 and newer)."""
    rows = (
        _panel(
            "state-timeline",
            "State",
            "State of each start",
            f"max by (instance, state) (sgmon_state{_WHERE}) == 1",
            24,
            6,
            legend="{{instance}} {{state}}",
        ),
        _panel(
            "table",
            "Starts that need a person",
            "Stalled, stopped, crashed or sure to fail",
            'sgmon_state{instance=~"$instance", state=~"stalled|stopped|crashed|will-fail"} == 1',
            12,
            6,
        ),
        _panel("table", "Ranks that hold a start up", "Or that died first", f"sgmon_rank_culprit{_WHERE}", 12, 6),
        _panel(
            "timeseries",
            "Time since anything moved",
            "Grows in a straight line: hung",
            f"sgmon_quiet_seconds{_WHERE}",
            12,
            8,
            unit="s",
        ),
        _panel(
            "timeseries",
            "Time since each rank moved",
            "The one that grows first holds the others up",
            f"sgmon_rank_quiet_seconds{_WHERE}",
            12,
            8,
            unit="s",
            legend="{{node}} {{rank}}",
        ),
        _panel(
            "timeseries",
            "Age of the start",
            "Beside what is usual",
            f"sgmon_start_age_seconds{_WHERE}",
            12,
            8,
            unit="s",
            more=f"sgmon_usual_ready_after_seconds{_WHERE}",
        ),
        _panel(
            "bargauge",
            "Duration of each phase",
            "Of the newest start",
            f"sgmon_phase_duration_seconds{_WHERE}",
            12,
            8,
            unit="s",
            legend="{{instance}} {{phase}}",
        ),
        _panel(
            "timeseries",
            "GPU memory",
            "Used, by GPU",
            f"sgmon_gpu_memory_used_bytes{_WHERE}",
            12,
            8,
            unit="bytes",
            legend="{{node}} GPU {{gpu}} {{rank}}",
        ),
        _panel(
            "timeseries",
            "GPU power",
            "Flat near idle at 100 % load: it waits in a collective",
            f"sgmon_gpu_power_watts{_WHERE}",
            12,
            8,
            unit="watt",
            legend="{{node}} GPU {{gpu}} {{rank}}",
        ),
        _panel(
            "timeseries",
            "Ranks by state",
            "",
            f"sum by (instance, state) (sgmon_ranks{_WHERE})",
            12,
            8,
            legend="{{instance}} {{state}}",
        ),
        _panel("table", "Servers", "What is watched", f"sgmon_server_info{_WHERE}", 12, 8),
    )
    panels, x, y = [], 0, 0
    for number, panel in enumerate(rows, 1):
        width, height = panel["gridPos"]["w"], panel["gridPos"]["h"]
        panels.append({**panel, "id": number, "gridPos": {"w": width, "h": height, "x": x, "y": y}})
        x = (x + width) % 24
        y += height if x == 0 else 0
    return {
        "title": "sgmon: starts of model servers",
        "uid": "sgmon-starts",
        "schemaVersion": 39,
        "tags": ["sgmon"],
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus"},
                {
                    "name": "instance",
                    "type": "query",
                    "datasource": _SOURCE,
                    "query": "label_values(sgmon_info, instance)",
                    "includeAll": True,
                    "multi": True,
                    "refresh": 2,
                },
            ]
        },
        "panels": panels,
    }


def _panel(
    kind: str,
    title: str,
    words: str,
    query: str,
    width: int,
    height: int,
    *,
    unit: str = "",
    legend: str = "",
    more: str = "",
) -> dict[str, Any]:
    instant = kind in ("table", "bargauge")
    targets = [
        {
            "refId": chr(ord("A") + at),
            "datasource": _SOURCE,
            "expr": text,
            "legendFormat": legend or "{{instance}}",
            "instant": instant,
            "range": not instant,
            **({"format": "table"} if kind == "table" else {}),
        }
        for at, text in enumerate(text for text in (query, more) if text)
    ]
    return {
        "type": kind,
        "title": title,
        "description": words,
        "datasource": _SOURCE,
        "gridPos": {"w": width, "h": height},
        "fieldConfig": {"defaults": {"unit": unit} if unit else {}, "overrides": []},
        "targets": targets,
    }


def text() -> str:
    """The file."""
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(text())
