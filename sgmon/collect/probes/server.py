"""Finds the server, notices that it is gone, follows its restart. The only writer of ``Watched.server``."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.collect.probes.base import ProbeError, Watched
from sgmon.discovery import TargetError, find
from sgmon.model import Server, ServerReading
from sgmon.model.server import RETITLED
from sgmon.proc import exits, files, stat
from sgmon.settings import Settings

#: a whole look at /proc costs about 50 us a process; between two looks only the known pid is asked for
LOOK_EVERY_S = 5.0
#: on a host with many processes looks become rarer: they may take this share of the time
LOOK_SHARE = 0.001
LOOK_MOST_S = 30.0
#: how much rarer while the server is ready and nothing is wrong: only another server's start could be news
LOOK_CALM = 4.0


class ServerProbe:
    """While there is no server: a whole look each interval. Then one each ``LOOK_EVERY_S`` or rarer (its log may
    move, another server may start), and at once when its pid has ended."""

    name = "server"
    kind = "server"
    deadline_s = 4.0

    def __init__(self, watched: Watched, found: ServerReading | None = None) -> None:
        """``found``: a look that was made just now, which is the first reading."""
        self.interval_s = max(0.5, watched.settings.interval_s)
        self._found = found
        self._watched = watched
        self._known: Server | None = None
        self._settings = watched.settings
        self._requested: int | None = None  # a pid, until a look at it has succeeded
        self._looked_t: float | None = None
        self._next_s = LOOK_EVERY_S

    def request(self, pid: int) -> None:
        """Watch the server of this pid from the next read on. Any thread."""
        self._requested = pid

    def read(self) -> ServerReading | None:
        pid = self._requested
        if pid is not None:
            self._settings = replace(self._settings, pid=pid)
        settings, chosen_anew = self._settings, pid is not None
        now = self._watched.clock.now()
        gone = self._known is not None and not alive(settings.proc_root, self._known)
        pause_s = self._next_s * (LOOK_CALM if self._watched.calm else 1.0)
        fresh = self._looked_t is not None and now - self._looked_t < pause_s
        if fresh and self._known is not None and not gone and not chosen_anew:
            return None
        self._looked_t = now
        found, self._found = self._found, None
        reading = self._dated(found if found is not None else self._look(settings, gone, chosen_anew))
        self._next_s = self._pause_s(reading.server, self._watched.clock.now() - now)
        if self._requested == pid:
            self._requested = None
        if reading.server is not None and reading.gone_pid is None:
            self._known = reading.server
            self._watched.server = reading.server
        return reading

    def close(self) -> None:
        """Nothing is kept open."""

    def _dated(self, reading: ServerReading) -> ServerReading:
        """With the start of a known server as it was found first: /proc counts it from the wall clock, which may be
        set; the watch's own time goes on evenly."""
        server, known = reading.server, self._known
        if server is None or known is None or known.started_epoch is None or server.key != known.key:
            return reading
        return replace(reading, server=replace(server, started_epoch=known.started_epoch))

    def _pause_s(self, server: Server | None, took_s: float) -> float:
        """Seconds until the next whole look. Soon where something of a server that is not ready is still to be found
        out."""
        every_s = LOOK_EVERY_S * max(1.0, self._settings.interval_s)
        if server is None or not server.log_path or not server.version or server.args_source == RETITLED:
            return every_s if self._watched.calm else LOOK_EVERY_S
        return max(every_s, min(took_s / LOOK_SHARE, LOOK_MOST_S))

    def _look(self, settings: Settings, gone: bool, chosen_anew: bool) -> ServerReading:
        """Find by the settings; then stay with what was found while it lives, and look for its successor after."""
        old = self._known
        try:
            if old is None or chosen_anew:
                return find(settings.proc_root, settings, old)
            if not gone:
                try:
                    return find(settings.proc_root, replace(settings, pid=old.pid), old)
                except TargetError:
                    if _is_unreadable(settings.proc_root, old.pid):
                        raise ProbeError(f"the state of process {old.pid} cannot be read") from None
                    # it has ended this moment
            found = _successor(settings, old)
        except TargetError as err:
            if settings.is_started and old is None:
                return ServerReading(None, looked_for=f"a server in pid {settings.pid} of sgmon run, and below it")
            raise ProbeError(err.words, err.remedy) from None
        return found if found.server is not None else replace(found, server=old, gone_pid=old.pid)


def alive(root: str, server: Server) -> bool:
    """Whether the very process still runs: not a zombie, not another one under the same number, not merely hidden."""
    try:
        seen = stat.read(root, server.pid)
    except OSError as err:
        return not files.is_gone(err) or (root == "/proc" and _hidden_only(root, server.pid))
    ended = seen.state in ("Z", "X") and seen.threads <= 1
    return seen.start_ticks == server.start_ticks and not ended


def _is_unreadable(root: str, pid: int) -> bool:
    try:
        stat.read(root, pid)
    except OSError as err:
        return not files.is_gone(err)
    return False


def _hidden_only(root: str, pid: int) -> bool:
    """hidepid=2 answers ENOENT for the living of other users; then even pid 1 is not to be seen."""
    return exits.exists(pid) and 1 not in stat.pids(root)


def _successor(settings: Settings, old: Server) -> ServerReading:
    """Who took the place of a server that is gone: the one asked for by port, or the one that started after it (for
    a server that was chosen by pid: on the same port)."""
    port = old.args.port if settings.pid is not None else settings.port
    found = find(settings.proc_root, replace(settings, pid=None, port=port))
    new = found.server
    if new is None or new.start_ticks <= old.start_ticks:
        return replace(found, server=None)
    return found
