"""Lets go of what Textual remembers of widgets that are gone: the pages that were closed, old notices."""

from __future__ import annotations

from typing import Any

from textual._styles_cache import StylesCache
from textual.app import App
from textual.await_complete import AwaitComplete


class ForgettingApp(App[int]):
    """Forgets removed widgets when a page closes, and those of earlier notices with each notice."""

    def pop_screen(self) -> AwaitComplete:
        closed = super().pop_screen()
        forget_removed_widgets()
        return closed

    def notify(self, message: str, **options: Any) -> None:
        super().notify(message, **options)
        forget_removed_widgets()


def forget_removed_widgets() -> None:
    """Empty ``StylesCache.get_inner_outer``: an ``lru_cache`` on the method, which keeps the painted rows of 1,024
    widgets. The widgets on the screen fill it again with a sum of two colours each.
    """
    clear = getattr(StylesCache.get_inner_outer, "cache_clear", None)
    if clear is not None:  # a later Textual may do without
        clear()
