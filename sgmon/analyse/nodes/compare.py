"""Versions, flags and environment of all nodes side by side. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sgmon.model import ComparedValue, Evidence, NodeView, Snapshot
from sgmon.patterns import regex
from sgmon.servers import registry

#: "/venv/lib/python3.12/site-packages"
_PYTHON = regex(r"python(\d\.\d+)")
#: of so many differences a verdict names the values
NAMED = 2


def compared(views: Sequence[NodeView]) -> tuple[ComparedValue, ...]:
    """What differs first, then versions, then flags. Flags that are meant to differ never do."""
    served = [view.server for view in views if view.server is not None]
    if not served:
        return ()
    family = registry.get(served[0].family)
    rows = [
        _row("version", family.label, [v.server.version if v.server is not None else None for v in views]),
        _row("version", "NCCL", [_nccl(view.snapshot) for view in views]),
        _row("version", "driver", [view.snapshot.gpu.driver or None for view in views]),
        _row("version", "CUDA of torch", [_cuda(view.snapshot) for view in views]),
        _row("version", "Python", [_python(view) for view in views]),
        _row("version", "GPUs", [_gpus(view.snapshot) for view in views]),
        _row("version", "sgmon", [view.reading.collector or None if view.reading else None for view in views]),
    ]
    flags = [dict(v.server.args.raw) if v.server is not None and v.server.args_known else None for v in views]
    names = sorted({name for given in flags if given is not None for name in given})
    for name in names:
        values = [None if given is None else given.get(name, "") for given in flags]
        row = _row("flag", name, values)
        own = name in family.node_flags
        rows.append(ComparedValue(row.kind, row.name, row.values, differs=row.differs and not own))
    rows += _environment(views, family.node_flags)
    known = [row for row in rows if any(row.values)]
    return tuple(sorted(known, key=lambda row: not row.differs))


def difference_facts(rows: Sequence[ComparedValue], views: Sequence[NodeView]) -> list[Evidence]:
    """One fact that names what differs; none where nothing does."""
    differing = [row for row in rows if row.differs]
    if not differing:
        return []
    told = "; ".join(_words(row, views) for row in differing[:NAMED])
    more = f"; {len(differing) - NAMED} more" if len(differing) > NAMED else ""
    return [Evidence("nodes", f"differ: {told}{more}")]


def _words(row: ComparedValue, views: Sequence[NodeView]) -> str:
    """ "NCCL 2.27.3 on node-a, 2.28.1 on node-b": one node a value."""
    seen: dict[str, str] = {}
    for value, view in zip(row.values, views, strict=True):
        if value is not None:
            seen.setdefault(value, view.name)
    parts = [f"{value or 'not given'} on {name}" for value, name in list(seen.items())[:3]]
    return f"{row.name} {', '.join(parts)}"


def _row(kind: str, name: str, values: Sequence[str | None]) -> ComparedValue:
    known = {value for value in values if value is not None and (value or kind != "version")}
    return ComparedValue(kind, name, tuple(values), differs=len(known) > 1)


def _nccl(snapshot: Snapshot) -> str | None:
    """As its log says it."""
    for milestone in snapshot.log.milestones:
        if milestone.name == "nccl_comm" and (version := dict(milestone.fields).get("version")):
            return version
    return None


def _cuda(snapshot: Snapshot) -> str | None:
    preflight = snapshot.preflight
    installed = preflight.installed if preflight is not None else None
    return (installed.cuda or None) if installed is not None else None


def _environment(views: Sequence[NodeView], own: frozenset[str]) -> list[ComparedValue]:
    """Variables of the servers' environments, where those could be read. own: those that differ by design."""
    read = [v.snapshot.preflight for v in views]
    given = [dict(one.env) if one is not None and one.key is not None else None for one in read]
    names = sorted({name for env in given if env is not None for name in env})
    rows = [_row("env", name, [None if env is None else env.get(name, "") for env in given]) for name in names]
    return [ComparedValue(r.kind, r.name, r.values, differs=r.differs and r.name not in own) for r in rows]


def _python(view: NodeView) -> str | None:
    """The server's own; None: its packages are not where a version is in the path."""
    found = _PYTHON.search(view.server.site_packages) if view.server is not None else None
    return found[1] if found else None


def _gpus(snapshot: Snapshot) -> str | None:
    """ "8 x NVIDIA H200"."""
    names = [gpu.name for gpu in snapshot.gpu.gpus if gpu.name]
    return f"{len(names)} x {', '.join(sorted(set(names)))}" if names else None
