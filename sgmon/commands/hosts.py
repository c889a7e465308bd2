"""Which nodes a command watches: ``--host``, ``--hosts``, ``--via``, and Slurm's list."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from sgmon.remote.hosts import HostError, expand, in_file, reach, unique

#: the word of --hosts that names no file
SLURM = "slurm"
_LISTS = ("SLURM_JOB_NODELIST", "SLURM_NODELIST")
SRUN = "srun --overlap --nodes=1 --ntasks=1 --nodelist={} --"


def add_host_arguments(parser: argparse.ArgumentParser) -> None:
    """Those of the commands that can watch several nodes."""
    group = parser.add_argument_group("several nodes (default: this machine alone)")
    group.add_argument(
        "--host",
        metavar="NAME",
        action="append",
        default=[],
        help="watch this node, by ssh (repeatable); node[1-4]",
    )
    group.add_argument(
        "--hosts", metavar="FILE", default="", help="a name on each line; slurm: the nodes of this job"
    )
    group.add_argument(
        "--via",
        metavar="CMD",
        default="",
        help="how to start a program there, {} is the name: 'kubectl exec -i {} --', 'docker exec -i {}' (no shell)",
    )
    group.add_argument("--remote-python", metavar="P", default="", help="Python 3.8+ there (default python3)")


def _which(program: str) -> str | None:
    import shutil  # with its compressors 2 ms, for --hosts slurm alone

    return shutil.which(program)


def hosts_of(
    args: argparse.Namespace,
    environ: Mapping[str, str] = os.environ,
    which: Callable[[str], str | None] = _which,
) -> tuple[tuple[str, ...], str]:
    """(names, template): no names where none are asked for. Raises ``HostError``."""
    via: str = args.via
    names = [name for word in args.host for name in (expand(word) or (word,))]
    if args.hosts == SLURM:
        names += _of_slurm(environ)
        via = via or (SRUN if which("srun") else "")
    elif args.hosts:
        names += _of_file(args.hosts)
    if not names:
        lone = next((flag for flag, given in (("--via", via), ("--remote-python", args.remote_python)) if given), "")
        if lone:
            raise HostError(f"{lone} says how to reach other nodes, but none is named: add --host NAME")
        return (), ""
    for name in names:
        reach(name, via, args.remote_python)
    _check_others(args, names)
    return unique(names), via


def _of_slurm(environ: Mapping[str, str]) -> tuple[str, ...]:
    listed = next((environ[name] for name in _LISTS if environ.get(name)), "")
    if not listed:
        raise HostError(
            "--hosts slurm: there is no $SLURM_JOB_NODELIST here; inside the job (salloc, sbatch) there is"
        )
    return expand(listed)


def _of_file(path: str) -> tuple[str, ...]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        words = err.strerror if isinstance(err, OSError) else "it is no text"
        raise HostError(f"--hosts {path} cannot be read: {words}") from None
    names = in_file(text)
    if not names:
        raise HostError(f"--hosts {path} names no host")
    return names


def _check_others(args: argparse.Namespace, names: list[str]) -> None:
    """What else was asked for must make sense on another node."""
    if args.log == "-":
        raise HostError("--log - is this command's own input, but the server is on another node: leave one out")
    if args.pid is not None and len(set(names)) > 1:
        raise HostError("--pid names a process of one node, but several are watched: use --port, or one --host")
