"""What ``sgmon wait`` does at its end: the report, the hook of --on-stall, the summary of a GitHub step."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sgmon import units
from sgmon.commands.bundling import BundleError, make, write
from sgmon.export.shown import inline
from sgmon.history import from_snapshot
from sgmon.model import Snapshot
from sgmon.servers import registry
from sgmon.text import masked_argv, safe
from sgmon.watch.engine import Engine

HOOK_S = 120.0
_OUTPUT = 20_000


def write_report(engine: Engine, path: Path) -> str:
    """Write the bundle; returns where it is, or why there is none."""
    try:
        return f"report: {write(make(engine, made_by='sgmon wait'), path)}"
    except BundleError as err:
        return f"sgmon: {err}"
    except OSError as err:
        return f"sgmon: cannot write the report {path}: {err.strerror}"


def run_hook(command: str, snapshot: Snapshot, report_path: str) -> str:
    """Run ``command`` once; returns what it printed and how it ended. It has ``HOOK_S`` seconds."""
    try:
        child = subprocess.Popen(
            command,
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **hook_environment(snapshot, report_path)},
        )
    except OSError as err:  # no process, no memory, an environment as large as may be
        return f"--on-stall could not be started: {err.strerror}"
    ended = ""
    try:
        output = child.communicate(timeout=HOOK_S)[0]
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        ended = f"--on-stall had not ended after {HOOK_S:.0f} s and was killed"
        try:
            output = child.communicate(timeout=5.0)[0]
        except subprocess.TimeoutExpired:
            output = b""
    shown = output.decode("utf-8", "replace")[-_OUTPUT:].rstrip("\n")
    return "\n".join(filter(None, (shown, ended or f"--on-stall ended with {child.returncode}")))


def hook_environment(snapshot: Snapshot, report_path: str = "") -> dict[str, str]:
    """The variables that the hook gets, by name."""
    server, verdict = snapshot.server, snapshot.verdict
    return {
        "SGMON_STATE": verdict.state,
        "SGMON_PHASE": verdict.phase,
        "SGMON_HEADLINE": safe(verdict.headline, 1000),
        "SGMON_ODD_RANKS": ",".join(verdict.odd_ranks),
        "SGMON_NODES": ",".join(verdict.nodes),
        "SGMON_SINCE_S": f"{max(0.0, snapshot.t - verdict.since_t):.0f}",
        "SGMON_PID": "" if server is None else str(server.pid),
        "SGMON_PORT": _port(snapshot),
        "SGMON_LOG": "" if server is None else server.log_path,
        "SGMON_REPORT": report_path,
        "SGMON_FLIGHT": snapshot.saved[-1] if snapshot.saved else "",
    }


def _port(snapshot: Snapshot) -> str:
    """The server's port, also one that it picked itself; "" while it is not known."""
    server, seen = snapshot.server, snapshot.port
    if server is None:
        return ""
    found = server.port or (seen.port if seen is not None and server.args.picks_port else None)
    return str(found) if found else ""


def write_step_summary(snapshot: Snapshot, code: int) -> Iterator[str]:
    """Append to $GITHUB_STEP_SUMMARY if it is set; yields errors as sentences."""
    path = os.environ.get("GITHUB_STEP_SUMMARY", "")
    if not path:
        return
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write("\n".join(step_summary(snapshot, code)) + "\n")
    except OSError as err:
        yield f"sgmon: cannot write GITHUB_STEP_SUMMARY: {err.strerror}"


def step_summary(snapshot: Snapshot, code: int) -> Iterator[str]:
    """Markdown: verdict, evidence, phases."""
    verdict, server = snapshot.verdict, snapshot.server
    yield f"### Start of the server: {verdict.state} (exit code {code})"
    yield ""
    yield _shown(verdict.headline, 500)
    yield ""
    yield from (f"- {_shown(fact.text, 300)}" for fact in verdict.evidence)
    if server is None:
        return
    run = from_snapshot.start_of(snapshot, from_snapshot.outcome_of(snapshot))
    phases = run.phases
    if phases:
        words = registry.get(snapshot.family).phases.words
        yield from ("", "| phase | took | usually |", "|---|---|---|")
        usual = {} if snapshot.baseline is None else {one.phase: one.median_s for one in snapshot.baseline.phases}
        for phase, took_s in phases:
            usually = units.duration(usual.get(phase)).replace("?", "")
            yield f"| {words(phase)} | {units.duration(took_s)} | {usually} |"
    yield ""
    argv = " ".join(masked_argv(server.argv)).replace("`", "'")
    yield f"`{argv}`, {run.lines} lines of log"


def _shown(text: str, limit: int) -> str:
    return inline(safe(text, limit))
