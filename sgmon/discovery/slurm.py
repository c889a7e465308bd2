"""The output file of a Slurm job: what srun on this node, or the batch script, writes."""

from __future__ import annotations

from sgmon.discovery import inner
from sgmon.patterns import regex
from sgmon.proc import fds, files, stat

_GROUP = regex(r"slurm\S*?/job_(\d+)")
_WRITERS = ("srun", "slurm_script")  # srun collects the output of all tasks; without it the script's is the task's


def job(root: str, pid: int) -> str:
    """The id of the Slurm job that a process belongs to; "" for none."""
    try:
        group = _GROUP.search(files.text(f"{root}/{pid}/cgroup"))
    except OSError:
        group = None
    return group[1] if group else (inner.environment(root, pid) or {}).get("SLURM_JOB_ID", "")


def output(root: str, job_id: str) -> tuple[int, str] | None:
    """(pid, path) of the process that writes the job's output here; None when it writes on another node."""
    found: dict[str, tuple[int, str]] = {}
    for pid in stat.pids(root):
        try:
            name = stat.read(root, pid).comm
            if name not in _WRITERS or job(root, pid) != job_id:
                continue
            target = fds.link(root, pid, 1)
        except OSError:
            continue
        if target and fds.kind(target) == "file":
            found[name] = (pid, target)
    return next((found[name] for name in _WRITERS if name in found), None)
