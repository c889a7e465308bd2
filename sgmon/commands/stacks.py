"""``sgmon stacks``: the stacks of all ranks, merged, without a screen."""

from __future__ import annotations

import argparse
import sys
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from sgmon.analyse.log.fold import LogFold
from sgmon.analyse.stacks.causes import book_of, match, with_entries
from sgmon.analyse.stacks.conditions import Facts
from sgmon.analyse.stacks.ras import belongs
from sgmon.analyse.stacks.rules import rules_of
from sgmon.analyse.stacks.summary import Summary, summarize, summary_lines
from sgmon.collect.probes.base import Clock, Watched
from sgmon.collect.probes.logtail import LogProbe
from sgmon.collect.probes.procs import ProcsProbe
from sgmon.collect.probes.pyspy import StackProbe
from sgmon.collect.probes.ras import RasProbe
from sgmon.commands import FAILED, NO_SERVER, READY
from sgmon.commands.cause_book import read_user_causes
from sgmon.commands.output import print_json
from sgmon.commands.watching import UsageError, add_target_arguments, say_usage, settings_from
from sgmon.discovery import TargetError, find
from sgmon.model import LogReading, LogState, Process, RasReading, Role, StackDump
from sgmon.servers import names

HELP = "all ranks' stacks, merged"
NATIVE_COST = (
    "native frames stop each process for 0.4 to 3.4 seconds and take some 340 MB of memory a dump (two at once)"
)
_RANK_ROLES = (Role.WORKER, Role.IMPORTING)
_RAS_S = 14.0  # an answer can take ten seconds, and the first connection may be swallowed
_LOG_ROUNDS = 400
_LOG_LINES = 400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target_arguments(parser)
    parser.add_argument("--rank", metavar="R", action="append", default=[], help="this rank only: 3, TP3, 'DP0 TP1'")
    parser.add_argument("--samples", metavar="N", default="3", help="dumps of each rank, a second apart (default 3)")
    parser.add_argument("--native", action="store_true", help=f"C and C++ frames too: {NATIVE_COST}")
    parser.add_argument("--full", action="store_true", help="every frame of every class, and the tree")
    parser.add_argument("--json", action="store_true", help="one JSON object, all dumps in it")


def run(args: argparse.Namespace) -> int:
    try:
        settings = settings_from(args)
        samples = _samples(args.samples)
        server = find(Path(settings.proc_root), settings)
    except UsageError as err:
        return say_usage(err)
    except TargetError as err:
        print(f"sgmon: {err}", file=sys.stderr)
        return NO_SERVER
    if server.server is None:
        print(f"sgmon: no {names.labels()} server found ({server.looked_for})", file=sys.stderr)
        return NO_SERVER
    watched = Watched(settings, Clock(), server.server)
    try:
        found = look(watched, args.rank, samples, args.native)
    except UsageError as err:
        return say_usage(err)
    except KeyboardInterrupt:
        return FAILED
    if args.json:
        print_json(found)
    else:
        print("\n".join(summary_lines(found, full=args.full)))
    return READY if any(dump.threads for dump in found.dumps) else FAILED


def look(watched: Watched, ranks: Sequence[str], samples: int, native: bool) -> Summary:
    """Dump the ranks (and the launcher once), ask NCCL beside it, and hold the cause book against all of it."""
    server = watched.server
    assert server is not None
    procs = ProcsProbe(watched)
    try:
        reading = procs.read()
        processes = reading.processes if reading is not None else ()
        targets = _targets(processes, ranks, server.pid)
        if native:
            print(f"sgmon: {NATIVE_COST}", file=sys.stderr)
        nccl = _Nccl(watched) if len(targets.ranks) > 1 else None
        if nccl is not None:
            nccl.start()
        dumps = _dump(watched, processes, targets, samples, native)
        again = procs.read()
        log, lines = _log(watched)
        ras = nccl.answer() if nccl is not None else None
    finally:
        procs.close()
    causes, mistake = read_user_causes()
    if mistake:
        print(f"sgmon: your causes are left out: {mistake}", file=sys.stderr)
    now = again.processes if again is not None else processes
    if ras is not None and ras.answer == "ok" and belongs(ras, now) is False:
        ras = RasReading(ras.address, "garbled", note=f"RAS at {ras.address} answers for another job's processes")
    facts = Facts(dumps=dumps, processes=now, log=log, lines=lines, ras=ras, family=server.family)
    rules = rules_of(server)
    hits = match(facts, with_entries(book_of(rules), causes))
    return summarize(server.pid, server.family, server.version or log.version, dumps, hits, ras)


class _Targets(Struct, frozen=True):
    """Whose stacks: of the ranks as often as asked, of the others once."""

    ranks: tuple[int, ...]
    others: tuple[int, ...] = ()


def _targets(processes: Sequence[Process], wanted: Sequence[str], launcher: int) -> _Targets:
    """The chosen ranks' pids. Raises ``UsageError`` on a rank that is not there."""
    alive = [process for process in processes if process.alive]
    ranks = [process for process in alive if process.role in _RANK_ROLES]
    if not wanted:
        return _Targets(
            tuple(process.pid for process in ranks) or (launcher,),
            (launcher,) if ranks else (),
        )
    chosen = []
    for name in wanted:
        of_name = [process for process in ranks if _is_rank(process, name)]
        if not of_name:
            known = ", ".join(process.rank or "(the only one)" for process in ranks) or "none yet"
            raise UsageError(f"no rank {name!r} here: there are {known}")
        chosen += of_name
    return _Targets(tuple(dict.fromkeys(process.pid for process in chosen)))


def _is_rank(process: Process, name: str) -> bool:
    """ "3" is TP3 (or the only rank, when 0), else the rank as SGLang spells it."""
    if name.isdigit():
        return process.rank.split(" ")[-1] in (f"TP{name}", f"DP{name}") or (name == "0" and not process.rank)
    return process.rank.lower() == name.lower()


def _dump(
    watched: Watched, processes: tuple[Process, ...], targets: _Targets, samples: int, native: bool
) -> tuple[StackDump, ...]:
    probe = StackProbe(watched, lambda: processes)
    requests = [probe.request(targets.ranks, samples, native, "sgmon stacks")]
    if targets.others:
        requests.append(probe.request(targets.others, 1, False, "sgmon stacks"))
    order = {pid: place for place, pid in enumerate((*targets.ranks, *targets.others))}
    dumps: list[StackDump] = []
    try:
        while True:
            reading = probe.read()
            dumps += reading.dumps if reading is not None else ()
            if reading is not None and reading.done and reading.request == requests[-1]:
                break
    finally:
        probe.close()
    return tuple(sorted(dumps, key=lambda dump: (dump.request, dump.sample, order[dump.pid])))


def _log(watched: Watched) -> tuple[LogState, tuple[str, ...]]:
    """What the log tells, and its last lines, for the cause book."""
    probe, fold = LogProbe(watched), LogFold(epoch=watched.clock.epoch)
    lines: deque[str] = deque(maxlen=_LOG_LINES)
    rest = ""
    try:
        for _ in range(_LOG_ROUNDS):
            reading = probe.read()
            if isinstance(reading, LogReading):
                fold.feed(reading, watched.clock.now())
                *whole, rest = (rest + reading.text).replace("\r", "\n").split("\n")
                lines.extend(whole)
            if not probe.busy:
                break
    finally:
        probe.close()
    return fold.state(), tuple(line for line in (*lines, rest) if line.strip())


class _Nccl:
    """Asks NCCL twice, beside the dumps and in a thread of its own, which may be left behind."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._reading: RasReading | None = None
        self._thread = threading.Thread(target=self._ask, name="ras", daemon=True)
        self._pause = threading.Event()

    def start(self) -> None:
        self._thread.start()

    def answer(self) -> RasReading | None:
        """The last answer so far; waits for one that is under way."""
        self._pause.set()
        self._thread.join(_RAS_S)
        return self._reading

    def _ask(self) -> None:
        probe = RasProbe(self._watched)
        probe.request(2)
        self._reading = probe.read()
        if self._reading is not None and self._reading.answer == "ok":
            self._pause.wait(10.0)  # the longer the two are apart, the surer "unchanged" is
            self._reading = probe.read() or self._reading


def _samples(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise UsageError(f"--samples {text!r} is no number: try --samples 3") from None
    if not 1 <= value <= 100:
        raise UsageError(f"--samples {value} is out of range (1 to 100)")
    return value
