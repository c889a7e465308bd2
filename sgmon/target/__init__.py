"""Finding the server from /proc alone: who it is, how it was started, where its log goes."""

from sgmon.target.errors import TargetError
from sgmon.target.find import find

__all__ = ["TargetError", "find"]
