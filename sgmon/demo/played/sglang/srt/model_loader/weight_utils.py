"""sglang/srt/model_loader/weight_utils.py: shards are mapped and read page by page, the bar is rank 0's.

The multi-thread reader is the default from 0.5.10 on; before it one shard was mapped at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from sgmon.demo.bar import Bar
from sgmon.demo.card import Card
from sgmon.demo.mapping import Mapping, read_slowly
from sgmon.demo.play import Play

#: SGLang's default is 8; fewer threads keep a TP8 demo light
MAX_WORKERS = 4


def buffered_multi_thread_safetensors_weights_iterator(files: list[str], play: Play, card: Card) -> Iterator[Mapping]:
    each_s = MAX_WORKERS * play.scenario.load_s / play.speed / len(files)
    random = play.scenario.name == "slow-disk"

    def submit(path: str, part: float = 1.0) -> Future[Mapping]:
        return executor.submit(read_slowly, path, each_s * part, random=random)

    with ThreadPoolExecutor(MAX_WORKERS) as executor:
        rest = iter(files)
        first = enumerate(islice(rest, MAX_WORKERS), 1)  # staggered, so that the bar moves evenly
        pending = deque(submit(path, number / MAX_WORKERS) for number, path in first)
        bar = Bar(len(files), "Multi-thread loading shards", words=True) if card.rank == 0 else None
        while pending:
            shard = pending.popleft().result()
            following = next(rest, None)
            if following is not None:
                pending.append(submit(following))
            yield shard
            shard.close()
            if bar:
                bar.update()
        if bar:
            bar.close()


def safetensors_weights_iterator(files: list[str], play: Play, card: Card) -> Iterator[Mapping]:
    each_s = play.scenario.load_s / play.speed / len(files)
    random = play.scenario.name == "slow-disk"
    bar = None
    if card.rank == 0:
        bar = Bar(len(files), "Loading safetensors checkpoint shards", words=True, ends_lines=True)
    for path in files:
        shard = read_slowly(path, each_s, random=random)
        yield shard
        shard.close()
        if bar:
            bar.update()
    if bar:
        bar.close()
