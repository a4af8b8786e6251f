#!/usr/bin/env python3
"""`relay.py LISTEN-PORT TARGET-PORT` passes TCP connections on: a path to the target that can be cut.

SIGKILL resets its connections, SIGSTOP makes it silent as a pulled cable does."""
import asyncio
import sys


async def pump(reader, writer):
    try:
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def main(listen_port, target_port):
    async def serve(reader, writer):
        try:
            onward = await asyncio.open_connection("127.0.0.1", target_port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, onward[1]), pump(onward[0], writer))

    server = await asyncio.start_server(serve, "127.0.0.1", listen_port)
    await server.serve_forever()


asyncio.run(main(*map(int, sys.argv[1:])))
