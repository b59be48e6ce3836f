"""The agent's end of the broker: JSON lines on a unix socket, one answer for each call."""

import asyncio
import contextlib
import itertools
import json
import os

SOCKET_VARIABLE = "EVALUATOR_BROKER"
LINE_BYTES = 16 * 1024 * 1024


class BrokerError(RuntimeError):
    """A call was not done; `code` says why."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class BrokerClient:
    def __init__(self, reader, writer):
        self._writer = writer
        self._ids = itertools.count(1)
        self._waiting = {}
        self._reading = asyncio.create_task(self._read(reader))

    @classmethod
    async def connect(cls):
        path = os.environ[SOCKET_VARIABLE]
        return cls(*await asyncio.open_unix_connection(path, limit=LINE_BYTES))

    async def call(self, name, **fields):
        """Does one call and returns its answer. A cancelled one is ended on the other side too."""
        number = next(self._ids)
        answered = asyncio.get_running_loop().create_future()
        self._waiting[number] = answered
        try:
            await self._send({"id": number, "call": name, **fields})
            answer = await answered
        except asyncio.CancelledError:
            with contextlib.suppress(ConnectionError):
                await self._send({"id": next(self._ids), "call": "cancel", "of": number})
            raise
        finally:
            self._waiting.pop(number, None)
        if "error" in answer:
            raise BrokerError(answer["error"]["code"], answer["error"]["message"])
        return answer

    async def close(self):
        self._reading.cancel()
        self._writer.close()

    async def _send(self, message):
        self._writer.write(json.dumps(message).encode() + b"\n")
        await self._writer.drain()

    async def _read(self, reader):
        while line := await reader.readline():
            answer = json.loads(line)
            answered = self._waiting.get(answer["id"])
            if answered is not None and not answered.done():
                answered.set_result(answer)
        for answered in self._waiting.values():
            if not answered.done():
                answered.set_exception(ConnectionError("the broker has closed the connection"))
