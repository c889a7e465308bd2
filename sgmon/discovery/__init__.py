"""Finding the server from /proc alone: who it is, how it was started, where its log goes."""

from sgmon.discovery.errors import TargetError
from sgmon.discovery.find import find

__all__ = ["TargetError", "find"]
