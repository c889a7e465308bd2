"""GPU readings. N/A is None, never 0."""

from __future__ import annotations

from msgspec import Struct

from sgmon.model.verdict import Missing


class GpuProcess(Struct, frozen=True):
    """A holder of GPU memory as the driver lists it. used_bytes None: the driver does not tell."""

    pid: int
    used_bytes: int | None = None
    rank: str = ""
    name: str = ""
    inferred: bool = False


class GpuSlice(Struct, frozen=True):
    """One MIG instance of a GPU. slot: its place on the parent."""

    slot: int
    name: str = ""
    uuid: str = ""
    total_bytes: int | None = None
    used_bytes: int | None = None
    processes: tuple[GpuProcess, ...] = ()


class Gpu(Struct, frozen=True):
    """One GPU. used_bytes excludes the driver's reserve where the driver tells it (memory v2)."""

    index: int
    name: str = ""
    uuid: str = ""
    total_bytes: int | None = None
    used_bytes: int | None = None
    reserved_bytes: int | None = None
    util_percent: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: int | None = None
    sm_clock_mhz: int | None = None
    pcie_rx_bytes_s: int | None = None
    pcie_tx_bytes_s: int | None = None
    throttle: tuple[str, ...] = ()
    ecc_errors: int | None = None
    mig: bool = False
    processes: tuple[GpuProcess, ...] = ()
    ranks: tuple[str, ...] = ()
    ranks_inferred: bool = False
    error: str = ""  # this GPU does not answer: why; every other value is then None
    missing: tuple[Missing, ...] = ()
    slices: tuple[GpuSlice, ...] = ()
    xids: tuple[int, ...] = ()  # driver errors since the watch began, oldest first (79: fell off the bus)
    minor: int | None = None  # N of /dev/nvidiaN; not always the index


class GpuLoad(Struct, frozen=True):
    """What a card does, by ten seconds of its utilisation and power. One decision: panel and verdict read it.

    work: "spins" (pinned at 100 % with flat power near idle: it waits in a collective), "works", "idle", or "" (not
    known). idle_w: watts with a context and no load; work_w: the most that it drew at work; None: not seen yet.
    low_w, high_w, util_min, util_max: of these ten seconds; None: too few samples.
    """

    index: int
    work: str = ""
    idle_w: float | None = None
    work_w: float | None = None
    low_w: float | None = None
    high_w: float | None = None
    flat: bool = False
    util_min: int | None = None
    util_max: int | None = None


class GpuLink(Struct, frozen=True):
    """Whether GPU ``one`` can read the memory of GPU ``two``. peer: "ok", or why not ("chipset not supported").
    nvlink: whether NVLink connects them; None: not told."""

    one: int
    two: int
    peer: str = "ok"
    nvlink: bool | None = None


class GpuReading(Struct, frozen=True):
    """All GPUs, or why there are none.

    While NVML fails, ``unavailable`` says why, ``state`` in one word, ``failing_s`` for how many seconds; ``gpus``
    then keeps the known GPUs by name only (their values are None), so that a panel does not jump.
    state: "" (readings are good) | off | no-driver | silent | died | failed.
    """

    gpus: tuple[Gpu, ...] = ()
    driver: str = ""
    source: str = ""  # "NVML" | "simulated"
    simulated: bool = False
    unavailable: str = ""  # no NVML: why
    remedy: str = ""
    state: str = ""
    failing_s: float | None = None
    links: tuple[GpuLink, ...] = ()  # pairs of GPUs; empty: one GPU, or not told
