"""Where sgmon keeps what it remembers: ``$XDG_STATE_HOME/sgmon``."""

from __future__ import annotations

from pathlib import Path


def state_dir() -> Path:
    """``$XDG_STATE_HOME/sgmon``, made when missing, for its owner only: recordings tell of a machine.

    Raises OSError where it cannot be made.
    """
    import platformdirs  # 15 ms that most commands do not need

    path = Path(platformdirs.user_state_dir("sgmon"))
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path
