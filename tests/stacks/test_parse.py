"""py-spy's JSON and text, and the names in them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgmon.analyse.stacks.names import function_name, package_file
from sgmon.analyse.stacks.parse import ParseError, parse_pyspy
from tests.stacks.stack_files import DATA, RULES, recorded


def test_json_has_package_relative_files_and_main_first() -> None:
    threads = recorded("jit_tp1_filelock.json").threads
    assert threads[0].name == "MainThread"
    assert threads[0].frames[0].function == "BaseFileLock._poll_until_acquired"
    files = [frame.file for frame in threads[0].frames]
    assert "sglang/srt/managers/scheduler.py" in files
    assert "flashinfer/jit/core.py" in files
    assert "multiprocessing/process.py" in files
    assert not any(file.startswith("/") for file in files)


def test_main_thread_first_wherever_it_stands() -> None:
    raw = json.loads((DATA / "load_tp0_barrier.json").read_text())
    threads = parse_pyspy(json.dumps(raw[::-1]))
    assert threads[0].name == "MainThread"
    assert threads[0].frames[0].function == "monitored_barrier"


def test_native_frames() -> None:
    threads = recorded("capture_tp0_native.json").threads
    names = [frame.function for frame in threads[0].frames if frame.native]
    assert "cudaDeviceSynchronize" in names
    assert threads[1].name == "tqdm_monitor"
    assert (threads[0].active, threads[1].active) == (True, False)
    assert any(frame.file == "python3.12" and frame.native for frame in threads[1].frames)
    assert not threads[0].frames[-2].native


def test_long_cpp_names_are_shortened() -> None:
    threads = recorded("rendezvous_native.json").threads
    names = [frame.function for frame in threads[0].frames]
    assert "c10d::TCPStore::waitForWorkers" in names
    assert "pybind11::cpp_function::initialize" in names
    assert all(len(name) <= 90 for name in names)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("at::_ops::copy_::call(at::Tensor&, at::Tensor const&, bool)", "at::_ops::copy_::call"),
        (
            "std::vector<std::pair<int, foo<bar> >, std::allocator<x> >::operator[](unsigned long) const",
            "std::vector::operator[]",
        ),
        (
            "void at::native::gpu_kernel_impl<at::native::CUDAFunctor_add<float> >(at::TensorIteratorBase&)",
            "at::native::gpu_kernel_impl",
        ),
        ("std::ostream::operator<<(int)", "std::ostream::operator<<"),
        ("core::ptr::drop_in_place::h0123456789abcdef", "core::ptr::drop_in_place"),
        ("foo.constprop.0", "foo"),
        ("(anonymous namespace)::worker(void*)", "worker"),
        ("ncclCommInitRank", "ncclCommInitRank"),
        ("_time_logger.<locals>.wrapper", "_time_logger.<locals>.wrapper"),
        ("<listcomp>", "<listcomp>"),
        ("<module>", "<module>"),
        ("Scheduler.event_loop_overlap", "Scheduler.event_loop_overlap"),
    ],
)
def test_function_names(name: str, short: str) -> None:
    assert function_name(name) == short


@pytest.mark.parametrize(
    ("path", "short"),
    [
        ("/venv/lib/python3.11/site-packages/torch/cuda/__init__.py", "torch/cuda/__init__.py"),
        ("/usr/lib/python3/dist-packages/yaml/loader.py", "yaml/loader.py"),
        ("/usr/lib/python3.12/threading.py", "threading.py"),
        ("/sgl-workspace/sglang/python/sglang/srt/server_args.py", "sglang/srt/server_args.py"),
        ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"),
        ("/home/x/loop.py", "/home/x/loop.py"),
    ],
)
def test_files(path: str, short: str) -> None:
    assert package_file(path, RULES.source_tree) == short


@pytest.mark.parametrize("text", ["", "{}", "[1, 2]", "null", "[" * 10000, '[{"frames": 3}]'])
def test_other_json(text: str) -> None:
    try:
        assert all(thread.frames == () for thread in parse_pyspy(text))
    except ParseError as err:
        assert "py-spy" in str(err)


@given(st.text(max_size=200))
@settings(max_examples=60, deadline=None)
def test_any_text_is_safe(text: str) -> None:
    assert "\x1b" not in function_name(text)
    body = json.dumps([{"thread_name": text, "frames": [{"name": text, "filename": text, "line": 1}]}])
    (thread,) = parse_pyspy(body)
    assert "\x1b" not in thread.name + thread.frames[0].function + thread.frames[0].file


def test_threads_without_frames() -> None:
    assert parse_pyspy('[{"thread_name": "MainThread", "os_thread_id": 5, "frames": []}]')[0].frames == ()
