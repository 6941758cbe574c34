#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A debugger on one rank: copy `stop_here` into your script and call it where you want to look.

    DEBUG_RANK=1 hlaunch --nproc-per-node 2 deploy/examples/debug_one_rank.py
    nc 127.0.0.1 5678      # in a second terminal on that rank's host

DEBUG_RANK is the rank that stops; without it none does. DEBUGGER=debugpy waits for VS Code
instead (`pip install debugpy`). The other ranks go on until they wait for this one.
"""

import os
import pdb
import socket
import sys


def stop_here(port=5678):
    """Stops this process in the debugger if it is rank DEBUG_RANK; otherwise returns at once."""
    if os.environ.get("RANK") != os.environ.get("DEBUG_RANK"):
        return
    where = f"rank {os.environ['RANK']} (pid {os.getpid()})"
    if os.environ.get("DEBUGGER") == "debugpy":
        import debugpy  # pylint: disable=import-outside-toplevel
        debugpy.listen(("127.0.0.1", port))
        print(f"{where} waits for VS Code at port {port}", flush=True)
        debugpy.wait_for_client()
        debugpy.breakpoint()
        return
    # Loopback only: a user who reaches this port can run anything as this user.
    with socket.create_server(("127.0.0.1", port)) as server:
        print(f"{where} waits for a debugger: nc 127.0.0.1 {server.getsockname()[1]}", flush=True)
        connection, _ = server.accept()
    debugger = pdb.Pdb(stdin=connection.makefile("r"), stdout=connection.makefile("w"),
                       nosigint=True)
    debugger.set_trace(sys._getframe().f_back)  # pylint: disable=protected-access


def main():
    total = 0
    for step in range(5):
        if step == 3:
            stop_here(int(os.environ.get("DEBUG_PORT", "5678")))
        total += step
    print(f"rank {os.environ.get('RANK', 0)}: total {total}", flush=True)


if __name__ == "__main__":
    main()
