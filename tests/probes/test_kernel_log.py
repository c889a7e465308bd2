"""Records of the kernel's log, as Linux 6.18 wrote them."""

from __future__ import annotations

import pytest

from sgmon.proc import kmsg


@pytest.mark.parametrize(
    ("record", "what", "pid"),
    [
        ("3,911,2863559636,-;Memory cgroup out of memory: Killed process 5626 (tail) total-vm:550872kB, UID:0", "oom", 5626),
        ("3,12,1,-;Out of memory: Killed process 31320 (sglang::schedul) total-vm:413788kB", "oom", 31320),
        ("6,13,1,-;python3[4711]: segfault at 0 ip 00007f sp 00007f error 4 in libc.so.6\n SUBSYSTEM=x", "fault", 4711),
        ("4,14,1,-;traps: python3[4712] general protection fault ip:7f sp:7f error:0 in libtorch.so", "fault", 4712),
    ],
)  # fmt: skip
def test_a_record_tells_of_an_end(record: str, what: str, pid: int) -> None:
    line = kmsg.parse(record)
    assert line is not None
    assert (line.what, line.pid) == (what, pid)


def test_other_records_tell_nothing() -> None:
    assert kmsg.parse("6,15,1,-;oom_reaper: reaped process 5626 (tail), now anon-rss:0kB") is None
