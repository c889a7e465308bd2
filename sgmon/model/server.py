"""The watched server: who it is, how it was started, where its log goes."""

from __future__ import annotations

from msgspec import Struct

from sgmon.model.verdict import Missing


class ServerArgs(Struct, frozen=True):
    """The arguments that matter to a monitor. ``None`` means: not given, so the server's own default holds.

    known False: nothing could be read (a title hides the command line, and the log has no line with the arguments).
    Then the other fields are placeholders, not facts: nobody may show or compare them.
    """

    known: bool = True
    model_path: str = ""
    served_name: str = ""
    host: str = "127.0.0.1"
    port: int = 30000  # 0: the server picks one
    tp: int = 1
    dp: int = 1
    pp: int = 1
    ep: int = 1
    nnodes: int = 1
    node_rank: int = 0
    dp_attention: bool = False
    dist_init_addr: str = ""
    dist_timeout_s: float | None = None
    base_gpu_id: int = 0
    gpu_id_step: int = 1
    load_format: str = "auto"
    device: str = ""
    skip_server_warmup: bool = False
    disable_cuda_graph: bool = False
    gated_launch_port: int | None = None
    disaggregation_mode: str = ""
    ssl: bool = False
    wait_weights: bool = False
    headless: bool = False  # this node has no API server, no port and no ready line
    api_servers: int | None = None  # processes that share the port, each with a ready line of its own
    uds: str = ""  # UNIX socket instead of a port
    further_ports: tuple[int, ...] = ()  # of its other replicas and of what supervises them, each with a /health
    #: every argument as found, secrets masked: (name, value), for reports and diffs
    raw: tuple[tuple[str, str], ...] = ()

    @property
    def picks_port(self) -> bool:
        """Whether the server picks its port itself (``--port 0``)."""
        return self.known and self.port == 0

    @property
    def fixed_port(self) -> int | None:
        """The port that the arguments give it; None where they give none, or nothing has told them."""
        return self.port or None if self.known and not (self.headless or self.uds) else None


#: ``Server.args_source`` while a title hides the command line and nothing else has told the arguments
RETITLED = "retitled: not known yet"


class Server(Struct, frozen=True):
    """One server seen in /proc. ``start_ticks`` (field 22 of stat) tells a reused pid from the old one."""

    pid: int
    start_ticks: int
    started_epoch: float | None = None
    argv: tuple[str, ...] = ()
    args: ServerArgs = ServerArgs()
    args_source: str = ""  # words: "command line", "server_args line of the log" ..., or RETITLED
    version: str = ""
    version_source: str = ""
    site_packages: str = ""
    log_path: str = ""
    log_kind: str = ""  # file | deleted | command | stdin | pipe | pty | socket | null | none | hidden
    log_source: str = (
        ""  # "fd 1 and 2 of pid N" | "fd 2 of pid N -> pipe -> docker container ID (json-file)" | "--log"
    )
    log_command: tuple[
        str, ...
    ] = ()  # prints and follows the log, where no file can be read (docker logs, journalctl)
    visible_devices: str | None = None  # CUDA_VISIBLE_DEVICES of the launcher; None: not set, or not readable
    kill_s: float | None = None  # a ``timeout N`` above the launcher: N
    kill_epoch: float | None = None  # when that program began to count
    kill_pid: int | None = None
    simulated_gpus: str = ""  # path of the simulated GPU file (demo only)
    missing: tuple[Missing, ...] = ()
    log_relay: str = ""  # the program through which its output goes into the log's file: "tee (pid 7)"
    in_program: bool = False  # its launcher is a program of the user's own with an engine in it: maybe without HTTP
    log_writers: tuple[int, ...] = ()  # pids of other servers whose output goes into the same file, now or before
    family: str = "sglang"  # name of its ``ServerFamily``; what was recorded before there were families is SGLang's

    @property
    def args_known(self) -> bool:
        """Whether anything has told its arguments. Recordings from before ``known`` have ``args_source`` alone."""
        return self.args.known and self.args_source != RETITLED

    @property
    def port(self) -> int | None:
        """Where it serves; None: ``port_missing`` says why."""
        return self.args.fixed_port if self.args_known else None

    @property
    def port_missing(self) -> str:
        """Why ``port`` is None, in words; "" where it is known."""
        if not self.args_known:
            return "its arguments are not known"
        if self.args.headless:
            return "a node with --headless has none"
        if self.args.uds:
            return "it serves on a UNIX socket"
        return "it picks its port itself (--port 0)" if self.args.picks_port else ""

    @property
    def key(self) -> tuple[int, int]:
        """Tells it from a later process with the same pid."""
        return self.pid, self.start_ticks


class Candidate(Struct, frozen=True):
    """One server that could be watched; the picker lists them."""

    pid: int
    start_ticks: int
    title: str
    port: int | None = None
    model: str = ""
    started_epoch: float | None = None
    family: str = ""  # name of its ``ServerFamily``; "" in recordings from before this field


class Orphan(Struct, frozen=True):
    """A process of a server below no launcher. ports: on which it listens. launcher: the pid of one of its kind that
    lives in its session, and so may be its own: only its parent is known to be gone then."""

    pid: int
    start_ticks: int
    title: str
    ports: tuple[int, ...] = ()
    launcher: int | None = None


class ServerReading(Struct, frozen=True):
    """What the target probe saw. ``server`` is None while there is none; ``looked_for`` says what was looked for.

    ``gone_pid``: the process of ``server`` has ended. ``server`` stays named until another one takes its place.
    """

    server: Server | None = None
    candidates: tuple[Candidate, ...] = ()
    looked_for: str = ""
    gone_pid: int | None = None
    asked_port: int | None = None  # --port; with candidates and no server: none of them has it
    orphans: tuple[Orphan, ...] = ()
