#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The address of a service: passes TCP connections on to one host, as a load balancer or NAT does.

    relay.py PORT BACKEND [no-hairpin]

With no-hairpin the backend's own connections are not passed back to it.
"""

import asyncio
import sys

PORT, BACKEND, HAIRPIN = int(sys.argv[1]), sys.argv[2], "no-hairpin" not in sys.argv[3:]


async def copy(reader, writer):
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def serve(reader, writer):
    peer = writer.get_extra_info("peername")[0].removeprefix("::ffff:")
    try:
        if peer == BACKEND and not HAIRPIN:
            raise OSError("no hairpin")
        to, back = await asyncio.open_connection(BACKEND, PORT)
    except OSError:
        writer.close()
        return
    await asyncio.gather(copy(reader, back), copy(to, writer))


async def main():
    server = await asyncio.start_server(serve, None, PORT)
    print("relay is up", flush=True)
    await server.serve_forever()

asyncio.run(main())
