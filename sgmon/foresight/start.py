"""A start as the rules see it: its family, its arguments, the facts, and the memory of its GPUs."""

from __future__ import annotations

from msgspec import Struct

from sgmon.model import GpuLink, ServerArgs
from sgmon.model.plan import MemoryTaken
from sgmon.model.preflight import Forecast, Level, ModelFolder, Preflight
from sgmon.model.verdict import NextStep
from sgmon.servers.family import ServerFamily
from sgmon.servers.start_rules import StartOptions


class RankGpu(Struct, frozen=True):
    """The GPU that a rank uses. others_bytes: held by processes that are not this start's; None: not known.
    holders: who they are, in words. capability: of its CUDA cores (9.0); None: not known. reserved_bytes: the
    driver's own."""

    rank: str
    index: int
    total_bytes: int | None = None
    others_bytes: int | None = None
    holders: str = ""
    pid: int | None = None
    capability: float | None = None
    orphans: tuple[int, ...] = ()  # pids of workers whose server is gone
    reserved_bytes: int = 0
    minor: int | None = None  # N of /dev/nvidiaN

    @property
    def usable_bytes(self) -> int | None:
        """What CUDA shows as its whole memory."""
        return None if self.total_bytes is None else self.total_bytes - self.reserved_bytes

    @property
    def free_bytes(self) -> int | None:
        """What this start can have of it."""
        usable = self.usable_bytes
        return None if usable is None or self.others_bytes is None else usable - self.others_bytes


class Start(Struct, frozen=True):
    """Everything that the rules look at."""

    family: ServerFamily
    args: ServerArgs
    facts: Preflight
    gpus: tuple[RankGpu, ...] = ()
    version: str = ""
    driver: str = ""
    cards: int | None = None  # GPUs that the driver lists; None: not asked
    taken: MemoryTaken | None = None  # by finished starts of this kind, the median; None: there are none
    taken_count: int = 0
    links: tuple[GpuLink, ...] = ()
    skew_s: float | None = None  # the log's clock less the host's, without the time zone; None: not known

    @property
    def options(self) -> StartOptions:
        return self.family.start.options(self.args)

    @property
    def on_cpu(self) -> bool:
        """By the arguments, or because the installed version is built for nothing else."""
        return self.args.device == "cpu" or self.family.start.cpu_build(self.version)

    @property
    def loads_files(self) -> bool:
        """Whether the weights come from the model's own safetensors files (no dummy, remote or sharded format)."""
        return self.args.load_format in self.family.start.file_formats

    @property
    def stays_local(self) -> bool:
        """Whether what is missing is not fetched: the model is a folder here, or the hub is switched off."""
        model = self.facts.model
        return self.offline or (model is not None and not model.from_cache)

    @property
    def offline(self) -> bool:
        """Whether the hub may not be asked."""
        return any(
            self.facts.variable(name).upper() in ("1", "ON", "YES", "TRUE")
            for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
        )

    def phase(self, stage: str) -> str:
        """The family's phase in which something of this stage fails; ``StartRules.stages``."""
        return dict(self.family.start.stages).get(stage, "")


def fine(rule: str, check: str, text: str, signal: str = "files") -> Forecast:
    return Forecast(rule, check, Level.OK, text, signal=signal)


def unknown(rule: str, check: str, text: str, signal: str = "files") -> Forecast:
    return Forecast(rule, check, Level.UNKNOWN, text, signal=signal)


def doubt(
    rule: str, check: str, text: str, step: NextStep | None = None, *, signal: str = "files", pid: int | None = None
) -> Forecast:
    return Forecast(rule, check, Level.WARNING, text, signal=signal, step=step, pid=pid)


def doomed(
    rule: str,
    check: str,
    text: str,
    why: str,
    phase: str,
    step: NextStep,
    *,
    signal: str = "files",
    pid: int | None = None,
) -> Forecast:
    """It cannot go well; ``why`` says why not."""
    return Forecast(rule, check, Level.WILL_FAIL, text, why, phase, signal, step, pid)


def label(folder: ModelFolder) -> str:
    """ "model", by the last part of its path."""
    return folder.asked.rstrip("/").rsplit("/", 1)[-1] or folder.asked
