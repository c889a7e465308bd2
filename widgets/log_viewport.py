"""Which part of the log is shown: its end, or around a line of the user's choice."""

from __future__ import annotations

from widgets.log_window import Key, Placed, Window

TOP: Key = (-1, 0, 0)


class Viewport:
    """Top row, cursor and whether the end is followed. Only at the end is followed; every move up stops it."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.following = True
        self.top: Key = TOP
        self.cursor: Key = TOP
        self.shown: list[Placed] = []
        self.left_at: tuple[int, int] = (0, 0)  # bytes and lines that were there when following stopped

    def restart(self) -> None:
        """Another file: its end is followed."""
        self.following, self.top, self.cursor, self.left_at, self.shown = True, TOP, TOP, (0, 0), []

    @property
    def state(self) -> tuple[bool, Key, Key]:
        return (self.following, self.top, self.cursor)

    def fill(self, room: int) -> list[Placed]:
        """The rows for ``room`` rows of screen."""
        window = self.window
        if self.following:
            rows = window.before(None, room)
            if rows:
                self.cursor, self.top = rows[-1].key, rows[0].key
        else:
            rows = window.after(self.top, room)
            if len(rows) < room and not window.waiting:
                rows = window.before(None, room)
        self.shown = rows
        return rows

    @property
    def index(self) -> int:
        """The shown row at the cursor; when folding hid that line, the row before it, which counts it."""
        index = 0
        for i, placed in enumerate(self.shown):
            if placed.key > self.cursor:
                break
            index = i
        return index

    @property
    def chosen(self) -> Placed | None:
        """The row at the cursor."""
        return self.shown[self.index] if self.shown else None

    @property
    def at_end(self) -> bool:
        """Whether nothing comes after the rows shown."""
        return not self.shown or (not self.window.after(_next(self.shown[-1].key), 1) and not self.window.waiting)

    def move(self, rows: int) -> None:
        """Move the cursor; at an edge the view moves with it."""
        shown = self.shown
        if not shown:
            return
        if rows < 0:
            self.stop_following()
        target = self.index + rows
        if target < 0:
            above = self.window.before(shown[0].key, -target)
            self.top = self.cursor = above[0].key if above else shown[0].key
        elif target >= len(shown):
            below = self.window.after(_next(shown[-1].key), target - len(shown) + 1)
            self.cursor = below[-1].key if below else shown[-1].key
            if below:
                above = self.window.before(self.cursor, len(shown) - 1)
                self.top = above[0].key if above else self.cursor
        else:
            self.top, self.cursor = shown[0].key, shown[target].key
        if rows > 0 and not self.window.after(_next(self.cursor), 1) and not self.window.waiting:
            self.following = True

    def scroll(self, rows: int) -> None:
        """Move the view; the cursor keeps its place on the screen."""
        if not self.shown or (rows > 0 and self.following):
            return
        index, top, count = self.index, self.shown[0].key, len(self.shown)
        if rows < 0:
            self.stop_following()
            above = self.window.before(top, -rows)
            self.top = above[0].key if above else top
            if not above:
                index = max(0, index + rows)
        else:
            below = self.window.after(top, rows + count + 1)
            if len(below) <= rows + count and not self.window.waiting:
                self.following = True
                return
            self.top = below[min(rows, len(below) - 1)].key
        now = self.window.after(self.top, index + 1)
        self.cursor = now[-1].key if now else self.top

    def first(self) -> None:
        self.stop_following()
        self.top = self.cursor = TOP

    def choose(self, index: int) -> None:
        """The cursor on a row that is shown."""
        if 0 <= index < len(self.shown):
            self.stop_following()
            self.top, self.cursor = self.shown[0].key, self.shown[index].key

    def go(self, offset: int, part: int = 0) -> None:
        """The line at this byte offset, a third down the screen unless it is shown already."""
        self.stop_following()
        self.cursor = (offset, part, 0)
        if self.shown and self.shown[0].key <= self.cursor <= self.shown[-1].key:
            self.top = self.shown[0].key
            return
        above = self.window.before(self.cursor, max(1, len(self.shown) // 3))
        self.top = above[0].key if above else self.cursor

    def stop_following(self) -> None:
        if self.following:
            self.following = False
            self.left_at = (self.window.text.size, self.window.text.total)


def _next(key: Key) -> Key:
    return (key[0], key[1], key[2] + 1)
