"""A TCP proxy between a store and its server, that a test cuts, stalls and opens again."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine
from typing import Any, Self

from tests.support.servers import LOOPBACK, free_port

_RESET = struct.pack("ii", 1, 0)


class Proxy:
    """Forwards what comes to its port to a server's, in a thread of its own, while entered."""

    def __init__(self, host: str, port: int) -> None:
        self._server, self.port = (host, port), free_port()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")
        self._listener: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()
        self._flows = asyncio.Event()
        self.accepted = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._flows.set()
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def open(self) -> None:
        """Take connections."""
        self._do(self._open())

    def cut(self) -> None:
        """Reset every connection, and refuse new ones."""
        self._do(self._cut())

    def lead_to(self, host: str, port: int) -> None:
        """What comes from now on goes to another server."""
        self._server = host, port

    def stall(self, *, stalled: bool) -> None:
        """Keep every connection but forward nothing, or go on."""
        call = self._flows.clear if stalled else self._flows.set
        self._loop.call_soon_threadsafe(call)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _open(self) -> None:
        self._listener = await asyncio.start_server(self._accept, LOOPBACK, self.port)

    async def _cut(self) -> None:
        self._flows.set()
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
        links = list(self._links)
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    async def _finish(self) -> None:
        """Cut, and let the loop take the turns in which accepted and reset connections end."""
        await self._cut()
        for _ in range(20):
            await asyncio.sleep(0)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._listener is None:  # accepted in the very moment of a cut
            _reset(writer)
            return
        self.accepted += 1
        link = self._loop.create_task(self._link(reader, writer))
        self._links.add(link)
        link.add_done_callback(lambda done: self._ended(done, writer))

    def _ended(self, link: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        self._links.discard(link)
        if not link.cancelled():
            link.exception()  # a server that refuses; the client is told below
        _reset(writer)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*self._server)
        ways = [
            asyncio.create_task(self._forward(reader, back)),
            asyncio.create_task(self._forward(there, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            _reset(back)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await self._flows.wait()
            writer.write(data)
            await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a reset, as a router does that has forgotten the connection."""
    link = writer.get_extra_info("socket")
    if link is not None and link.fileno() >= 0:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
