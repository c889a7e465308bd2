"""What sgmon costs on a slow link: bytes of the first screen, of a quiet and a moving second, of pages; and seconds.

    python -m benchmarks.link [--rates 2000,8000] [--delay 0.15] [--size 120x40] [--idle 20] [--only stuck]
                             [--rep ascii] [--term screen-256color] [--theme dracula]

The program runs on a pty whose output is handed on at so many bytes a second; keys, and the terminal's answers to
status reports, arrive after the delay. Nothing is lost and nothing limits what waits between the two, as with ssh. The
first time of a page is when its title is on the screen, which pyte keeps; "whole" is when
the last bytes came before half a second with hardly any.
"""

from __future__ import annotations

import argparse
import collections
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Sequence

from tests.ui.repeating import RepeatingScreen, RepeatingStream

SGMON = (sys.executable, "-m", "tui_app.cli")
#: name, keys (the last one counts), row (None: any) and text of it by which it is known, with a mark before what is gone
PAGES = (
    ("? help", "?", 0, " help "),
    ("q back", "q", 0, "STALLED"),
    ("v why", "v", 0, " why "),
    ("q back", "q", 0, "STALLED"),
    ("2 GPUs", "2", -1, "zoom"),
    ("4 log", "4", -1, "search"),
    ("z log alone", "z", None, "!1 startup"),
    ("z back", "z", None, "1 startup"),
    ("/ find", "/", None, "text or regex"),
    ("esc back", "\x1b", None, "!text or regex"),
    ("enter helper", "3 G \r", 0, "everything known"),
    ("q back", "q", 0, "STALLED"),
    ("enter GPU", "2 \r", -1, "next GPU"),
    ("q back", "q", 0, "STALLED"),
    ("D stacks", "D", 0, " stack of "),
    ("q back", "q", 0, "STALLED"),
    ("ctrl+s", "\x13", 0, " report "),
    ("q back", "q", 0, "STALLED"),
    (": palette", ":", None, "Search"),
    ("esc back", "\x1b", 0, "STALLED"),
)
#: bytes in half a second from which something is being painted; fewer are ages that tick
TICKING = 200
#: sizes that the terminal gets, one after the other
SIZES = ((100, 30), (120, 40), (80, 24), (120, 40))


class PacedTerminal:
    """A program behind a link of ``rate`` bytes a second (0: no limit) and ``delay_s`` from the terminal to it."""

    def __init__(
        self,
        argv: Sequence[str],
        rate: float,
        delay_s: float,
        columns: int,
        rows: int,
        repeats: str = "all",
        term: str = "tmux-256color",
    ) -> None:
        self.rate, self.delay_s = rate, delay_s
        self.screen = RepeatingScreen(columns, rows, repeats)
        self.stream = RepeatingStream(self.screen)
        self.arrived = 0  # bytes
        self._on_the_way: collections.deque[bytes] = collections.deque()
        self._free_t = time.monotonic()  # when the link has carried what it was given
        self._up: collections.deque[tuple[float, bytes]] = collections.deque()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            own = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(argv[0], list(argv), {**own, "TERM": term, "COLORTERM": "", "COLORFGBG": "15;0"})

    def resize(self, columns: int, rows: int) -> None:
        """Another size; what is on the way was meant for the old one."""
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def press(self, keys: str) -> None:
        self._up.append((time.monotonic() + self.delay_s, keys.encode()))

    def until(self, done: Callable[[], bool], seconds: float) -> float | None:
        """Seconds until it was so; None: it was not, in that time."""
        began = time.monotonic()
        while (now := time.monotonic()) < began + seconds:
            if done():
                return now - began
            self._step()
        return None

    def wait(self, seconds: float) -> None:
        self.until(lambda: False, seconds)

    def shows(self, row: int | None, text: str) -> bool:
        """Whether a row (None: any) holds a text; "!text": none does."""
        rows = self.screen.display if row is None else [self.screen.display[row]]
        return any(text.removeprefix("!") in one for one in rows) != text.startswith("!")

    def anywhere(self, text: str) -> bool:
        return any(text in row for row in self.screen.display)

    def until_quiet(self) -> tuple[float, int]:
        """Until half a second has less than ``TICKING`` bytes, at most 30: the seconds, and all bytes by then."""
        began = last = time.monotonic()
        seen = arrived = self.arrived
        while (now := time.monotonic()) < began + 30:
            self._step()
            if self.arrived - seen >= TICKING:
                seen, last, arrived = self.arrived, time.monotonic(), self.arrived
            elif now >= last + 0.5:
                break
        return last - began, arrived

    def end(self) -> None:
        os.kill(self.pid, 15)
        deadline = time.monotonic() + 10
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(self.pid, 9)
            self._step()
        os.close(self.master)

    def _step(self) -> None:
        now = time.monotonic()
        while self._up and self._up[0][0] <= now:
            os.write(self.master, self._up.popleft()[1])
        if select.select([self.master], [], [], 0.005)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                data = b""
            self._on_the_way.extend(data[at : at + 64] for at in range(0, len(data), 64))
        while self._on_the_way and self._free_t <= time.monotonic():
            part = self._on_the_way.popleft()
            self._free_t = max(self._free_t, time.monotonic() - 0.05) + (len(part) / self.rate if self.rate else 0)
            self._arrive(part)

    def _arrive(self, part: bytes) -> None:
        self.arrived += len(part)
        self.stream.feed(part)
        for answer in self.screen.answers:
            self._up.append((time.monotonic() + self.delay_s, answer.encode()))
        self.screen.answers.clear()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", default="0,8000,2000", help="bytes a second; 0: no limit")
    parser.add_argument("--delay", type=float, default=0.15)
    parser.add_argument("--size", default="120x40")
    parser.add_argument(
        "--idle", type=float, default=20.0, help="seconds over which a quiet and a moving screen count"
    )
    parser.add_argument("--only", choices=("stuck", "moving"))
    parser.add_argument(
        "--rep", choices=("all", "ascii", "none"), default="all", help="ascii: as tmux up to 3.3; none: as GNU screen"
    )
    parser.add_argument("--term", default="tmux-256color", help="one that terminfo has not: no bce")
    parser.add_argument("--theme", default="dark")
    args = parser.parse_args()
    columns, rows = (int(number) for number in args.size.split("x"))
    for rate in (float(one) for one in args.rates.split(",")):
        words = f"{rate / 1000:g} KB/s, {args.delay * 1000:.0f} ms" if rate else "no limit"
        print(f"--- {words}, {args.size}")
        link = (rate, args.delay if rate else 0.0, columns, rows, args.rep, args.term)
        look = ("--theme", args.theme)
        if args.only != "moving":
            demo = [*SGMON, "demo", "stuck-rank", "--speed", "4", *look]
            stuck(PacedTerminal(demo, *link), args.idle)
        if args.only != "stuck":
            demo = [*SGMON, "demo", "healthy", "--tp", "8", *look]
            moving(PacedTerminal(demo, *link), args.idle)


def stuck(terminal: PacedTerminal, idle_s: float) -> None:
    """A rank that hangs: the first screen, a quiet one, the pages."""
    say("first row", terminal.until(lambda: terminal.anywhere("WAITING"), 60), terminal.arrived)
    say("ranks", terminal.until(lambda: terminal.anywhere("TP3"), 60), terminal.arrived)
    say("STALLED", terminal.until(lambda: terminal.shows(0, "STALLED"), 200), terminal.arrived)
    terminal.wait(15)
    before = terminal.arrived
    terminal.wait(idle_s)
    print(f"  {'idle':12} {(terminal.arrived - before) / idle_s:7.0f} bytes/s")
    for name, key, row, text in PAGES:
        *first, last = key.split(" ")
        for one in first:
            terminal.press(one)
            terminal.wait(2)
        before = terminal.arrived
        terminal.press(last)
        took = terminal.until(lambda row=row, text=text: terminal.shows(row, text), 30)
        say_page(name, terminal, took, before)
        terminal.wait(5)
    for columns, rows in SIZES:
        before = terminal.arrived
        terminal.resize(columns, rows)
        took = terminal.until(lambda: terminal.shows(-1, "quit") and terminal.shows(0, "STALLED"), 30)
        say_page(f"{columns}x{rows}", terminal, took, before)
        terminal.wait(5)
    terminal.end()


def moving(terminal: PacedTerminal, seconds: float) -> None:
    """A healthy start while it loads and captures."""
    terminal.until(lambda: terminal.anywhere("TP3"), 60)
    terminal.wait(3)
    before = terminal.arrived
    terminal.wait(seconds)
    print(f"  {'moving':12} {(terminal.arrived - before) / seconds:7.0f} bytes/s")
    terminal.end()


def say_page(name: str, terminal: PacedTerminal, took: float | None, before: int) -> None:
    rest_s, arrived = terminal.until_quiet()
    say(name, took, arrived - before, None if took is None else took + rest_s)


def say(name: str, seconds: float | None, sent: int, whole_s: float | None = None) -> None:
    first = "never" if seconds is None else f"{seconds:.2f} s"
    whole = "" if whole_s is None else f"   whole {whole_s:.2f} s"
    print(f"  {name:12} {sent:7} bytes   {first}{whole}", flush=True)


if __name__ == "__main__":
    main()
