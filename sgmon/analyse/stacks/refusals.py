"""Why py-spy could not read a stack: the true reason, the remedy by place, and what is still seen without it.

py-spy's own words mislead (without SYS_PTRACE it says "check that the process is running"), so the
state in /proc and the rights decide first, its text last. Everything here is pure.
"""

from __future__ import annotations

from msgspec import Struct

from sgmon.patterns import regex
from sgmon.text import clean

SIGNAL = "stack"
_VERSION = regex(r"\d+\.\d+[\w.]*")

STILL_SEEN = "wchan, CPU, memory, sockets, the log"
STILL_SEEN_OTHER = "state, CPU, memory, the log (not: wchan, blocked call, descriptors)"
STILL_SEEN_OWN = "wchan, bytes read, descriptors, sockets, the log (not: the blocked call)"


class Refusal(Struct, frozen=True):
    """One reason. key: names it for tests and for the probe (a "torn" stack is read once more)."""

    key: str
    why: str
    host: str = ""
    docker: str = ""
    kubernetes: str = ""
    still_seen: str = STILL_SEEN

    def remedy(self) -> str:
        """The remedies on one line, those that differ by place named by place."""
        parts = []
        if self.host and not self.docker and not self.kubernetes:
            parts.append(self.host)
        else:
            for place, text in (
                ("host", self.host),
                ("docker", self.docker),
                ("Kubernetes", self.kubernetes),
            ):
                if text:
                    parts.append(f"{place}: {text}")
        if self.still_seen:
            parts.append(f"still seen: {self.still_seen}")
        return "; ".join(parts)


def refusal(
    stderr: str = "",
    state: str = "",
    uid_same: bool | None = None,
    ptrace_scope: int | None = None,
    has_cap: bool | None = None,
    *,
    frozen: bool = False,
    tracer_pid: int | None = None,
    threads: int | None = None,
    timed_out: bool = False,
    nonblocking: bool = True,
) -> Refusal:
    """Why there is no stack.

    state: letter of /proc/PID/stat after the attempt, "" when the process is gone. uid_same: the
    watcher has the target's uid. has_cap: the watcher holds CAP_SYS_PTRACE over the target.
    Unknown stays None, and no reason is invented from it.
    """
    text = stderr.lower()
    if state in ("Z", "X") and (threads is None or threads <= 1):
        return ZOMBIE
    if state == "Z":
        return MAIN_EXITED
    if not state and _says(text, "no such process", "os error 3", "os error 2", "process exited"):
        return GONE
    if tracer_pid and not nonblocking:
        return _traced(tracer_pid)
    denied = _denied(text, uid_same, ptrace_scope, has_cap)
    if denied is not None:
        return denied
    if frozen and (timed_out or not nonblocking):
        return FROZEN
    if not nonblocking and (state in ("T", "t") or _says(text, "sigstop", "unexpected waitpid")):
        return STOPPED
    if timed_out:
        return UNINTERRUPTIBLE if state == "D" else TIMED_OUT
    if _says(text, "unsupported version of python", "implausible version"):
        return _newer_python(stderr)
    if _says(text, "python interpreter in the .data", "find python version", "find version string"):
        return NOT_PYTHON_YET
    if _says(text, "bad address", "os error 14", "utf8", "utf-8", "failed to copy", "interpreter at"):
        return TORN
    if _says(text, "native unwinding", "unwind", "failed to merge native"):
        return NATIVE_FAILED
    if not state:
        return GONE
    return _unknown(stderr)


def _denied(text: str, uid_same: bool | None, ptrace_scope: int | None, has_cap: bool | None) -> Refusal | None:
    """A refusal by the kernel. py-spy says so in three ways, one of which speaks of a process not running."""
    plain = _says(text, "permission denied", "operation not permitted", "os error 1)", "os error 13", "eperm")
    misleading = _says(text, "failed to get process executable name") and not _says(text, "os error 2")
    if not plain and not misleading:
        return None
    if ptrace_scope == 3:
        return SCOPE_3
    if uid_same is False and not has_cap:
        return OTHER_USER
    if ptrace_scope == 2 and not has_cap:
        return SCOPE_2
    if ptrace_scope == 1 and not has_cap:
        return SCOPE_1
    if has_cap is False:
        return NO_CAP
    return DENIED


def _says(text: str, *words: str) -> bool:
    return any(word in text for word in words)


def _traced(pid: int) -> Refusal:
    return Refusal(
        "traced",
        f"process {pid} traces it already (a debugger, strace or another py-spy), and only one can",
        host=f"end process {pid}, or use a non-blocking dump, which does not need to attach",
    )


def _newer_python(stderr: str) -> Refusal:
    version = _VERSION.search(stderr)
    name = f"Python {clean(version[0], 20)}" if version else "the server's Python"
    return Refusal(
        "newer-python",
        f"this py-spy does not know {name}",
        host="install a newer py-spy beside sgmon (pip install -U py-spy)",
    )


def _unknown(stderr: str) -> Refusal:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    first = lines[0] if lines else "no message"
    causes = [line for line in lines[1:6] if line[:2] in ("0:", "1:")]
    words = clean(" / ".join([first, *causes]), 160)
    return Refusal("unknown", f"py-spy failed: {words}", host="run the command by hand to see all of it")


NO_PYSPY = Refusal(
    "no-py-spy",
    "py-spy is not installed beside sgmon",
    host="pip install py-spy",
    docker="pip install py-spy in the container",
    kubernetes="the same, or put it into the image",
)
GONE = Refusal("gone", "the process is gone", still_seen="the log, the exit status if the kernel tells it")
ZOMBIE = Refusal(
    "zombie",
    "the process is dead (zombie): there is no stack any more, only an exit status to be collected",
    still_seen="exit status, the log",
)
MAIN_EXITED = Refusal(
    "main-exited",
    "the main thread has ended while other threads live on: there is no main stack",
    still_seen="the other threads, CPU, the log",
)
STOPPED = Refusal(
    "stopped",
    "the process is stopped (SIGSTOP), and a blocking dump cannot suspend it a second time",
    host="dump with --nonblocking: that works on a stopped process",
)
FROZEN = Refusal(
    "frozen",
    "its cgroup is frozen (docker pause), so a dump that pauses the process never returns",
    host="thaw the cgroup",
    docker="docker unpause",
    kubernetes="the runtime froze the container (checkpoint?): thaw it there",
)
UNINTERRUPTIBLE = Refusal(
    "uninterruptible",
    "the process is in uninterruptible sleep (D), and the dump did not return in time: its own evidence "
    "that the kernel waits for storage or a driver",
    host="see what it waits in: sudo cat /proc/PID/stack",
    still_seen="wchan, blocked call, descriptors; the kernel stack as root",
)
TIMED_OUT = Refusal(
    "timed-out",
    "the dump did not return in time (the machine is short of CPU, or the process has very many threads)",
    host="try again",
)
OTHER_USER = Refusal(
    "other-user",
    "the server belongs to another user",
    host="sudo sgmon, or run sgmon as the server's user",
    docker="docker exec -u 0 (or -u the server's uid), container with --cap-add SYS_PTRACE",
    kubernetes="kubectl exec as the same user; a debug container needs capabilities.add: [SYS_PTRACE]",
    still_seen=STILL_SEEN_OTHER,
)
SCOPE_1 = Refusal(
    "ptrace-scope-1",
    "kernel.yama.ptrace_scope is 1: only a parent may look into its children",
    host="sudo sgmon, or sudo sysctl kernel.yama.ptrace_scope=0",
    docker="--cap-add SYS_PTRACE (the sysctl is the host's)",
    kubernetes="securityContext.capabilities.add: [SYS_PTRACE] (the sysctl is the node's)",
    still_seen=STILL_SEEN_OWN,
)
SCOPE_2 = Refusal(
    "ptrace-scope-2",
    "kernel.yama.ptrace_scope is 2: only a process with SYS_PTRACE may look into others",
    host="sudo sgmon",
    docker="--cap-add SYS_PTRACE",
    kubernetes="securityContext.capabilities.add: [SYS_PTRACE]",
    still_seen=STILL_SEEN_OWN,
)
SCOPE_3 = Refusal(
    "ptrace-scope-3",
    "kernel.yama.ptrace_scope is 3: nobody may look into other processes, root neither, until the next boot",
    host="set kernel.yama.ptrace_scope below 3 in /etc/sysctl.d and reboot",
    docker="the same on the host",
    kubernetes="the same on the node",
    still_seen=STILL_SEEN_OWN,
)
NO_CAP = Refusal(
    "no-sys-ptrace",
    "root without the SYS_PTRACE capability (py-spy then says, wrongly, that the process does not run)",
    host="run sgmon with CAP_SYS_PTRACE (sudo on the host has it)",
    docker="--cap-add SYS_PTRACE, or run sgmon with the server's own uid and capabilities",
    kubernetes="securityContext.capabilities.add: [SYS_PTRACE]",
    still_seen=STILL_SEEN_OTHER,
)
DENIED = Refusal(
    "denied",
    "the kernel refused to let py-spy read the process (user, ptrace_scope, capability, seccomp, or the "
    "process made itself undumpable)",
    host="sudo sgmon",
    docker="--cap-add SYS_PTRACE, on old docker also --security-opt seccomp=unconfined",
    kubernetes="securityContext.capabilities.add: [SYS_PTRACE]",
)
NOT_PYTHON_YET = Refusal(
    "not-python",
    "no Python interpreter found in it: too early (it has only just been started), or not a Python process",
    host="try again in a second",
)
TORN = Refusal(
    "torn",
    "the stack changed while it was read without pausing the process (it runs)",
    host="try again; a blocking dump pauses it for about 10 ms and reads true",
)
NATIVE_FAILED = Refusal(
    "native-failed",
    "the C and C++ frames could not be unwound",
    host="dump without --native",
)
