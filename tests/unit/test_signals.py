"""Signals that ask a command to end."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from sgmon.signals import told_of
from tests.waiting import eventually


def test_what_is_done_at_a_signal_may_take_a_lock_that_the_main_thread_holds() -> None:
    lock, told = threading.Lock(), threading.Event()

    def act(number: int) -> None:
        with lock:
            told.set()

    with told_of((signal.SIGUSR1,), act):
        with lock:
            signal.raise_signal(signal.SIGUSR1)
            assert not told.is_set()
        assert told.wait(100)


def test_each_signal_is_told_and_afterwards_it_is_as_before() -> None:
    def own(number: int, frame: object) -> None: ...

    told: list[int] = []
    before, open_before = signal.signal(signal.SIGUSR2, own), len(os.listdir("/proc/self/fd"))
    try:
        with told_of((signal.SIGUSR1, signal.SIGUSR2), told.append):
            signal.raise_signal(signal.SIGUSR1)
            signal.raise_signal(signal.SIGUSR2)
            eventually(lambda: len(told) == 2)
        assert told == [signal.SIGUSR1, signal.SIGUSR2]
        assert signal.getsignal(signal.SIGUSR2) is own
        assert len(os.listdir("/proc/self/fd")) <= open_before
    finally:
        signal.signal(signal.SIGUSR2, before)


def test_an_error_within_comes_out() -> None:
    with pytest.raises(ZeroDivisionError), told_of((signal.SIGUSR1,), lambda _: None):
        _ = 1 // 0


def test_elsewhere_than_in_the_main_thread_the_handlers_are_left_alone() -> None:
    seen: list[object] = []

    def watch() -> None:
        with told_of((signal.SIGUSR1,), lambda _: None):
            seen.append(signal.getsignal(signal.SIGUSR1))

    thread = threading.Thread(target=watch)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGUSR1)]
