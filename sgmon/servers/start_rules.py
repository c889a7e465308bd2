"""What a family must tell so that a start can be judged before it has happened (``sgmon.foresight``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct, field

from sgmon.model import ServerArgs
from sgmon.servers.memory_rules import MemoryRules

if TYPE_CHECKING:
    from typing import TypeAlias


class StartOptions(Struct, frozen=True):
    """What the arguments say beyond ``ServerArgs``. memory_share: of the GPU's memory (0..1); None: not given.

    partly_elsewhere: weights are kept on the host or made smaller, so that their bytes on a GPU are not known.
    chat_template: a file, a built-in name, or the text itself. experts_divided: expert parallelism is asked for.
    any_nodes: the ranks need not be divided evenly among the nodes.
    """

    tokenizer_path: str = ""
    no_tokenizer: bool = False
    trust_remote_code: bool = False
    quantization: str = ""
    memory_share: float | None = None
    draft_path: str = ""
    partly_elsewhere: bool = False
    chat_template: str = ""
    experts_divided: bool = False
    any_nodes: bool = False


class Beside(Struct, frozen=True):
    """An installed package, from the first to the last release (both included), of any of these names."""

    names: tuple[str, ...]
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = (1 << 30,)


class Defect(Struct, frozen=True):
    """A version that is known to fail: first and last release, for which arguments, beside which packages (all of
    them), in words, and where it is reported."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    text: str
    report: str
    advice: str
    applies: Callable[[ServerArgs], bool] = field(default=lambda args: True)
    beside: tuple[Beside, ...] = ()


class SharedMemory(Struct, frozen=True):
    """What a start takes of /dev/shm for sure. size_bytes: at least; proof: of ``StartRules.proofs``, that the
    installed version does so; taker: "the queue to the ranks"; why: what happens where it is not there."""

    size_bytes: int
    proof: str
    taker: str
    why: str


SharedMemoryOf: TypeAlias = "Callable[[ServerArgs, Callable[[str], str]], SharedMemory | None]"


class StartRules(Struct, frozen=True):
    """stages: (stage, phase in which something of it fails); stages: arguments, tokenizer, template, ranks,
    rendezvous, weights, kv_cache, port. file_formats: load formats that read the model's own safetensors.
    unread_formats: those that read no weight file of the model. share_of: "free" or "total",
    what ``memory_share`` is a share of. shares_port: whether the server sets SO_REUSEPORT. pads_heads: whether
    heads that cannot be divided are, or may be, padded or divided otherwise. gpus: (args, version) ->
    the CUDA numbers of this node's ranks.
    rendezvous_variable: set when the ranks meet elsewhere. meets: whether the ranks use the rendezvous address.
    shared_memory: (args, value of a variable) -> what the start takes of /dev/shm; None: nothing for sure.

    models: folder of the package's model files, or the file that lists them. model_class: names of the classes that
    such a file offers, groups ``list`` or ``one``. heads_assert: its line that demands divisible heads; "": none.
    proofs: (name, file of the package, text that is in it where this version checks that). demands: (file, pattern)
    of least versions of packages that it asks for; groups ``name`` and ``version``. always_demanded: those of them
    that it asks for on every CUDA device. no_demands: set to switch that off.
    cpu_build: version -> whether it is built for CPUs alone.
    """

    options: Callable[[ServerArgs], StartOptions] = field(default=lambda args: StartOptions())
    stages: tuple[tuple[str, str], ...] = ()
    file_formats: frozenset[str] = frozenset()
    unread_formats: frozenset[str] = frozenset({"dummy"})
    share_of: str = "free"
    shares_port: Callable[[ServerArgs], bool] = field(default=lambda args: True)
    pads_heads: Callable[[ServerArgs], bool] = field(default=lambda args: True)
    gpus: Callable[[ServerArgs, str], tuple[int | None, ...]] = field(default=lambda args, version: ())
    rendezvous_variable: str = ""
    meets: Callable[[ServerArgs], bool] = field(default=lambda args: True)
    shared_memory: Callable[[ServerArgs, Callable[[str], str]], SharedMemory | None] = field(
        default=lambda args, get: None
    )
    models: str = ""
    model_class: str = ""
    heads_assert: str = ""
    proofs: tuple[tuple[str, str, str], ...] = ()
    defects: tuple[Defect, ...] = ()
    cpu_build: Callable[[str], bool] = field(default=lambda version: False)
    memory: MemoryRules = MemoryRules()
    demands: tuple[str, str] = ("", "")
    always_demanded: frozenset[str] = frozenset()
    no_demands: str = ""
