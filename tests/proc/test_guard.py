from __future__ import annotations

import threading

import pytest

from sgmon.proc.guard import CallGuard, HungError


def test_values_and_errors_pass_through():
    guard: CallGuard[int] = CallGuard()
    assert guard.run("a", lambda: 3, 5.0) == 3
    with pytest.raises(ValueError, match="x"):
        guard.run("a", lambda: int("x"), 5.0)


def test_a_hung_call_is_started_once_and_its_late_answer_is_taken():
    guard: CallGuard[str] = CallGuard()
    gate, calls = threading.Event(), []

    def work() -> str:
        calls.append(1)
        gate.wait(10)
        return "late"

    for _ in range(3):
        with pytest.raises(HungError):
            guard.run("mount", work, 0.01)
    assert len(calls) == 1
    assert guard.run("other", lambda: "fine", 5.0) == "fine"
    gate.set()
    assert guard.run("mount", work, 5.0) == "late"
    assert len(calls) == 1
