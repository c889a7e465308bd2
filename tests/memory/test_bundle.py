"""A bundle made of logs, arguments, environments and stacks full of planted secrets has none of them."""

from __future__ import annotations

import io
import random
import zipfile
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from sgmon.analyse.store import Store
from sgmon.export.bundle import MOST_BYTES, Bundle, Materials, collect, pack
from sgmon.export.bundle.page import MOST_CHARS
from sgmon.export.bundle.redact import Redactor
from sgmon.export.json_schema import SCHEMA, StatusReport
from sgmon.model import Event, Evidence, Frame, LogReading, Role, Server, Snapshot, StackDump, Thread
from sgmon.recording import codec
from sgmon.recording.ring_buffer import RingBuffer
from tests.memory import watches

#: secret -> a line that holds it, in the ways in which programs print them
PLANTED = {
    "sk-live-0123456789abcdefXYZ": "OpenAI client with key sk-live-0123456789abcdefXYZ created",
    "plantedApiKey77": "server_args=ServerArgs(model_path='/models/m', api_key='plantedApiKey77', tp_size=2)",
    "plantedAdminKey88": "server_args={'model_path': '/models/m', 'admin_api_key': 'plantedAdminKey88', 'tp_size': 2}",
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345": "Token hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345 is valid",
    "hfTokenWithoutShape9": "HF_TOKEN=hfTokenWithoutShape9",
    "AKIAIOSFODNN7EXAMPLE": "using credentials AKIAIOSFODNN7EXAMPLE from the environment",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY": "AWS_SECRET_ACCESS_KEY: wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "FwoGZXIvYXdzEXAMPLESESSION": "aws_session_token = 'FwoGZXIvYXdzEXAMPLESESSION'",
    "hunter2pass": "downloading https://alice:hunter2pass@models.example.com/m.safetensors",
    "ghTokenInUrl12345": "git clone https://ghTokenInUrl12345@github.com/org/private.git",
    "proxyPassw0rd": "http_proxy=http://proxy:proxyPassw0rd@10.0.0.1:3128",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N": (
        "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
    ),
    "bearerWithoutShape55": "request headers: {'Authorization': 'Bearer bearerWithoutShape55', 'Accept': '*/*'}",
    "YWxpY2U6c2VjcmV0": "authorization: Basic YWxpY2U6c2VjcmV0",
    "cookieSession4711abc": "Set-Cookie: session=cookieSession4711abc; HttpOnly",
    "escapedJsonSecret1": '{"config": "{\\"api_key\\": \\"escapedJsonSecret1\\"}"}',
    "listedFlagSecret2": "argv: ['python', '-m', 'sglang.launch_server', '--api-key', 'listedFlagSecret2']",
    "spacedFlagSecret3": "python -m sglang.launch_server --api-key spacedFlagSecret3 --tp 2",
    "equalsFlagSecret4": "python -m sglang.launch_server --api-key=equalsFlagSecret4 --tp 2",
    "curlUserSecret5": "curl -u alice:curlUserSecret5 http://localhost/metrics",
    "signatureAbc999": "GET https://bucket.s3.amazonaws.com/m?X-Amz-Signature=signatureAbc999&X-Amz-Date=1",
    "glpat-ABCDEFGHIJKLMNOPQRST": "fetch with glpat-ABCDEFGHIJKLMNOPQRST",
    "ghp_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789": "ghp_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
    "xoxb-1234567890-abcdefghij": "slack hook xoxb-1234567890-abcdefghij",
    "MIIEpAIBAAKCAQEAplantedkeybody": (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAplantedkeybody\nmorekeybody==\n-----END RSA PRIVATE KEY-----"
    ),
    "AIzaSyA1234567890abcdefghijklmnopqrstuv": "key AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "ssoPassphrase66": "ssl_keyfile_password='ssoPassphrase66'",
}
#: known from the launcher's own environment: found bare, under no name
BARE = "onlyKnownFromEnvironment0"


def _log() -> str:
    lines = ""
    for number, line in enumerate(PLANTED.values()):
        lines += f"[2026-11-29 17:00:{number:02d} TP0] {line}\n"
    return lines + watches.log_lines() + f"the value {BARE} was printed bare\nand plantedApiKey77 again, bare\n"


def _recording(log: str) -> bytes:
    """The log in pieces of 37 characters, so that every secret lies across two readings."""
    ring = RingBuffer(watches.EPOCH)
    for event in watches.events("x\n"):
        ring.write(event)
    for at in range(0, len(log), 37):
        ring.write(Event(1.0 + at / 1000, "log", LogReading("/nowhere/server.log", text=log[at : at + 37], size=at)))
    return b"".join(ring.parts("planted"))


def _materials() -> Materials:
    log = _log()
    store = Store(watches.EPOCH)
    for event in watches.events(log):
        store.step(event)
    snapshot = store.step(Event(2.0, "tick"))
    argv = ("python", "-m", "sglang.launch_server", "--api-key", "argvSecretValue6", "--tp", "2")
    server = replace(watches.SERVER, argv=argv)
    frame = Frame("login(token='stackSecretValue7')", "hub.py", 3)
    snapshot = replace(
        snapshot,
        server=server,
        start=replace(watches.START, env=(("HF_TOKEN", "envSecretValue8"), ("NCCL_DEBUG", "INFO"))),
        stacks=(StackDump(4800, "TP0", Role.WORKER, 1.0, threads=(Thread(1, frames=(frame,)),)),),
        verdict=replace(snapshot.verdict, evidence=(Evidence("log", f"the last: {PLANTED['plantedApiKey77']}"),)),
    )
    return Materials(snapshot, _recording(log), log_tail=log, secrets=(BARE,), machine=(("host", "host-a"),))


def _files(bundle: Bundle) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(bundle.data)) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def _all_text(bundle: Bundle) -> str:
    files = _files(bundle)
    events = codec.events_of(files.pop("recording.jsonl.gz"))
    texts = [content.decode() for content in files.values()] + [repr(event) for event in events]
    return "\n".join(texts)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return pack(_materials(), name="r", salt="s")


@pytest.mark.parametrize(
    "secret", [*PLANTED, BARE, "argvSecretValue6", "stackSecretValue7", "envSecretValue8", "morekeybody"]
)
def test_no_planted_secret_is_in_it(bundle: Bundle, secret: str) -> None:
    text = _all_text(bundle)
    at = text.find(secret)
    assert at < 0, text[max(0, at - 80) : at + 80]


def test_what_tells_of_the_start_is_still_there(bundle: Bundle) -> None:
    text = _all_text(bundle)
    for needed in ("/models/m", "NCCL_DEBUG", "INFO", "Load weight begin", "fired up and ready", "tp_size", "--tp"):
        assert needed in text, needed
    page = _files(bundle)["report.md"].decode()
    for heading in ("### Describe the bug", "### Reproduction", "### Environment", "load_begin"):
        assert heading in page
    assert len(page) <= MOST_CHARS
    assert msgspec.json.decode(_files(bundle)["status.json"], type=StatusReport).schema == SCHEMA


def test_what_was_masked_is_listed(bundle: Bundle) -> None:
    words = "\n".join(bundle.words())
    for name in ("api_key", "HF_TOKEN", "log:", "recording:"):
        assert name in words, words
    assert not any(secret in words for secret in PLANTED)


def test_a_bundle_without_a_secret_says_so() -> None:
    """The sentence of the report about its own marks was counted as a masked value."""
    assert pack(Materials(Snapshot(), b""), name="x").words()[1] == "nothing looked like a secret"


def test_the_recording_inside_replays_to_the_same_verdict(bundle: Bundle, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl.gz"
    path.write_bytes(_files(bundle)["recording.jsonl.gz"])
    header, events = codec.read(path)
    masked, plain = Store(header.epoch), Store(header.epoch)
    for event in events:
        masked.step(event)
    for event in codec.events_of(_recording(_log())):
        plain.step(event)
    ends = [store.step(Event(99.0, "tick")) for store in (masked, plain)]
    ours, theirs = (end.verdict for end in ends)
    assert (ours.state, ours.rule, ours.phase, ours.headline) == (
        theirs.state,
        theirs.rule,
        theirs.phase,
        theirs.headline,
    )
    assert ends[0].log.lines == ends[1].log.lines
    assert [m.line for m in ends[0].log.milestones] == [m.line for m in ends[1].log.milestones]


def test_no_log_leaves_no_line_of_it(tmp_path: Path) -> None:
    made = pack(_materials(), name="r", log=False, salt="s")
    text = _all_text(made)
    assert "log.txt" not in _files(made)
    for line in ("fired up and ready", "Load weight begin", "slack hook", "was printed bare"):
        assert line not in text, line
    assert "load_begin" in text  # milestones and their lines stay


def test_hashed_paths() -> None:
    materials = _materials()
    server = replace(materials.snapshot.server or Server(1, 1), log_path="/home/alice/logs/run.log")
    tail = 'File "/home/alice/venv/lib/python3.11/site-packages/sglang/srt/x.py"\nreading /home/alice/m.safetensors\n'
    materials = replace(materials, snapshot=replace(materials.snapshot, server=server), log_tail=tail)
    text = _all_text(pack(materials, name="r", hash_paths=True, salt="s"))
    assert "alice" not in text
    assert "/models/m" not in text
    assert "site-packages/sglang/srt/x.py" in text
    assert ".safetensors" in text


def test_it_never_gets_larger_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:

    assert MOST_BYTES == 5_000_000
    most = 1_000_000
    monkeypatch.setattr("sgmon.export.bundle.archive.MOST_BYTES", most)
    noise = random.Random(1)
    lines = "\n".join(f"[TP0] {noise.getrandbits(400):x}" for _ in range(20_000))
    ring = RingBuffer(0.0, 60_000_000)
    for event in watches.events("x\n"):
        ring.write(event)
    for at in range(0, len(lines), 50_000):
        ring.write(Event(2.0 + at / 1e4, "log", LogReading("/l", text=lines[at : at + 50_000], size=at)))
    recording = b"".join(ring.parts(""))
    assert len(recording) > most
    materials = replace(_materials(), recording=recording, log_head=lines[:100_000], log_tail=lines[-200_000:])
    made = pack(materials, name="r", salt="s")
    assert len(made.data) <= most
    assert "recording.jsonl.gz" in _files(made)


def test_counts_and_prose_are_left_alone() -> None:
    redact = Redactor()
    for text in (
        "#new-token: 512, #cached-token: 0, token usage: 0.01",
        "max_total_num_tokens=4096, max_prefill_tokens=16384",
        "the secret of the tokens is in the key value cache",
        "api_key=None, admin_api_key=None",
        "http://127.0.0.1:30000/health",
        "skip_tokenizer_init=False, tokenizer_path='/models/m'",
    ):
        assert redact.text(text, "x") == text


def test_a_launcher_whose_command_line_cannot_be_read(tmp_path: Path) -> None:
    """A zombie, or a process that has ended meanwhile: /proc has no cmdline."""
    store = Store(watches.EPOCH)
    for event in watches.events():
        store.step(event)
    materials = collect(store.snapshot, None, root=str(tmp_path))
    assert materials.secrets == ()
    assert materials.snapshot.server is not None
