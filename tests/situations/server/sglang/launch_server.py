"""A server in name only: the process tree and the titles of SGLang, each rank in the situation asked for.

usage: python -m sglang.launch_server --tp N [--situation RANK=NAME ...] [--importing]
Each process writes "PID TITLE" into the fifo $SITUATION_FIFO when it stands where it was asked to stand.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import multiprocessing as mp
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable


def stand(title: str) -> None:
    with open(os.environ["SITUATION_FIFO"], "w") as fifo:
        fifo.write(f"{os.getpid()} {title}\n")


def rank(number: int, tp: int, situation: str, importing: bool) -> None:
    title = f"sglang::scheduler_TP{number}" if tp > 1 else "sglang::scheduler"
    entitle(title, importing)
    SITUATIONS[situation](title)


def detokenizer(importing: bool) -> None:
    entitle("sglang::detokenizer", importing)
    idle("sglang::detokenizer")


def entitle(title: str, importing: bool) -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, as SGLang's workers do
    if not importing:
        import setproctitle

        setproctitle.setproctitle(title)


def idle(title: str) -> None:
    stand(title)
    threading.Event().wait()


def stopped(title: str) -> None:
    stand(title)
    os.kill(os.getpid(), signal.SIGSTOP)


def dies(title: str) -> None:
    stand(title)
    os.kill(os.getpid(), signal.SIGKILL)


def exits(title: str) -> None:
    stand(title)
    os._exit(3)


def holds_lock(title: str) -> None:
    lock = open("build.lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    idle(title)


def waits_for_lock(title: str) -> None:
    while not os.path.exists("build.lock"):
        select.select([], [], [], 0.01)
    with open("build.lock") as lock:
        stand(title)
        fcntl.flock(lock, fcntl.LOCK_EX)


def listener(title: str) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    with open("port.tmp", "w") as file:
        file.write(str(server.getsockname()[1]))
    os.rename("port.tmp", "port")
    accepted = server.accept()
    idle(f"{title} {accepted and ''}".strip())


def mute_peer(title: str) -> None:
    while not os.path.exists("port"):
        select.select([], [], [], 0.01)
    with open("port") as file:
        peer = socket.create_connection(("127.0.0.1", int(file.read())))
    stand(title)
    peer.recv(1)


def polls(title: str) -> None:
    one, other = socket.socketpair()
    poller = select.poll()
    poller.register(one, select.POLLIN)
    stand(title)
    poller.poll(600_000)
    other.close()


def syn_sent(title: str) -> None:
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(0)
    fill = [socket.socket() for _ in range(2)]
    for each in fill:
        each.setblocking(False)
        each.connect_ex(server.getsockname())
    stand(title)
    socket.create_connection(server.getsockname())


def compiles(title: str) -> None:
    code = "import os\nwith open(os.environ['SITUATION_FIFO'], 'w') as f: f.write(f'{os.getpid()} cc1plus\\n')\nwhile True: pass"
    child = subprocess.Popen(["cc1plus", "-S", "-c", code, "norm.cpp"], executable=sys.executable)
    stand(title)
    child.wait()


def maps_shards(title: str) -> None:
    files = []
    for number in (1, 2):
        name = f"model-0000{number}-of-00002.safetensors"
        with open(name, "wb") as file:
            file.truncate(1 << 20)
        with open(name, "rb") as file:
            files.append(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
    idle(title)


SHARD = "model/model-00001-of-00001.safetensors"


def in_thread(work: Callable[[], object], title: str) -> None:
    """Again and again, in a thread, while the main thread sleeps on a futex."""

    def forever() -> None:
        while True:
            work()
            select.select([], [], [], 0.01)

    threading.Thread(target=forever, daemon=True).start()
    idle(title)


def reads_mount(title: str) -> None:
    fd = os.open(SHARD, os.O_RDONLY)

    def read() -> None:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.pread(fd, 1 << 20, 0)

    in_thread(read, title)


def maps_mount(title: str) -> None:
    fd = os.open(SHARD, os.O_RDONLY)
    mapped = mmap.mmap(fd, 0, prot=mmap.PROT_READ)

    def touch() -> None:
        mapped.madvise(mmap.MADV_DONTNEED)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        sum(mapped[at] for at in range(0, len(mapped), 1 << 20))

    in_thread(touch, title)


def looks_at_mount(title: str) -> None:
    in_thread(lambda: os.path.exists(os.path.abspath(SHARD)), title)


def looks_at_mount_itself(title: str) -> None:
    stand(title)
    while True:
        os.path.exists(SHARD)
        select.select([], [], [], 0.01)


def main_thread_ended(title: str) -> None:
    """State Z with a thread that lives on: not dead."""
    threading.Thread(target=threading.Event().wait).start()
    stand(title)
    ctypes.CDLL(None).pthread_exit(None)


def other_log(title: str) -> None:
    with open("other.log", "w") as file:
        os.dup2(file.fileno(), 2)
        os.dup2(file.fileno(), 1)
    idle(title)


SITUATIONS = {
    f.__name__: f
    for f in (
        idle,
        stopped,
        dies,
        exits,
        holds_lock,
        waits_for_lock,
        listener,
        mute_peer,
        polls,
        syn_sent,
        compiles,
        maps_shards,
        reads_mount,
        maps_mount,
        looks_at_mount,
        looks_at_mount_itself,
        main_thread_ended,
        other_log,
    )
}


def main() -> None:
    words = sys.argv[1:]
    tp = int(words[words.index("--tp") + 1])
    asked = dict(w.split("=") for w in words if "=" in w and w[0].isdigit())
    importing = "--importing" in words
    context = mp.get_context("spawn")
    children = [context.Process(target=rank, args=(n, tp, asked.get(str(n), "idle"), importing)) for n in range(tp)]
    children.append(context.Process(target=detokenizer, args=(importing,)))
    for child in children:
        child.start()
    stand("launcher")
    signal.pause()  # never joins: what ended stays a zombie


if __name__ == "__main__":
    main()
