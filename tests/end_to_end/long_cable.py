#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A cable that delays every frame: long_cable.py PID DEVICE PID DEVICE SECONDS READY.

Makes a TAP device in the network namespace of each process and carries frames between the two.
The cable exists once the file READY is there, and it ends with this process.
"""

import collections
import ctypes
import fcntl
import os
import pathlib
import select
import struct
import sys
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000  # linux/if_tun.h
MOST = 10000  # Frames in transit; the cable drops any more.
FRAME = 65536


def tap(pid, device):
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/proc/{pid}/ns/net", encoding="utf-8") as namespace:
        if libc.setns(namespace.fileno(), 0) != 0:
            raise OSError(ctypes.get_errno(), f"setns to {pid}")
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TAP | IFF_NO_PI))
    return file


def take(file):
    """Yields all frames that are there."""
    while True:
        try:
            yield os.read(file, FRAME)
        except BlockingIOError:
            return


def put(file, frame):
    try:
        os.write(file, frame)
    except OSError:
        pass  # The other end is down or full.


def carry(ends, seconds):
    """Carries frames between the two ends; never returns."""
    ways = {ends[0]: (ends[1], collections.deque()), ends[1]: (ends[0], collections.deque())}
    while True:
        first = min((frames[0][0] for _, frames in ways.values() if frames), default=None)
        readable = select.select(
            ends, [], [], None if first is None else max(0, first - time.monotonic()))[0]
        now = time.monotonic()
        for end in readable:
            frames = ways[end][1]
            frames.extend((now + seconds, frame) for frame in take(end) if len(frames) < MOST)
        for other, frames in ways.values():
            while frames and frames[0][0] <= now:
                put(other, frames.popleft()[1])


def main():
    pid, device, other_pid, other_device, seconds, ready = sys.argv[1:]
    ends = [tap(pid, device), tap(other_pid, other_device)]
    pathlib.Path(ready).touch()
    carry(ends, float(seconds))


if __name__ == "__main__":
    main()
