"""A headless Chromium, driven over its DevTools protocol (https://chromedevtools.github.io/devtools-protocol/).

The page's terminal is a canvas, which has no text. What the page received on its web socket is played into pyte, so
that ``text`` is what Chromium's terminal shows.
"""

from __future__ import annotations

import asyncio
import base64
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pyte

from tests.e2e.terminal import LIMIT_S

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0",
    "--enable-unsafe-swiftshader", "--disable-dev-shm-usage", "--window-size=1280,800", "about:blank",
)  # fmt: skip


def path() -> str | None:
    """The program, None without one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page. Use ``async with``."""

    def __init__(self, program: str, folder: Path) -> None:
        self._argv = [program, f"--user-data-dir={folder}", *_FLAGS]
        self._port_file = folder / "DevToolsActivePort"
        self._screen = pyte.Screen(200, 80)
        self._stream = pyte.ByteStream(self._screen)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0
        self._frame = asyncio.Event()
        self.requests: list[str] = []  # addresses that the page asked for
        self.status: dict[str, int] = {}  # address -> HTTP status

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display)

    async def open(self, url: str) -> None:
        await self._call("Page.navigate", url=url)

    async def press(self, key: str) -> None:
        """One printable character."""
        await self._call("Input.dispatchKeyEvent", type="keyDown", text=key, key=key)
        await self._call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def until(self, done: Callable[[str], object]) -> str:
        """Wait until ``done(text)``; returns the text."""

        async def wait() -> None:
            while not done(self.text):
                self._frame.clear()
                await self._frame.wait()

        try:
            await asyncio.wait_for(wait(), LIMIT_S)
        except asyncio.TimeoutError:
            raise AssertionError(f"not seen in {LIMIT_S} s; {self.status}; the screen is:\n{self.text}") from None
        return self.text

    async def picture(self) -> bytes:
        """The page as PNG."""
        return base64.b64decode((await self._call("Page.captureScreenshot", format="png"))["data"])

    async def __aenter__(self) -> Browser:
        self._process = subprocess.Popen(
            self._argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._session = aiohttp.ClientSession()
        port = await self._port()
        async with self._session.get(f"http://127.0.0.1:{port}/json/list") as answer:
            pages = await answer.json()
        address = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
        self._socket = await self._session.ws_connect(address, max_msg_size=0)
        self._reader = asyncio.create_task(self._read())
        await self._call("Network.enable")
        await self._call("Page.enable")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._reader.cancel()
        await self._session.close()
        self._process.terminate()
        await asyncio.to_thread(self._process.wait, LIMIT_S)

    async def _port(self) -> int:
        for _ in range(int(LIMIT_S / 0.05)):
            if self._port_file.exists() and (words := self._port_file.read_text().split()):
                return int(words[0])
            assert self._process.poll() is None, f"Chromium ended with {self._process.returncode}"
            await asyncio.sleep(0.05)
        raise AssertionError("Chromium opened no DevTools port")

    async def _call(self, method: str, **params: object) -> dict[str, Any]:
        self._number += 1
        future = self._answers[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        return await asyncio.wait_for(future, LIMIT_S)

    async def _read(self) -> None:
        async for message in self._socket:
            event = message.json()
            if "id" in event:
                self._answers.pop(event["id"]).set_result(event.get("result", {}))
            elif event.get("method") == "Network.webSocketFrameReceived":
                frame = event["params"]["response"]
                if frame["opcode"] == 2:
                    self._stream.feed(base64.b64decode(frame["payloadData"]))
                    self._frame.set()
            elif event.get("method") == "Network.requestWillBeSent":
                self.requests.append(event["params"]["request"]["url"])
            elif event.get("method") == "Network.responseReceived":
                response = event["params"]["response"]
                self.status[response["url"]] = response["status"]
