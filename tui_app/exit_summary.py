"""The two lines that stay in the scrollback when the screen is gone."""

from __future__ import annotations

from sgmon.model import Snapshot
from sgmon.servers import names
from sgmon.text import clean, safe
from sgmon.units import state_age
from widgets.states import state_style


def exit_summary(snapshot: Snapshot) -> list[str]:
    """The verdict; then what to run next, or where the log is."""
    verdict = snapshot.verdict
    server = snapshot.server
    port = "" if server is None or server.port is None else f", port {server.port}"
    who = f" (pid {server.pid}{port})" if server is not None else ""
    lasts = state_age(verdict.state, snapshot.t - verdict.since_t)
    comma = "," if verdict.state in ("suspect", "stalled") else ""
    what = f"{state_style(verdict.state).word.lower()}{comma} {lasts}: {safe(verdict.headline, 300)}{who}"
    if snapshot.replay:  # its processes are of another time, perhaps of another machine: no command on their numbers
        step = (
            f"next at that time: {safe(verdict.next[0].text, 200)}" if verdict.next else "nothing to do at that time"
        )
        return [f"sgmon: in the recording: {what}", step]
    first = f"sgmon: {what}"
    command = next((step for step in verdict.next if step.command), None)
    if command is not None:
        return [first, f"next: {safe(command.text, 200)}: {safe(command.command, 400)}"]
    if server is not None and server.log_path:
        return [first, f"log: {clean(server.log_path, 300)}"]
    if snapshot.log_only:
        return [first, f"log: {clean(snapshot.log.path, 300)}"]
    if server is None:
        return [first, f"next: sgmon demo, or sgmon run -- {names.start_command()} ..."]
    return [first, "look again: sgmon status"]
