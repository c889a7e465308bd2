"""sglang/srt/mem_cache/kv_cache_configurator.py: the KV cache takes what is left, in one step."""

from __future__ import annotations

from sgmon.demo import console, faults
from sgmon.demo.card import Card
from sgmon.demo.play import Play
from sgmon.demo.played.sglang.srt.distributed.parallel_state import GroupCoordinator
from sgmon.demo.wording import kv_cache_line

#: free memory that SGLang leaves on an H200 by default
LEFT_GIB = 12.88
_BYTES_A_TOKEN = 47 * 1024


class KVCacheConfigurator:
    """Profiles, agrees on a size with the other ranks, allocates."""

    def __init__(self, play: Play, card: Card, group: GroupCoordinator) -> None:
        self._play, self._card, self._group = play, card, group

    def configure(self) -> int:
        self._profile_available_bytes()
        return self._init_pools()

    def _profile_available_bytes(self) -> None:
        self._play.pause(0.3)
        self._group.all_reduce()

    def _init_pools(self) -> int:
        size_gib = self._card.free_gib - LEFT_GIB
        faults.in_kv_cache(self._play, self._card)
        self._card.grow(size_gib)
        tokens = int(size_gib * (1 << 30) / _BYTES_A_TOKEN)
        console.info(kv_cache_line(self._play, tokens, size_gib))
        console.info(f"Memory pool end. avail mem={self._card.free_gib:.2f} GB")
        return tokens
