# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A port for a server that is told its port; for C++ see tests/fakes/free_port.h."""

import contextlib
import random
import socket


def free_port():
    """Not one that the kernel gives to sockets which ask for any, so nobody gets it meanwhile."""
    while True:
        with socket.socket() as s, contextlib.suppress(OSError):
            port = random.randrange(10000, 29000)
            s.bind(("127.0.0.1", port))
            return port
