"""What the log panel says when there is no log to show, and why silence is not a buffer."""

from __future__ import annotations

from sgmon.servers import names
from sgmon.text import clean
from sgmon.units import rate, size
from widgets.ages import ago
from widgets.line import Line

#: for the help screen
HELD_BACK = """\
Is output held back?

A server logs through Python's logging, which writes to stderr and is flushed at the end of every line, also into a
file. When its log is silent, it has logged nothing: no buffer holds the lines back.

What can be held back is stdout: print() of Python code without -u or PYTHONUNBUFFERED (up to 8 KiB), and printf in
C code, such as NCCL_DEBUG output on stdout (up to one libc buffer). Such text stays in the memory of the process.

Opening /proc/PID/fd/1 does not show it: that opens the file again, from its first byte, and the buffer is not in the
file yet. On a pipe it would even take bytes away from the reader, on a terminal it would read the keyboard.

The status line of the log shows what can be known from outside: the size of the file, how fast it grows, how far the
writer has written (pos in /proc/PID/fdinfo; it never counts the buffer), and how long ago the last byte came.
"""

_NO_FILE = {
    "pipe": (
        "the server's output goes into a pipe",
        "Reading it here would take lines away from whoever reads that pipe, so sgmon does not.",
        "If the reader writes a file (| tee FILE):  sgmon --log FILE",
    ),
    "pty": (
        "the server's output goes to a terminal",
        "Reading a terminal from outside takes its keyboard input, so sgmon does not.",
        f"The text is on that terminal. For a next start:  sgmon run -- {names.start_command()} ...",
    ),
    "socket": (
        "the server's output goes into a socket (journald, docker or another collector)",
        "Nothing can be read back from it here.",
        "Write it to a file and point here:  journalctl -f _PID=... > FILE   or   docker logs -f NAME > FILE",
    ),
    "null": (
        "the server's output goes to /dev/null",
        "Nobody keeps it; only the other panels can tell how the start goes.",
        "",
    ),
    "none": ("the server has no output open", "", ""),
    "hidden": ("where the server's output goes is hidden from this user", "", ""),
}
_RUN = f"For a log that can be read:  sgmon run --log FILE -- {names.start_command()} ...   or add  | tee FILE"


def no_log(kind: str, change: str, path: str, note: str) -> list[Line]:
    """What is said in place of a log, and what can be done about it."""
    if kind in _NO_FILE:
        words, why, remedy = _NO_FILE[kind]
        steps = [why, remedy, "" if kind == "pty" else _RUN]
    elif change == "missing":
        words, steps = f"there is no {clean(path, 200)} yet", ["It is shown as soon as it appears."]
    elif change == "unreadable":
        words, steps = (
            f"{clean(path, 200)} cannot be read",
            ["Is it another user's file? Run sgmon as that user or as root."],
        )
    elif path:
        words, steps = f"{clean(path, 200)} is still empty", []
    else:
        words, steps = "no log found yet", ["Name it:  sgmon --log FILE"]
    lines: list[Line] = [(("  ", ""), (words, "strong"))]
    lines += [(("  ", ""), (step, "dim")) for step in (clean(note, 300), *steps) if step]
    return lines


def write_state(
    size_bytes: int, rate_bytes_s: float | None, writer_offset: int | None, last_byte_age_s: int | None
) -> tuple[str, ...]:
    """Facts about what was written, most telling first."""
    facts = []
    if rate_bytes_s:
        facts.append(f"+{rate(rate_bytes_s)}")
    elif last_byte_age_s is not None:
        facts.append(f"last byte {ago(last_byte_age_s)}")
    facts.append(size(size_bytes))
    if writer_offset is not None:
        facts.append("fully read" if writer_offset == size_bytes else f"writer at {size(writer_offset)}")
    return tuple(facts)
