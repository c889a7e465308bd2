"""A thousand ways to die: a made-up server whose crash follows SGLang's laws, and readings of it that come late, get
lost and change places. Time in seconds; everything is drawn from one seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from sgmon.model import Event, LogReading, Process, ProcsReading, Role, Server, ServerArgs, ServerReading

LAUNCHER = 100
_FAILURES = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139.80 GiB",
    "RuntimeError: size mismatch, got 128, 64",
    "AssertionError: the hidden size must be a multiple of 64",
)
_LOST = "RuntimeError: [gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:21121: Connection reset by peer."
#: seconds
LOOK_EVERY, BEGIN, AFTER = 1.0, 2.0, 9.0


@dataclass
class Member:
    """One process, and how it ends."""

    pid: int
    role: Role
    rank: str = ""
    ends_t: float | None = None
    signal: int | None = None
    code: int | None = None

    def end(self, t: float, signal: int | None = None, code: int | None = None) -> None:
        """The first end counts."""
        if self.ends_t is None or t < self.ends_t:
            self.ends_t, self.signal, self.code = t, signal, code


@dataclass
class Crash:
    """One simulated crash. culprit: the pid that died first."""

    FAMILY = "sglang"
    seed: int
    members: list[Member] = field(default_factory=list)
    lines: list[tuple[float, str]] = field(default_factory=list)
    culprit: int = 0
    died_t: float = 0.0
    story: str = ""

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        size = self.random.choice((2, 2, 2, 3, 4, 8))
        self.phase = self.random.choice(("import", "load", "ready"))
        role = Role.IMPORTING if self.phase == "import" else Role.WORKER
        self.launcher = Member(LAUNCHER, Role.LAUNCHER)
        self.ranks = [Member(101 + i, role, f"TP{i}") for i in range(size)]
        self.helper = Member(101 + size, Role.IMPORTING if self.phase == "import" else Role.DETOKENIZER)
        self.controller = Member(150, role, "") if self.phase != "import" and self.random.random() < 0.2 else None
        if self.controller is not None:
            self.controller.role = Role.CONTROLLER
        self.children = [*self.ranks, self.helper, *([self.controller] if self.controller is not None else [])]
        self.members = [self.launcher, *self.children]
        self.pidfds = self.random.random() < 0.6
        self.logged = self.random.random() < 0.85
        self.died_t = BEGIN + self.random.random() * 3
        self._die()

    def _die(self) -> None:
        kind = self.random.choice(("launcher", "rank", "rank", "rank", "failure", "helper"))
        shape = " below a controller" if self.controller is not None else ""
        self.story = f"{kind} in {self.phase}, {len(self.ranks)} ranks{shape}{'' if self.logged else ', no log'}"
        if kind == "launcher":
            self._launcher_is_killed()
        elif kind == "helper":
            self._helper_is_killed()
        elif kind == "failure":
            self._rank_fails()
        else:
            self._rank_is_killed()

    def _launcher_is_killed(self) -> None:
        """PR_SET_PDEATHSIG: all children die of SIGKILL, some before the launcher's last thread has ended."""
        self.culprit = LAUNCHER
        self.launcher.end(self.died_t, signal=9)
        for child in self.children:
            child.end(self.died_t + self.random.uniform(-0.05, 1.2), signal=9)

    def _helper_is_killed(self) -> None:
        helper = self.helper if self.controller is None or self.random.random() < 0.5 else self.controller
        self.culprit = helper.pid
        helper.end(self.died_t, signal=self.random.choice((9, 9, 11)))
        if helper is self.controller:
            for rank in self.ranks:
                rank.end(self.died_t + self.random.uniform(-0.05, 1.2), signal=9)
        loading = helper is self.helper and self.phase == "load"  # the watchdog begins when the ranks are ready
        noticed = self.died_t + self.random.uniform(0.1, 6.0 if loading else 1.1)
        if loading:
            for rank in self.ranks:
                self._say(self.died_t + 0.8 * (noticed - self.died_t), "Load weight end. elapsed=8.00 s", rank.rank)
        name = "detokenizer" if helper is self.helper else "dp_controller"
        self._say(noticed, f"Subprocess {name} (pid={helper.pid}) crashed with exit code -{helper.signal}. Triggering "
                  "SIGQUIT for cleanup...")  # fmt: skip
        self._clean_up(noticed + 0.02)

    def _rank_is_killed(self) -> None:
        victim = self.random.choice(self.ranks)
        self.culprit = victim.pid
        victim.end(self.died_t, signal=self.random.choice((9, 9, 9, 11, 7, 6)))
        noticed = self.died_t + self.random.uniform(0.1, 6.0 if self.phase != "ready" else 1.1)
        if self.phase == "ready" or self.random.random() < 0.3:
            noticed = min(noticed, self._peers_complain(victim))
        index = self.ranks.index(victim)
        if self.phase == "ready" and self.random.random() < 0.3:
            self._say(noticed, "Received sigquit from a child process. It usually means the child failed.")
        elif self.phase == "ready":
            self._say(noticed, f"Subprocess scheduler_{index} (pid={victim.pid}) crashed with exit code "
                      f"-{victim.signal}. Triggering SIGQUIT for cleanup...")  # fmt: skip
        else:
            self._say(noticed, f"RuntimeError: Rank {index} scheduler died during initialization (exit code: "
                      f"-{victim.signal}). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer.")  # fmt: skip
        self._clean_up(noticed + 0.02)

    def _peers_complain(self, victim: Member) -> float:
        """Some peers raise gloo's error and end; when the launcher hears of the first of them."""
        heard = 99.0
        for peer in self.ranks:
            if peer is victim or self.random.random() < 0.4:
                continue
            t = self.died_t + self.random.uniform(0.02, 0.5)
            self._raise(t, peer, _LOST)
            peer.end(t + self.random.uniform(0.02, 0.4), code=self.random.choice((0, 1)))
            heard = min(heard, t + 0.05)
        return heard

    def _rank_fails(self) -> None:
        rank = self.random.choice(self.ranks)
        self.culprit = rank.pid
        self._raise(self.died_t, rank, self.random.choice(_FAILURES))
        rank.end(self.died_t + self.random.uniform(0.05, 1.0), code=self.random.choice((0, 1)))
        heard = self.died_t + self.random.uniform(0.05, 0.8)
        self._say(heard, "Received sigquit from a child process. It usually means the child failed.")
        self._clean_up(heard + 0.02)

    def _clean_up(self, t: float) -> None:
        """kill_process_tree: all children by SIGKILL, then the launcher by SIGKILL, or by exit 1 when all are gone."""
        kills_itself = self.phase == "ready" or self.random.random() < 0.5
        self._say(t, f"kill_process_tree called: parent_pid=100, include_parent={kills_itself}, pid=100")
        for child in self.children:
            child.end(t + 0.01 + self.random.choice((0.0, 0.1, self.random.uniform(0, 1.2))), signal=9)
        if kills_itself:
            self.launcher.end(t + 0.02, signal=9)
        else:
            self.launcher.end(max(m.ends_t or 0.0 for m in self.members[1:]) + 0.3, code=1)

    def _raise(self, t: float, rank: Member, error: str) -> None:
        self._say(t, "Scheduler hit an exception: Traceback (most recent call last):", rank.rank)
        self.lines.append((t, '  File "sglang/srt/managers/scheduler.py", line 100, in run\n    work()'))
        self.lines.append((t, error))

    def _say(self, t: float, text: str, rank: str = "") -> None:
        self.lines.append((t, f"[2026-11-29 15:00:{int(t) % 60:02d}{' ' + rank if rank else ''}] {text}"))

    def _texts_begin(self) -> list[str]:
        return _start(self.phase, [m.rank for m in self.ranks])

    # what a watch sees of it

    def events(self) -> list[tuple[float, Event]]:
        """(arrival, event), by arrival. Readings of processes are lost, late and out of order; text of the log is late
        and keeps its order; the watch's own ticks come in time."""
        found = [(0.0, Event(0.0, "server", ServerReading(_server(len(self.ranks), self.FAMILY))))]
        end_t = self.died_t + AFTER
        found += [(t + 0.5, Event(t + 0.5, "tick")) for t in range(int(self.died_t), int(end_t))]
        t = 0.5
        while t < end_t:
            took = self.random.choice((0.01, 0.05, 0.25))
            if self.random.random() > 0.15 or t < BEGIN:
                late = self.random.choice((0.0, 0.0, 0.1, self.random.uniform(0, 1.5)))
                found.append((t + took + late, Event(t + took, "procs", self._look(t, took), took)))
            t += LOOK_EVERY * self.random.uniform(0.9, 1.4)
        found += self._texts() if self.logged else []
        return sorted(found, key=lambda one: one[0])

    def _look(self, t: float, took: float) -> ProcsReading:
        return ProcsReading(tuple(self._process(m, t + self.random.random() * took) for m in self.members))

    def _process(self, member: Member, t: float) -> Process:
        gone = member.ends_t is not None and t >= member.ends_t
        becomes = Role.WORKER if member.rank else Role.DETOKENIZER
        return Process(
            member.pid,
            self._parent(member),
            member.pid,
            member.role,
            member.rank,
            becomes=becomes if member.role is Role.IMPORTING else Role.OTHER,
            state="Z" if gone else "S",
            threads=1 if gone else 50,
            cpu_s=t / 10,
            gone=gone,
            exit_code=member.code if gone else None,
            exit_signal=member.signal if gone else None,
            exit_t=round(member.ends_t, 3) if gone and self.pidfds and member.ends_t is not None else None,
        )

    def _parent(self, member: Member) -> int:
        if member is self.launcher:
            return 1
        return self.controller.pid if self.controller is not None and member in self.ranks else LAUNCHER

    def _texts(self) -> list[tuple[float, Event]]:
        """The log, read every 0.2 s."""
        start = "\n".join(self._texts_begin()) + "\n"
        found = [(0.2, Event(0.2, "log", LogReading("/tmp/server.log", "8:1", 0, start, len(start))))]
        offset, arrived = len(start), 0.2
        for t, line in sorted(self.lines, key=lambda one: one[0]):
            read_t = t + self.random.uniform(0.01, 0.25)
            late = self.random.choice((0.0, 0.0, self.random.uniform(0, 1.0)))
            arrived = max(arrived, read_t + late)
            text = line + "\n"
            size = offset + len(text)
            reading = LogReading("/tmp/server.log", "8:1", offset, text, size)
            found.append((arrived, Event(read_t, "log", reading)))
            offset = size
        return found


class VllmCrash(Crash):
    """The same with vLLM's laws: an engine core between the launcher and the ranks, children ended by SIGTERM."""

    FAMILY = "vllm"

    def _die(self) -> None:
        self.controller = Member(150, Role.ENGINE)
        self.children = [self.controller, *self.ranks]
        self.members = [self.launcher, *self.children]
        kind = self.random.choice(("launcher", "rank", "rank", "rank", "failure", "engine"))
        self.story = f"vLLM: {kind} in {self.phase}, {len(self.ranks)} ranks{'' if self.logged else ', no log'}"
        if kind == "launcher":
            self.culprit = LAUNCHER
            self.launcher.end(self.died_t, signal=9)
        elif kind == "engine":
            self.culprit = self.controller.pid
            self.controller.end(self.died_t, signal=self.random.choice((9, 11)))
            self._pipe_closes(self.died_t)
            self._launcher_gives_up(self.died_t + self.random.uniform(0.1, 3.0))
        elif kind == "failure":
            self._rank_fails()
        else:
            self._rank_is_killed()

    def _rank_is_killed(self) -> None:
        victim = self.random.choice(self.ranks)
        self.culprit = victim.pid
        victim.end(self.died_t, signal=self.random.choice((9, 9, 9, 11, 7)))
        noticed = self.died_t + self.random.uniform(0.05, 1.0)
        if self.random.random() < 0.4:
            self._peers_complain(victim)
        if self.phase == "ready":
            place, code = self.ranks.index(victim), self.random.choice((f"-{victim.signal}", "None"))
            self._say(noticed, f"ERROR 11-29 15:00:00 [multiproc_executor.py:315] Worker proc VllmWorker-{place} died "
                      f"unexpectedly (exit code: {code}), shutting down executor.", "EngineCore pid=150")  # fmt: skip
        self._executor_ends(noticed)

    def _rank_fails(self) -> None:
        rank = self.random.choice(self.ranks)
        self.culprit = rank.pid
        self._raise(self.died_t, rank, self.random.choice(_FAILURES))
        rank.end(self.died_t + self.random.uniform(0.05, 1.0), code=self.random.choice((0, 1)))
        self._executor_ends(self.died_t + self.random.uniform(0.1, 1.0))

    def _executor_ends(self, t: float) -> None:
        """The engine core ends the other ranks by SIGTERM, those that stay by SIGKILL, then itself."""
        for rank in self.ranks:
            rank.end(t + self.random.uniform(0.05, 2.0), signal=self.random.choice((15, 15, 9)))
        last = max(rank.ends_t or 0.0 for rank in self.ranks)
        assert self.controller is not None
        self.controller.end(last + self.random.uniform(0.1, 1.0), code=1)
        self._launcher_gives_up(last + 1.2)

    def _pipe_closes(self, t: float) -> None:
        for rank in self.ranks:
            rank.end(t + self.random.uniform(0.1, 2.0), code=0)

    def _launcher_gives_up(self, t: float) -> None:
        self._say(t, "ERROR 11-29 15:00:00 [core_client.py:700] RuntimeError: Engine core initialization failed. See "
                  "root cause above. Failed core proc(s): {}", "APIServer pid=100")  # fmt: skip
        self.launcher.end(t + self.random.uniform(0.1, 1.0), code=0 if self.phase == "ready" else 1)

    def _raise(self, t: float, rank: Member, error: str) -> None:
        head = f"Worker_{rank.rank} pid={rank.pid}"
        where = "ERROR 11-29 15:00:00 [multiproc_executor.py:927]"
        for text in (
            f"{where} WorkerProc hit an exception.",
            f"{where} Traceback (most recent call last):",
            f'{where}   File "vllm/v1/executor/multiproc_executor.py", line 922, in worker_busy_loop',
            f"{where}     output = func(*args, **kwargs)",
            f"{where} {error}",
        ):
            self._say(t, text, head)

    def _say(self, t: float, text: str, rank: str = "") -> None:
        self.lines.append((t, f"({rank}) {text}"))

    def _texts_begin(self) -> list[str]:
        where = "INFO 11-29 14:59:00"
        lines = [f"(APIServer pid=100) {where} [utils.py:233] non-default args: {{'model': '/models/m', "
                 f"'tensor_parallel_size': {len(self.ranks)}}}"]  # fmt: skip
        if self.phase != "import":
            lines += [
                f"(Worker_{one.rank} pid={one.pid}) {where} [gpu_model_runner.py:4000] Starting to load model /models/m..."
                for one in self.ranks
            ]
        if self.phase == "ready":
            lines.append("(APIServer pid=100) INFO:     Application startup complete.")
        return lines


def _server(tp: int, family: str) -> Server:
    args = ServerArgs(tp=tp, model_path="/models/m")
    version = "0.5.23" if family == "sglang" else "0.32.0"
    return Server(
        LAUNCHER,
        1,
        args=args,
        args_source="command line",
        version=version,
        log_path="/tmp/server.log",
        log_kind="file",
        family=family,
    )


def _start(phase: str, ranks: list[str]) -> list[str]:
    dated = "[2026-11-29 14:59:00"
    lines = [f"{dated}] server_args=ServerArgs(model_path='/models/m', tp_size={len(ranks)})"]
    if phase != "import":
        lines += [f"{dated} {rank}] Init torch distributed begin." for rank in ranks]
        lines += [f"{dated} {rank}] Load weight begin. avail mem=130.00 GB" for rank in ranks]
    if phase == "ready":
        lines += [f"{dated}] The server is fired up and ready to roll!"]
    return lines
