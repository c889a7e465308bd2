"""What can be known of a start before it happens: facts (``Preflight``), what follows from them (``Forecast``)."""

from __future__ import annotations

from enum import Enum
from typing import Union

from msgspec import Struct

from sgmon.model.port import Listener
from sgmon.model.verdict import Missing, NextStep

ConfigValue = Union[bool, int, float, str]


class Level(str, Enum):
    """How a check came out. WILL_FAIL only for what cannot go well while the facts stay as they are."""

    OK = "ok"
    WARNING = "warning"
    WILL_FAIL = "will-fail"
    UNKNOWN = "unknown"


class Forecast(Struct, frozen=True):
    """What one rule says of a start. ``check``: what was looked at ("port 30000").

    why: the reason why it cannot go well, with its source; "" for a level below WILL_FAIL. phase: where it will fail.
    """

    rule: str
    check: str
    level: Level
    text: str
    why: str = ""
    phase: str = ""
    signal: str = "files"
    step: NextStep | None = None
    pid: int | None = None


class Shard(Struct, frozen=True):
    """A safetensors file. wanted_bytes: how long it must be by its own header; None where the header is not readable.

    weights: (dtype, bytes) of its tensors that are loaded for sure; spare_bytes: of those that may be left out (a
    tied head, a draft's layers, towers of other senses). error: why its header is none, in words.
    """

    name: str
    size_bytes: int
    wanted_bytes: int | None = None
    weights: tuple[tuple[str, int], ...] = ()
    spare_bytes: int = 0
    error: str = ""


class Place(str, Enum):
    """What a model's path turned out to be."""

    FOLDER = "folder"
    FILE = "file"
    ABSENT = "absent"
    HUB = "hub"  # a name on the hub that is not in its cache here
    URL = "url"
    HUNG = "hung"
    HIDDEN = "hidden"


class ModelFolder(Struct, frozen=True):
    """A model's (or tokenizer's) folder. ``asked``: the path as it was given; ``path``: where it is here.

    from_cache: a snapshot in the hub's cache. names: of its files. config: of config.json, a nested text_config's
    values where the outer level has none; None: there is none, ``config_error`` says why. indexed: the files that
    the safetensors index names; None: no index.
    """

    asked: str
    path: str = ""
    place: Place = Place.FOLDER
    from_cache: bool = False
    names: tuple[str, ...] = ()
    config: tuple[tuple[str, ConfigValue], ...] | None = None
    config_error: str = ""
    indexed: tuple[str, ...] | None = None
    index_error: str = ""
    shards: tuple[Shard, ...] = ()
    fstype: str = ""

    def get(self, name: str) -> ConfigValue | None:
        """A value of its config; None: not there."""
        return dict(self.config or ()).get(name)

    def number(self, name: str) -> int | None:
        """A whole number of its config; None: not there, or no number."""
        value = self.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


class Resolved(Struct, frozen=True):
    """An address of the arguments. what: "host" or "rendezvous". error: "" | "unknown" (no such name) | "failed".

    here: whether a socket can be bound to it; None: not tried. words: the resolver's ("Name or service not known").
    routed: whether the routing table leads to one of the addresses; None: not asked. source: the address of this
    machine from which it would be reached.
    """

    what: str
    name: str
    addresses: tuple[str, ...] = ()
    error: str = ""
    here: bool | None = None
    words: str = ""
    routed: bool | None = None
    source: str = ""


class Space(Struct, frozen=True):
    """The file system of a folder that the start writes to. free_bytes None: it did not answer (``hung``).

    free_files: how many more files it takes; None: not told, or no limit. quota_bytes: what the user's quota leaves;
    None: no quota, or not readable. new_bytes: of files that were made there since the server began.
    """

    what: str
    path: str
    free_bytes: int | None = None
    total_bytes: int | None = None
    read_only: bool = False
    remote: bool = False
    hung: bool = False
    fstype: str = ""
    free_files: int | None = None
    quota_bytes: int | None = None
    new_bytes: int = 0


class Limits(Struct, frozen=True):
    """What the machine and the group give to the start; None: not known, or no limit."""

    memory_available_bytes: int | None = None
    memory_total_bytes: int | None = None
    group_memory_bytes: int | None = None
    group_cpus: float | None = None
    cpus: int | None = None
    open_files: int | None = None
    locked_bytes: int | None = None  # of memory; None: no limit
    swap_bytes: int | None = None


class Installed(Struct, frozen=True):
    """What the files of the installed package tell. architectures None: not looked up.

    model_file: where the model's class is; asserts: its lines that demand divisible heads. proofs: names of the
    family's proofs whose text is in this version.
    cuda: the CUDA version that torch is built for; "": none, or not known. packages: (name, version) of installed
    packages that matter, as their folders name them. demands: (name, least version) that this version asks for.
    """

    architectures: tuple[str, ...] | None = None
    model_file: str = ""
    asserts: tuple[str, ...] = ()
    proofs: tuple[str, ...] = ()
    cuda: str = ""
    packages: tuple[tuple[str, str], ...] = ()
    demands: tuple[tuple[str, str], ...] = ()

    def package(self, name: str) -> str:
        """Its version; "" where it was not found."""
        return dict(self.packages).get(name, "")


class Card(Struct, frozen=True):
    """A GPU as the kernel has it. minor: N of /dev/nvidiaN. node: its NUMA node; None: not told. iommu: how the IOMMU
    treats it ("DMA", "DMA-FQ": addresses are translated; "identity": passed through); "": none, or not told."""

    minor: int
    bus: str = ""
    node: int | None = None
    iommu: str = ""


class Topology(Struct, frozen=True):
    """What lies between the GPUs. nodes: NUMA nodes of this machine; None: not readable. registry: the driver's
    RegistryDwords, which can switch peer access on or off."""

    cards: tuple[Card, ...] = ()
    nodes: int | None = None
    registry: str = ""


class Preflight(Struct, frozen=True):
    """Facts about a start, read from outside. key: the server that they are of; None: a command line alone.

    port, rendezvous: who listens there; None: not known. interfaces: (name, is it up). away: the server has other
    mounts or another network than sgmon, so that names and interfaces of this side say nothing.
    """

    key: tuple[int, int] | None = None
    model: ModelFolder | None = None
    tokenizer: ModelFolder | None = None
    draft: ModelFolder | None = None
    port: tuple[Listener, ...] | None = None
    rendezvous: tuple[Listener, ...] | None = None
    rendezvous_port: int | None = None
    resolved: tuple[Resolved, ...] = ()
    interfaces: tuple[tuple[str, bool], ...] = ()
    away: bool = False
    spaces: tuple[Space, ...] = ()
    stale_locks: tuple[tuple[str, float], ...] = ()  # (path, age in seconds)
    limits: Limits = Limits()
    installed: Installed = Installed()
    env: tuple[tuple[str, str], ...] = ()
    missing: tuple[Missing, ...] = ()
    topology: Topology = Topology()
    chat_template: Place | None = None  # of a file that the arguments name; None: they name none

    def variable(self, name: str) -> str:
        """A variable of the environment; "" when it is not set."""
        return dict(self.env).get(name, "")
