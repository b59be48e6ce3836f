"""The sandbox's end of the broker: a unix socket for the agent, this process's stdin and stdout for the guest.

Every line of a connection goes out as "NUMBER LINE", and every answer that comes in goes to the connection of its
number. Nothing is read into a line here: the guest does that, and believes none of it.
"""

import asyncio
import os
import sys

#: Of a call, as the guest takes it, and of an answer.
CALL_BYTES = 1024 * 1024
ANSWER_BYTES = 16 * 1024 * 1024
TOO_LONG = b'{"id":null,"error":{"code":"malformed","message":"a line longer than 1048576 bytes"}}\n'


async def lines(reader):
    """Each whole line; None in place of one that is too long, which is not kept."""
    too_long = False
    while True:
        try:
            line = await reader.readuntil(b"\n")
        except asyncio.LimitOverrunError as overrun:
            await reader.readexactly(overrun.consumed)
            too_long = True
            continue
        except asyncio.IncompleteReadError:
            return
        yield None if too_long else line
        too_long = False


class Bridge:
    def __init__(self, out):
        self.out = out
        self.clients = {}
        self.count = 0

    async def serve(self, reader, writer):
        self.count += 1
        number = self.count
        self.clients[number] = writer
        try:
            async for line in lines(reader):
                if line is None:
                    writer.write(TOO_LONG)
                    continue
                self.out.write(b"%d %s" % (number, line))
                await self.out.drain()
        except ConnectionError:
            pass
        finally:
            del self.clients[number]
            writer.close()

    async def answer(self, answers):
        while line := await answers.readline():
            number, _, text = line.partition(b" ")
            client = self.clients.get(int(number))
            # Not waited for: one that does not read must not keep its neighbours from their answers.
            if client is not None:
                client.write(text)


async def pipes(loop):
    answers = asyncio.StreamReader(limit=ANSWER_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(answers), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    return answers, asyncio.StreamWriter(transport, protocol, None, loop)


async def main(path):
    answers, out = await pipes(asyncio.get_running_loop())
    bridge = Bridge(out)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    server = await asyncio.start_unix_server(bridge.serve, path, limit=CALL_BYTES)
    os.chmod(path, 0o666)
    out.write(b"ready\n")
    async with server:
        await bridge.answer(answers)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
