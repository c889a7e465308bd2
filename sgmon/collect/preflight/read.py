"""All facts of a start: of a server that runs already, or of a command line that nobody has started."""

from __future__ import annotations

import os

from msgspec.structs import replace

from sgmon.collect.preflight import disks, installed, locks, machine, models, topology
from sgmon.collect.probes.listeners import Listeners
from sgmon.collect.probes.start import telling
from sgmon.discovery import inner
from sgmon.discovery.inner import Inside
from sgmon.model import Listener, Missing, Server
from sgmon.model.preflight import ModelFolder, Place, Preflight
from sgmon.servers import registry


def read(root: str, server: Server, *, started: bool = True) -> Preflight:
    """Facts as they are now. started False: ``server`` is made from a command line; its pid is sgmon's own, whose
    mounts, environment and working directory the start would have."""
    inside = inner.of(root, server.pid)
    if started and not _is_shown(root, server.pid):
        return Preflight(
            server.key, ModelFolder(server.args.model_path, place=Place.HIDDEN), away=True, missing=(_HIDDEN,)
        )
    environ = inner.environment(root, server.pid) if started else dict(os.environ)
    known = environ or {}
    family = registry.get(server.family)
    options = family.start.options(server.args)
    port = machine.rendezvous(server)[1] if family.start.meets(server.args) else None
    # who listens is asked first: what is slow below gives the server time to open its own port
    http = None if started or not server.args.port else _listeners(root, None, server.args.port)
    meeting = None if port is None else _listeners(root, server.pid if started else None, port)
    model = models.look(inside, server, server.args.model_path)
    away = bool(inside.prefix) or _other_network(root, server.pid)
    return Preflight(
        key=server.key if started else None,
        model=model,
        tokenizer=_other(inside, server, options.tokenizer_path),
        draft=_other(inside, server, options.draft_path),
        port=http,
        rendezvous=meeting,
        rendezvous_port=port,
        resolved=machine.resolved(server, meets=family.start.meets(server.args)),
        interfaces=machine.interfaces(),
        away=away,
        spaces=disks.spaces(inside, server, known),
        stale_locks=() if away else locks.stale(root, known),
        limits=machine.limits(inside),
        installed=installed.look(inside, family, server.site_packages, _architectures(model)),
        env=_settings(server, known),
        missing=() if environ else (_BLANK if environ is not None else _HIDDEN,),
        topology=topology.look(root),
        chat_template=models.template(inside, options.chat_template),
    )


_BLANK = Missing("environment", "blank: the process has set its title before it was read")
_HIDDEN = Missing("environment", "hidden: the process belongs to another user", "run sgmon as its user or with sudo")


def _other(inside: Inside, server: Server, path: str) -> ModelFolder | None:
    """The tokenizer's or draft model's folder, where it is not the model's own."""
    return None if path in ("", server.args.model_path) else models.look(inside, server, path)


def _architectures(model: ModelFolder | None) -> tuple[str, ...]:
    named = model.get("architectures") if model is not None and model.place is Place.FOLDER else None
    return tuple(str(named).split(",")) if named else ()


def _settings(server: Server, environ: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Masked. A title blanks the environment: what was read of the visible GPUs before that stays."""
    found = dict(telling({name: value for name, value in environ.items() if value}))
    if server.visible_devices is not None:
        found["CUDA_VISIBLE_DEVICES"] = server.visible_devices
    return tuple(sorted(found.items()))


def _listeners(root: str, pid: int | None, port: int) -> tuple[Listener, ...] | None:
    """Who listens on the port; before a start nobody is one of ours. None: the socket table cannot be read."""
    try:
        found = Listeners(root).find(pid, frozenset(), port, 0.0)
    except OSError:
        return None
    return found if pid is not None else tuple(replace(one, ours=False) for one in found)


def _is_shown(root: str, pid: int) -> bool:
    """Whether it can be seen which mounts and which working directory the process has: without, its paths may be
    others than ours."""
    try:
        os.readlink(f"{root}/{pid}/ns/mnt")
        os.readlink(f"{root}/{pid}/cwd")
    except OSError:
        return False
    return True


def _other_network(root: str, pid: int) -> bool:
    try:
        return os.readlink(f"{root}/{pid}/ns/net") != os.readlink("/proc/self/ns/net")
    except OSError:
        return False
