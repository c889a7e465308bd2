"""A driver that keeps the screen as cells and sends what differs from what the terminal shows, as the link allows."""

from __future__ import annotations

import asyncio
import os
import signal
import termios
import threading
import time
from typing import TYPE_CHECKING

from textual import events
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size

from tui_app.messages import TerminalGone
from tui_app.output.abilities import QUESTION, Abilities, measured, stated
from tui_app.output.cells import Row, blank, put
from tui_app.output.difference import difference
from tui_app.output.link import Link
from tui_app.output.pens import PLAIN, Pen
from tui_app.output.reading import WakingEvent, read_terminal
from tui_app.output.thin import Savings, frugal_rows, without_rules

if TYPE_CHECKING:
    from types import FrameType

    from rich.color import ColorSystem
    from textual.message import Message

_CLEAR = "\x1b[m\x1b[H\x1b[2J"
_NO_EFFECT = "\x1b[m"  # a frame ends in plain
_SYNC = 400  # bytes from which a frame is worth marks that it is painted at once
_BUSY_S = 0.2
_LATE_S, _ANSWER_S = 4.0, 0.3  # how late an answer may be, and how long its characters take
#: no terminal is larger; 65,535 rows and columns, which can be set, would be four milliards of cells
_MAX_WIDTH, _MAX_HEIGHT = 2_000, 1_000


class CellDriver(LinuxDriver):
    """``show`` takes what the compositor made; frames go out one at a time, the newest only."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.exit_event: WakingEvent = WakingEvent()
        self.link = Link()
        self.frames = 0
        self.page: Pen | None = PLAIN  # see Savings
        self._wanted: list[Row] = []
        self._sent: list[Row] | None = None  # None: not known what the terminal shows
        self._timer: asyncio.TimerHandle | None = None
        self._is_urgent = True
        self._late_until_t = 0.0
        self._answer_until_t = 0.0
        self._can: Abilities | None = None
        self._savings: Savings | None = None  # in what the terminal shows
        self._is_tried = False  # the question what it can do is on its way

    def _get_terminal_size(self) -> tuple[int, int]:
        """What the terminal says. COLUMNS and LINES, which Textual prefers, count where it does not know: exported,
        they are of another time, and hide every change of its size."""
        try:
            width, height = os.get_terminal_size(self._file.fileno())
        except (OSError, ValueError):
            width = height = 0
        if not (width and height):
            width, height = super()._get_terminal_size()
        return min(width, _MAX_WIDTH), min(height, _MAX_HEIGHT)

    # from the application

    def show(self, update: CompositorUpdate, size: Size, system: ColorSystem | None) -> None:
        """Take over what changed; it is sent when the terminal is ready."""
        if len(self._wanted) != size.height or len(self._wanted[0]) != size.width:
            self._wanted, self._sent = blank(size.width, size.height), None
            if not isinstance(update, LayoutUpdate) or update.region.size != size:
                self._app.refresh()  # a part alone: the size came back before the layout had another
        if isinstance(update, LayoutUpdate):
            for y, strips in enumerate(update.strips, update.region.y):
                if y < size.height:
                    put(self._wanted[y], update.region.x, (part for strip in strips for part in strip), system)
        elif isinstance(update, ChopsUpdate):
            self._put_chops(update, system)
        self._send()

    def forget(self) -> None:
        """Something else wrote to the terminal: the next frame is whole."""
        self._sent = None
        self._is_urgent = True
        self._send()

    def resized(self, size: Size) -> None:
        """The terminal had another size for a moment or has one now: what it shows is not known. A new size brings a
        new layout, which is sent."""
        self._sent = None
        if self._wanted and (len(self._wanted[0]), len(self._wanted)) == (size.width, size.height):
            self.forget()

    def toggle_mouse(self) -> bool:
        """Take the mouse, or leave it to the terminal; returns whether it is ours now."""
        if self._mouse:
            self._disable_mouse_support()
            self._mouse = False
        else:
            self._mouse = True
            self._enable_mouse_support()
        return self._mouse

    def expect_late_answer(self) -> None:
        """The answer to a question of before may still come; Textual would take it for keys."""
        self._late_until_t = time.monotonic() + _LATE_S

    def _put_chops(self, update: ChopsUpdate, system: ColorSystem | None) -> None:
        for y, x1, x2 in update.spans:
            if y >= len(self._wanted):
                continue
            for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                if strip is None or x > x2 or end <= x1:
                    continue
                part = strip if x2 > x >= x1 and end <= x2 else strip.crop(0, min(end, x2) - x)
                put(self._wanted[y], x, part, system)

    # to the terminal

    def _send(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writer_thread is None or not self._wanted:
            return
        savings = self._possible_savings()
        wanted = without_rules(self._wanted) if savings and savings.is_bare else self._wanted
        if wanted == self._sent:
            return
        wait_s = self.link.wait_s(time.monotonic(), is_urgent=self._is_urgent)
        if not wait_s and not self._writer_thread._queue.empty():
            wait_s = _BUSY_S  # the terminal takes nothing at the moment
        if wait_s:
            self._timer = self._loop.call_later(wait_s, self._send)
            return
        frame = self._frame(wanted, savings)
        now = time.monotonic()
        frame += _NO_EFFECT * -(-self.link.lacks(now, _size(frame)) // len(_NO_EFFECT))
        self._sent = [list(row) for row in wanted]
        self._is_urgent = False
        self.frames += 1
        self.link.sent(now, _size(frame))
        self.write(frame + self.link.question)

    def _possible_savings(self) -> Savings | None:
        """None: the link is not thin."""
        if not self.link.is_thin:
            return None
        return Savings(self.page, is_bare=self._can is not None and not self._can.repeats)

    def _frame(self, new: list[Row], savings: Savings | None) -> str:
        begin = ""
        if self._can is None:
            self._can = stated()
            begin, self._is_tried = _CLEAR + QUESTION, True
        before, self._savings = self._savings, savings
        old = self._sent
        if before != savings and (before is not None or (self.page is not None and self.page.back)):
            old = None  # the whole screen on another background or in its own looks; else what stands is good enough
        if old is None:
            begin += _CLEAR
            old = blank(len(new[0]), len(new), PLAIN)
        if savings is not None:
            old, new = frugal_rows(old, savings), frugal_rows(new, savings)
        frame = begin + difference(old, new, self._can, in_order=savings is not None)
        # over a thin link such a frame would not be painted as it comes, but when all of it is there
        if _size(frame) >= _SYNC and self._app._sync_available and not self.link.is_thin:
            frame = f"\x1b[?2026h{frame}\x1b[?2026l"
        return frame

    # from the terminal, in the thread that reads it

    def run_input_thread(self) -> None:
        if not read_terminal(self.fileno, self.exit_event, self.process_message, self._debug):
            self.process_message(TerminalGone())

    def process_message(self, message: Message) -> None:
        if isinstance(message, events.CursorPosition):
            self._loop.call_soon_threadsafe(self._answered, (message.x, message.y))
            return
        if isinstance(message, events.Key) and self._is_of_late_answer(message):
            return
        if isinstance(message, (events.Key, events.Paste, events.MouseDown)):
            self._loop.call_soon_threadsafe(self._pressed)
        super().process_message(message)

    def _is_of_late_answer(self, key: events.Key) -> bool:
        """Whether this is a character of the terminal's answer, which begins with what looks like ctrl+^."""
        now = time.monotonic()
        if now < self._late_until_t and key.character == "^":
            self._answer_until_t = now + _ANSWER_S
        return now < self._answer_until_t

    def _answered(self, cursor: tuple[int, int]) -> None:
        if self._is_tried and self._can is not None:
            self._is_tried = False
            self._can = measured(self._can, cursor)
            return
        self.link.answered(time.monotonic())
        self._send()

    def _pressed(self) -> None:
        self._is_urgent = True

    def _enable_mouse_support(self) -> None:
        """Ask for presses and drags; Textual asks for every motion, which nothing here needs and a link carries."""
        if self._mouse:
            self.write("\x1b[?1000h\x1b[?1002h\x1b[?1015h\x1b[?1006h")

    def _disable_mouse_support(self) -> None:
        if self._mouse:
            self.write("\x1b[?1000l\x1b[?1002l\x1b[?1015l\x1b[?1006l")

    def stop_application_mode(self) -> None:
        self.write("\x1b[H")  # where a terminal without a second screen goes on
        super().stop_application_mode()

    def start_application_mode(self) -> None:
        self._sent = None
        size = self._get_terminal_size()
        super().start_application_mode()
        _end_translation(self.fileno)
        if threading.current_thread() is threading.main_thread():
            # Textual asks for the size in the handler, which the next signal may interrupt between the answer and its
            # message: the older size then comes last, and stays
            signal.signal(signal.SIGWINCH, self._size_has_changed)
            if self._get_terminal_size() != size:
                self._size_has_changed()

    def _size_has_changed(self, number: int = 0, frame: FrameType | None = None) -> None:
        if not self._in_band_window_resize:  # the terminal sends sizes itself
            asyncio.run_coroutine_threadsafe(self._ask_size(), self._loop)

    async def _ask_size(self) -> None:
        size = Size(*self._get_terminal_size())
        self._app.post_message(events.Resize(size, size))


def _size(frame: str) -> int:
    return len(frame.encode())


def _end_translation(fd: int) -> None:
    """A line feed is sent as it is: the terminal's driver would put a second carriage return before it."""
    try:
        mode = termios.tcgetattr(fd)
        mode[1] &= ~termios.OPOST
        termios.tcsetattr(fd, termios.TCSANOW, mode)
    except termios.error:
        pass
