from __future__ import annotations

import struct

import pytest

from sgmon.proc import syscalls
from sgmon.proc.syscalls import Raw, decode, parse

TAIL = "0x7ffcc2fd4e90 0x7fa270000000"


def call(text: str, memory: dict[int, bytes] | None = None, machine: str = "x86_64"):
    return decode(parse(text), lambda fd: f"<{fd}>", lambda at, size: (memory or {}).get(at), machine)


def test_running_and_in_no_call():
    assert call("running\n") is None
    fault = call("-1 0x7ffd 0x7f00\n")
    assert (fault.number, fault.name) == (-1, "")


def test_descriptor_calls():
    seen = call(f"0 0x3 0x55ab 0x1000 0x0 0x0 0x0 {TAIL}")
    assert (seen.name, seen.fd, seen.target) == ("read", 3, "<3>")
    seen = call(f"63 0x3 0x55ab 0x1000 0x0 0x0 0x0 {TAIL}", machine="aarch64")
    assert (seen.name, seen.fd) == ("read", 3)
    assert call(f"9999 0x3 0x0 0x0 0x0 0x0 0x0 {TAIL}").name == "syscall 9999"


def test_poll_with_and_without_memory():
    polled = struct.pack("<ihh", 7, 1, 0) + struct.pack("<ihh", 9, 1, 0)
    seen = call(f"7 0x1000 0x2 0x1388 0x1 0x0 0x0 {TAIL}", {0x1000: polled})
    assert (seen.fd, seen.target, seen.timeout_ms, seen.note) == (7, "<7>, <9>", 5000, "2 descriptors")
    seen = call(f"7 0x1000 0x1 0xffffffff 0x1 0x0 0x0 {TAIL}")
    assert (seen.fd, seen.target, seen.timeout_ms, seen.note) == (None, "", None, "1 descriptor, no time-out")
    assert call(f"7 0x1000 0x9999 0x0 0x1 0x0 0x0 {TAIL}", {0x1000: b"short"}).target == ""
    seen = call(f"271 0x1000 0x1 0x2000 0x0 0x0 0x0 {TAIL}", {0x2000: struct.pack("<qq", 2, 500_000_000)})
    assert (seen.name, seen.timeout_ms) == ("ppoll", 2500)


def test_others():
    assert call(f"202 0x1 0x80 0x0 0x0 0x0 0x0 {TAIL}").note == "no time-out"
    assert call(f"202 0x1 0x80 0x0 0x7ff0 0x0 0x0 {TAIL}").note == "with time-out"
    assert call(f"61 0x21f2 0x0 0x0 0x0 0x0 0x0 {TAIL}").target == "pid 8690"
    assert call(f"61 0xffffffffffffffff 0x0 0x0 0x0 0x0 0x0 {TAIL}").target == "any child"
    assert call(f"232 0x5 0x0 0x8 0x64 0x0 0x0 {TAIL}").timeout_ms == 100
    lock = call(f"73 0x4 0x2 0x0 0x0 0x0 0x0 {TAIL}")
    assert syscalls.waits_for_lock(lock) and lock.target == "<4>"
    assert syscalls.waits_for_lock(call(f"72 0x4 0x7 0x0 0x0 0x0 0x0 {TAIL}"))
    assert not syscalls.waits_for_lock(call(f"72 0x4 0x1 0x0 0x0 0x0 0x0 {TAIL}"))


def test_calls_with_a_path():
    memory = {0x10: b"/nfs/model/config.json\0junk", 0x20: b"model/config.json\0", 0x30: b"\0"}
    seen = call(f"257 0xffffff9c 0x10 0x80000 0x0 0x0 0x0 {TAIL}", memory)
    assert (seen.name, seen.target) == ("openat", "/nfs/model/config.json")
    assert call(f"262 0xffffff9c 0x20 0x9 0x0 0x0 0x0 {TAIL}", memory).target == "<-100>/model/config.json"
    assert call(f"262 0x7 0x30 0x9 0x1000 0x0 0x0 {TAIL}", memory).target == "<7>", "AT_EMPTY_PATH"
    assert call(f"4 0x20 0x9 0x0 0x0 0x0 0x0 {TAIL}", memory).target == "<-100>/model/config.json"
    assert call(f"257 0xffffff9c 0x99 0x0 0x0 0x0 0x0 {TAIL}", memory).target == "", "not to be read"


@pytest.mark.parametrize("text", ["", "x", "1.5 0x0"])
def test_what_is_no_such_line(text):
    with pytest.raises((ValueError, IndexError)):
        parse(text)


def test_short_lines_have_no_arguments():
    assert parse("0 0x1") == Raw(0, ())
