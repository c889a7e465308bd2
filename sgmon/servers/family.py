"""A family of servers: everything that sgmon must know about one kind of server, as data and pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct, field

from sgmon.model import ServerArgs
from sgmon.model.roles import Role
from sgmon.servers.phases import PhaseTable
from sgmon.servers.start_rules import StartRules

if TYPE_CHECKING:
    from typing import TypeAlias

    from sgmon.analyse.diagnosis.context import Context
    from sgmon.model import KillClock, Verdict


class Launch(NamedTuple):
    """A command line that starts a server. form: a word of the family ("module", "serve", "titled"), or "engine": a
    script whose own children are the family's workers. tail: the server's own arguments; None: a title hides them."""

    form: str
    tail: tuple[str, ...] | None = None


#: reads the server's config file: path -> names and values, {} when it cannot be read
ReadConfig: TypeAlias = "Callable[[str], Mapping[str, object]]"


class Slot(NamedTuple):
    """A place in the order in which a process spawns its children: what it spawns there."""

    role: Role
    rank: str = ""


class Discovery(Struct, frozen=True):
    """How servers of a family are found and their processes named, from command lines and titles alone.

    recognise: argv -> Launch, or None. role_of: argv -> Role (Role.OTHER: not of this family). role_of_comm: the same
    from the 15 bytes of comm, for a zombie. rank_of: title -> rank as the log spells it. expected_children: (role of
    the parent, args, version) -> what it spawns, in order. parse_args: a launch whose tail is known -> ServerArgs.
    args_from_log: text of the log -> ServerArgs, or None. full_flag: "--api-k" -> "api_key": aliases and
    abbreviations resolved. gpu_of: (args, rank) -> index among the visible GPUs, or None: not known.
    rank_below: (rank of the parent, own rank) -> rank. titled: (version) -> whether its processes get titles; where
    they do not, their place in birth order is all there is. forks: children may be forks that look like their parent.
    by_ray: whether Ray starts the workers, which are then no descendants of the launcher.
    own_env: how the names of the environment variables begin that the family's code sets in its own process before it
    spawns: a child has them in its environment, its parent did not begin with them.
    """

    recognise: Callable[[tuple[str, ...]], Launch | None]
    role_of: Callable[[tuple[str, ...]], Role]
    role_of_comm: Callable[[str], Role]
    rank_of: Callable[[str], str]
    expected_children: Callable[[Role, ServerArgs, str], tuple[Slot, ...]]
    parse_args: Callable[[Launch, ReadConfig], ServerArgs]
    args_from_log: Callable[[str], ServerArgs | None]
    full_flag: Callable[[str], str]
    gpu_of: Callable[[ServerArgs, str], int | None]
    rank_below: Callable[[str, str], str] = field(default=lambda parent, own: own)
    titled: Callable[[str], bool] = field(default=lambda version: True)
    forks: bool = False
    by_ray: Callable[[ServerArgs], bool] = field(default=lambda args: False)
    own_env: tuple[str, ...] = ()


class OtherText(Struct, frozen=True):
    """A program beside the servers whose log is no server's. label: what it is called; stages: what it does, the last
    that is in the text counts."""

    label: str
    pattern: re.Pattern[str]
    stages: tuple[tuple[re.Pattern[str], str], ...] = ()


class Heads(Struct, frozen=True):
    """Of a family whose lines begin with the name and the pid of who writes; so does each line of a traceback.

    time: finds the time in a line, group 1: month, day and clock without a year. worker: name -> whether a rank calls
    itself so, be it one that does not know its number yet. rank_of: (global rank, world size, rank of the name,
    arguments) -> rank, of the line with groups ``rank`` and ``world`` in which a process tells its number. first:
    the name of workers of versions whose rank 0 writes without a name. repeats: a line after which the traceback of
    an error that was logged is printed again. last_frame: a frame that only the traceback of a process's end has.
    raises: in the prefix of lines by which a process tells the exception that it ends of; no end of a traceback
    of theirs is waited for. prints: the whole prefix of what a rank or an engine prints past its logger.
    """

    time: re.Pattern[str]
    worker: Callable[[str], bool]
    rank_of: Callable[[int, int, str, ServerArgs | None], str]
    first: str
    repeats: re.Pattern[str]
    last_frame: re.Pattern[str]
    raises: re.Pattern[str] | None = None
    prints: re.Pattern[str] | None = None


class LogRules(Struct, frozen=True, eq=False):
    """How a family writes its log. What its lines mean is in ``milestones.toml`` and ``errors.toml`` of ``folder``.

    family: its name. others: logs of programs around it. errors: the folder of ``errors.toml`` where it is another's.
    dated: how a record with a time begins; "": in several ways, ``inner`` finds them. inner_hints: one of them is in
    every text with ``inner``. record: the prefix of the server's own lines, matched at their beginning; groups
    ``time``, and where the family has them ``ranks``, ``level`` and, with ``heads``, ``pid``. inner: such a prefix
    inside a line (glued, torn, or behind another program's prefix). rank: group ``ranks`` -> rank. bare_rank: older
    prefixes without a time, group ``rank`` or ``gpu``. speaks: found in lines that only this family writes. args: the
    line with the server's arguments -> ServerArgs; restart: its literal, which begins a new start. version: group 1
    is the server's version. more: literals of further lines to look at. gates: see ``analyse/log/keys.py``. bars:
    word of a tqdm description -> milestone, the first in the text wins. probe: what our own look at the server leaves
    in the log, and what is printed by the clock, whether anything moves or not. begins: how a line begins that may
    become such a one. steady_record, steady_body: frequent lines of numbers alone; group 1 of a body names it.
    fatal_header: opens the traceback of a lost process. benign_header: of one that was caught. requests: how a record
    begins that holds the text of a request: no rule is asked of it. serves: in records that only a server writes that
    goes on serving. ends: a frame of the function that is all of a process: it is in a traceback only when the
    process ends of it. calls: a source line that calls a method of the ranks by its name, group 1, which called_in (a
    file) has. caught: the outermost frame of one that a handler of requests caught. hints: a line that explains the
    next exception of its rank -> name of the error. died: a group with a number is the index of the process that was
    lost, group ``pid`` its pid. filtered: first and last version whose model logger let only rank 0 speak. sizes:
    (degree of parallelism, name) where the line with the arguments has all; elsewhere it has those that differ from
    the default.
    """

    family: str
    folder: str
    record: re.Pattern[str]
    inner: re.Pattern[str]
    rank: Callable[[str], str]
    speaks: re.Pattern[str]
    args: Callable[[str], ServerArgs | None]
    restart: str
    version: re.Pattern[str]
    fatal_header: re.Pattern[str]
    benign_header: re.Pattern[str]
    died: re.Pattern[str]
    bare_rank: re.Pattern[str] | None = None
    heads: Heads | None = None
    sizes: tuple[tuple[str, str], ...] = ()
    errors: str = ""
    others: tuple[OtherText, ...] = ()
    inner_hints: tuple[str, ...] = ("][", "[20", "[rank")
    dated: str = "[20"
    more: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    bars: tuple[tuple[str, str], ...] = ()
    probe: re.Pattern[str] | None = None
    begins: tuple[str, ...] = ()
    steady_record: re.Pattern[str] | None = None
    steady_body: tuple[re.Pattern[str], ...] = ()
    hints: tuple[tuple[re.Pattern[str], str], ...] = ()
    requests: re.Pattern[str] | None = None
    serves: re.Pattern[str] | None = None
    ends: re.Pattern[str] | None = None
    caught: re.Pattern[str] | None = None
    calls: re.Pattern[str] | None = None
    called_in: str = ""
    filtered: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())


class StackRules(Struct, frozen=True):
    """What stacks of a family's processes mean. The general rules for NCCL, CUDA, torch and the OS are added to it.

    folder: the package with its ``stack_phases.toml``, ``waits.toml`` and ``causes.toml``; "": it has none.
    order: its phases as they usually follow; a server is in the first of its ranks'. during: a phase in words
    ("in the weight load"). loops: frames of the loop in which a started rank waits for work; "": its last phase
    is that loop alone.
    packages: where files of its own code begin ("sglang/"); source_tree: regular expression of the same
    in a source tree. draft: stack pattern of a draft model's frames; serving: of a launcher whose server loop
    runs (``sgmon/analyse/stacks/pattern.py``).
    """

    folder: str = ""
    order: tuple[str, ...] = ()
    during: Callable[[str], str] = str
    packages: tuple[str, ...] = ()
    source_tree: str = ""
    draft: str = ""
    serving: str = ""
    loops: str = ""


class Health(Struct, frozen=True):
    """The HTTP side. path: asked for health. ok_means_ready: (version) -> a 200 proves readiness on its own.
    timeout_s: after so long its answer is "no_response". why_503: (version, args) -> a known reason for a 503 that
    stays after the ready line, "" for none. startup_metric: Prometheus metric of /metrics with the seconds of each
    part of the start (label ``phase``); "": it has none."""

    path: str = "/health"
    timeout_s: float = 25.0
    startup_metric: str = ""
    ok_means_ready: Callable[[str], bool] = field(default=lambda version: True)
    why_503: Callable[[str, ServerArgs], str] = field(default=lambda version, args: "")


def _none_restarts(role: Role, becomes: Role, args: ServerArgs) -> bool:
    return False


class Ends(Struct, frozen=True):
    """How processes of a family end when one of them has.

    own_end: signals by which the launcher ends itself after a failure and at the end of a shutdown; it says so in its
    log before. kills: signals by which it, or the kernel when it ends (PR_SET_PDEATHSIG), ends its children.
    clean_up_s: a parent may end so long after the children that it killed.
    restarts: (role, what an importing child becomes, args) -> its manager starts another one in its place.
    needed: helpers without which the server cannot answer: the ranks may load on, and it fails all the same.
    """

    own_end: frozenset[int] = frozenset()
    kills: frozenset[int] = frozenset({9})
    clean_up_s: float = 2.0
    restarts: Callable[[Role, Role, ServerArgs], bool] = _none_restarts
    needed: frozenset[Role] = frozenset()


class OwnTime(Struct, frozen=True):
    """A number that the server gives of its own start: name in its log or metrics, and what it is in words. begin,
    end: the milestones between which sgmon sees the same; "": it sees nothing like it."""

    name: str
    words: str
    begin: str = ""
    end: str = ""


class ServerFamily(Struct, frozen=True):
    """One kind of server. name: in recordings and JSON; label: on the screen; package: its Python distribution.

    launched_by: command lines and titles by which it is found, for the page that waits for one. start_command: the
    beginning of a usual one. env_prefixes: of the environment variables that change how it starts. packages: further
    distributions whose version a report names. duration_flags: arguments that change how long a start takes.
    node_flags: arguments and environment variables that are another on each node of a server that runs on several.
    compile_caches: (environment variable, default folder, ends of the names of its lock files).
    role_labels: what this family calls a role on the screen ("scheduler" for Role.WORKER).
    rules: its own waits that are meant, tried before the general ones. kill_clocks: its time-outs that run now.
    ends: how its processes end when one of them has. own_times: what it tells of the length of its start.
    folder: the package of its data files (``milestones.toml``, ``errors.toml``, ``stack_phases.toml``,
    ``waits.toml``, ``causes.toml``).
    """

    name: str
    label: str
    package: str
    default_port: int
    launched_by: str
    start_command: str
    discovery: Discovery
    role_labels: Mapping[Role, str]
    folder: str
    log: LogRules | None = None  # None: how it writes its log is not known
    phases: PhaseTable = PhaseTable()
    health: Health = Health()
    stacks: StackRules = StackRules()
    rules: tuple[Callable[[Context], Verdict | None], ...] = ()
    kill_clocks: Callable[[Context], tuple[KillClock, ...]] = field(default=lambda context: ())
    ends: Ends = Ends()
    own_times: tuple[OwnTime, ...] = ()
    env_prefixes: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    duration_flags: frozenset[str] = frozenset()
    node_flags: frozenset[str] = frozenset()
    compile_caches: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    start: StartRules = StartRules()  # for what will fail, before it fails
    #: parts of a bug report in the order of its form, with their headings; "": under the one before
    report: tuple[tuple[Literal["bug", "reproduction", "environment"], str], ...] = (
        ("bug", "Describe the bug"),
        ("reproduction", "Reproduction"),
        ("environment", "Environment"),
    )


@lru_cache(maxsize=8)
def unknown_family(name: str) -> ServerFamily:
    """A family that recognises nothing: for recordings of servers that this version does not know."""
    return ServerFamily(
        name=name,
        label=name or "unknown server",
        package="",
        default_port=0,
        launched_by="",
        start_command="",
        discovery=Discovery(
            recognise=lambda argv: None,
            role_of=lambda argv: Role.OTHER,
            role_of_comm=lambda comm: Role.OTHER,
            rank_of=lambda title: "",
            expected_children=lambda parent, args, version: (),
            parse_args=lambda launch, read_config: ServerArgs(known=False),
            args_from_log=lambda text: None,
            full_flag=lambda flag: flag,
            gpu_of=lambda args, rank: None,
        ),
        role_labels={},
        folder="",
    )
