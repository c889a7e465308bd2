"""A recording played back as a source: the same events by the same path, with ticks made anew.

Controls may be called from any thread. Seeking back folds from the beginning again: the source says "rewind" and the
engine starts a new store, so that what is shown at a time is the same however one came there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from sgmon.model import Event
from sgmon.recording import codec
from sgmon.units import duration

TICK_S = 0.25
#: where a recording has a hole (a ring whose oldest part is gone) it is not waited for
HOLE_S = 2.0
SPEEDS = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 200.0)
#: where a recording without ticks has a hole, ticks are made up for its last minutes alone
_MADE_UP_S = 600.0
#: control events: they have no reading, are not recorded and not folded
REWIND = "rewind"
SHOW = "show"


class ReplaySource:
    """speed 0 plays as fast as it can be read. hold: stay at the end, for a screen that may want to go back,
    and from there on no faster than it was."""

    def __init__(self, path: Path, speed: float = 1.0, *, hold: bool = False) -> None:
        self._ending = codec.Ending()
        header, events = codec.read(path, self._ending)
        self.path = path
        self.epoch = header.epoch
        self.replay = path.name
        self.speed = speed
        self.length_s: float | None = None
        self._events = events
        self._ticks = header.ticks
        self._hold = hold
        self._changed = threading.Condition()
        self._stopped = False
        self._paused = False
        self._steps = 0
        self._seek_t: float | None = None
        self._to_change = False
        self._show = False
        self._t = 0.0
        self._at_end = False

    # controls

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def pause(self, paused: bool | None = None) -> None:
        """None: the other way round; at the end that begins anew."""
        with self._changed:
            self._paused = not (self._paused or self._at_end) if paused is None else paused
            if self._at_end and not self._paused:
                self._seek_t = 0.0
            self._tell()

    def step(self) -> None:
        """Pause, and play up to and with the next recorded event."""
        with self._changed:
            self._paused = True
            self._steps += 1
            self._tell()

    def faster(self, up: bool = True) -> None:
        """The next speed up or down."""
        with self._changed:
            later = [speed for speed in SPEEDS if (speed > self.speed if up else speed < self.speed)]
            if later:
                self.speed = later[0] if up else later[-1]
            self._tell()

    def seek(self, t: float) -> None:
        """Show the recording as it was at ``t``, then play on from there (or stay paused)."""
        with self._changed:
            self._seek_t = max(0.0, t)
            self._to_change = False
            self._tell()

    def seek_by(self, seconds: float) -> None:
        """From where it is, or from where it is going to."""
        self.seek((self._seek_t if self._seek_t is not None else self._t) + seconds)

    def to_next_change(self) -> None:
        """Play without waiting until ``change_seen`` is called: the verdict has changed."""
        with self._changed:
            self._to_change = True
            self._seek_t = None
            self._tell()

    def change_seen(self) -> None:
        """Called by the engine in its own thread when the verdict has changed."""
        self._to_change = False

    @property
    def skipping(self) -> bool:
        """On the way to somewhere: what comes now need not be shown."""
        return self._to_change or (self._seek_t is not None and self._t <= self._seek_t)

    def words(self) -> str:
        """ "2m13s/10m00s (cut) paused 5x start.jsonl.gz": what changes comes first, the name may be cut."""
        of = f"/{duration(self.length_s)}" if self.length_s is not None else ""
        cut = "(cut)" if self.is_cut else ""
        state = "at the end" if self._at_end else "paused" if self._paused else ""
        speed = f"{self.speed:g}x" if self.speed not in (0.0, 1.0) else ""
        return " ".join(filter(None, (duration(self._t) + of, cut, state, speed, self.replay)))

    @property
    def is_cut(self) -> bool:
        """Whether the recording ends in the middle; known when it was measured, or read to its end."""
        return self._ending.is_cut

    def measure(self) -> None:
        """Find out how long the recording is, in a thread."""

        def look() -> None:
            self.length_s = codec.length_s(self.path, self._ending)
            with self._changed:
                self._tell()

        threading.Thread(target=look, name="replay-length", daemon=True).start()

    def request_stacks(self, pids: Sequence[int] | None, samples: int, native: bool, why: str) -> int | None:
        """None: a recording cannot be asked."""

    def request_ras(self) -> None:
        """A recording cannot be asked."""

    def choose(self, pid: int) -> None:
        """A recording holds one server."""

    # playing

    def __iter__(self) -> Iterator[Event]:
        while not self._stopped:
            yield from self._play()
            if self._stopped or not self._rewind_wanted():
                return
            self._events = codec.read(self.path, self._ending)[1]
            self._t = 0.0
            yield Event(0.0, REWIND)

    def _play(self) -> Iterator[Event]:
        """Once through, or up to a wish to go back."""
        ticked = 0.0
        self._at_end = False
        for event in self._events:
            ticked = max(ticked, event.t - _MADE_UP_S)
            while not self._ticks and event.t - ticked >= TICK_S:
                ticked += TICK_S
                if self._steps == 0:
                    yield from self._until(ticked, TICK_S)
                if self._stopped or self._rewind_wanted():
                    return
                self._t = ticked
                yield Event(ticked, "tick")
            if event.kind != "tick" or self._steps == 0:
                yield from self._until(event.t, min(HOLE_S, event.t - self._t) if self._ticks else 0.0)
            if self._stopped or self._rewind_wanted():
                return
            self._t = max(self._t, event.t)
            yield event
            if event.kind != "tick" and self._take_step():
                yield Event(self._t, SHOW)
        yield Event(self._t, "tick")
        self._arrive()
        while self._hold and not self._stopped and not self._rewind_wanted():
            self._at_end = True
            self.speed = self.speed or 1.0  # a way back would lead here at once
            yield Event(self._t, SHOW)
            with self._changed:
                self._changed.wait_for(lambda: self._stopped or self._show or self._rewind_wanted())
                self._show = self._to_change = False
                self._steps = 0
                if self._seek_t is not None and self._seek_t >= self._t:
                    self._seek_t = None

    def _until(self, t: float, seconds: float) -> Iterator[Event]:
        """Wait until it is time for ``t``: a pause, and ``seconds`` at this speed."""
        if self._seek_t is not None and self._seek_t < t and not self._rewind_wanted():
            self._arrive()
            yield Event(self._t, SHOW)
        waited = False
        while not (self._stopped or self.skipping or self._rewind_wanted()):
            with self._changed:
                if self._paused and self._steps == 0:
                    self._changed.wait_for(lambda: self._show or self._stopped)
                elif self._paused or waited or self.speed <= 0 or seconds <= 0:
                    return
                else:
                    waited = not self._changed.wait_for(lambda: self._show or self._stopped, seconds / self.speed)
                shown, self._show = self._show, False
            if shown:
                yield Event(self._t, SHOW)

    def _take_step(self) -> bool:
        with self._changed:
            took = self._steps > 0
            self._steps = max(0, self._steps - 1)
            return took

    def _arrive(self) -> None:
        with self._changed:
            self._seek_t = None
            self._to_change = False

    def _rewind_wanted(self) -> bool:
        return self._seek_t is not None and self._seek_t < self._t

    def _tell(self) -> None:
        self._show = True
        self._changed.notify_all()
