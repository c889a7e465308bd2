from __future__ import annotations

import pytest

from sgmon.servers.sglang.launch import recognise

SERVERS = {
    "python -m sglang.launch_server --tp 8": ("module", ("--tp", "8")),
    "/opt/v/bin/python3.12 -u -X faulthandler -W ignore -m sglang.launch_server": ("module", ()),
    "python3 -um sglang.launch_server --port 1": ("module", ("--port", "1")),
    "python3 -Im sglang.launch_server": ("module", ()),
    "python3 -msglang.launch_server x": ("module", ("x",)),
    "/usr/bin/python3 /usr/local/bin/sglang serve --model-path m": ("serve", ("--model-path", "m")),
    "sglang serve m": ("serve", ("m",)),
    "/opt/v/bin/sglang serve m": ("serve", ("m",)),
    "python -m sglang.cli.main serve m": ("serve", ("m",)),
    "python3 /src/sglang/launch_server.py --tp 2": ("module", ("--tp", "2")),
    "python3 -m debugpy --listen 5678 -m sglang.launch_server --tp 2": ("module", ("--tp", "2")),
    "python3-dbg -m sglang.launch_server": ("module", ()),
    "python3.13t -m sglang.launch_server": ("module", ()),
    "sglang::http_server/tokenizer_manager": ("titled", None),
    "sglang::server": ("titled", None),
}
NO_SERVERS = [
    "python -m sgmon run -- python -m sglang.launch_server",
    "/v/bin/python /v/bin/sgmon run -- sglang serve m",
    "/v/bin/python /v/bin/sgmon run sglang serve m",
    "timeout 60 python -m sglang.launch_server",
    "nohup python -m sglang.launch_server",
    "sudo python -m sglang.launch_server",
    "tail -f sglang.log",
    "grep sglang.launch_server",
    "vim sglang/launch_server.py",
    "python -c import_sglang.launch_server -m sglang.launch_server",
    "python train.py -m sglang.launch_server",
    "python -m pytest sglang.launch_server",
    "python /usr/bin/conda run python -m sglang.launch_server",
    "sglang generate m",
    "sglang --help",
    "python -m sglang.bench_serving",
    "python -m sglang.check_env",
    "sglang::scheduler_TP0",
    "sglang::detokenizer",
    "python",
    "python -m",
    "python -u",
]


@pytest.mark.parametrize(("line", "expected"), SERVERS.items())
def test_servers(line, expected):
    found = recognise(tuple(line.split(" ")))
    assert found is not None and (found.form, found.tail) == expected


@pytest.mark.parametrize("line", NO_SERVERS)
def test_no_servers(line):
    assert recognise(tuple(line.split(" "))) is None


def test_a_shell_that_carries_the_words():
    assert recognise(("bash", "-c", "python -m sglang.launch_server --tp 8")) is None
    assert recognise(("/bin/sh", "-c", "sglang serve m > log 2>&1")) is None
    assert recognise(()) is None and recognise(("",)) is None


def test_a_command_line_set_as_a_title():
    found = recognise(("python -m sglang.launch_server --model-path 'my model' --tp 2",))
    assert found is not None and found.tail == ("--model-path", "my model", "--tp", "2")
    assert recognise(("bash -c 'python -m sglang.launch_server'",)) is None
    assert recognise(("python -m sglang.launch_server --x 'open",)) is not None
