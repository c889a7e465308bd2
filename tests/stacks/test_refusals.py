"""py-spy's failures: its own words as recorded, and the true reason."""

from __future__ import annotations

import pytest

from sgmon.analyse.stacks.refusals import refusal

STOPPED = """Error: Failed to get stack traces

Caused by:
    0: Failed to suspend process
    1: unexpected waitpid result PtraceEvent(Pid(585), SIGSTOP, 128) to 585
"""
NO_EXE = """Error: Failed to get process executable name. Check that the process is running.

Caused by:
    0: Permission denied (os error 13)
"""
ZOMBIE = """Error: Failed to get process executable name. Check that the process is running.

Caused by:
    0: No such file or directory (os error 2)
"""
SUDO = "Error: Permission Denied: Try running again with elevated permissions by going 'sudo env \"PATH=$PATH\" !!'"
EPERM = "Error: Operation not permitted (os error 1)"


@pytest.mark.parametrize(
    ("stderr", "options", "key"),
    [
        (STOPPED, {"state": "T", "nonblocking": False}, "stopped"),
        (ZOMBIE, {"state": "Z"}, "zombie"),
        (ZOMBIE, {"state": "Z", "threads": 3}, "main-exited"),
        ("Error: No such process (os error 3)", {"state": ""}, "gone"),
        (NO_EXE, {"state": "S", "uid_same": True, "has_cap": False, "ptrace_scope": None}, "no-sys-ptrace"),
        (SUDO, {"state": "S", "uid_same": False, "has_cap": False, "ptrace_scope": 1}, "other-user"),
        (SUDO, {"state": "S", "uid_same": True, "has_cap": False, "ptrace_scope": 1}, "ptrace-scope-1"),
        (SUDO, {"state": "S", "uid_same": True, "has_cap": False, "ptrace_scope": 2}, "ptrace-scope-2"),
        (
            "Error: Permission denied (os error 13)",
            {"state": "S", "ptrace_scope": 3, "has_cap": True},
            "ptrace-scope-3",
        ),
        (SUDO, {"state": "S"}, "denied"),
        (EPERM, {"state": "t", "tracer_pid": 99, "uid_same": True, "has_cap": True, "nonblocking": False}, "traced"),
        ("", {"state": "t", "tracer_pid": 99, "nonblocking": False}, "traced"),
        ("", {"state": "D", "timed_out": True}, "uninterruptible"),
        ("", {"state": "S", "frozen": True, "timed_out": True}, "frozen"),
        ("", {"state": "R", "timed_out": True}, "timed-out"),
        ("Error: Unsupported version of Python: 3.15.0", {"state": "S"}, "newer-python"),
        ("Error: Failed to find a python interpreter in the .data section", {"state": "R"}, "not-python"),
        ("Error: Bad address (os error 14)", {"state": "R"}, "torn"),
        ("Error: Failed to merge native and python frames", {"state": "S"}, "native-failed"),
        ("Error: something new", {"state": "S"}, "unknown"),
    ],
)
def test_reason(stderr: str, options: dict[str, object], key: str) -> None:
    assert refusal(stderr, **options).key == key  # type: ignore[arg-type]


def test_remedies_by_place_and_what_is_still_seen() -> None:
    found = refusal(SUDO, "S", True, 1, False)
    assert "ptrace_scope is 1" in found.why
    for words in ("host: sudo sgmon", "docker: --cap-add SYS_PTRACE", "Kubernetes: ", "still seen: wchan"):
        assert words in found.remedy()


def test_a_newer_python_is_named() -> None:
    assert "does not know Python 3.15.0" in refusal("Error: Unsupported version of Python: 3.15.0", "S").why


def test_a_dead_process_is_never_called_a_permission_problem() -> None:
    assert "dead" in refusal(ZOMBIE, "Z", False, 1, False).why


def test_unknown_words_are_made_safe() -> None:
    assert "\x1b" not in refusal("Error: \x1b]0;x\x07boom\n 0: \x1b[31mred", "S").why
