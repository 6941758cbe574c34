# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Heartbeats: a training loop tells the hlaunch that started it that it makes progress."""

import errno
import faulthandler
import os
import signal
import socket

VARIABLE = "HLAUNCH_HEARTBEAT"
SEND_TIMEOUT_S = 1  # For a message with a timeout, which the next message may not repeat.
STACKS_SIGNAL = signal.SIGRTMAX - 7  # No common program uses it.

_socket = None
_stacks = ""  # Part of each heartbeat: how hlaunch can make this process write its stacks.


def heartbeat(step=None, timeout=None):
    """Tells hlaunch that this worker lives; call it once in each step.

    With --heartbeat-timeout S, a worker that has called this once and then not for S seconds is
    stalled. If `step`, a number, is given, only a new value counts, so a thread that repeats the
    same step does not keep a stalled worker alive. `timeout` replaces S until the next call, in
    seconds, for work that takes longer; float("inf") means no limit.

    The first call has Python's faulthandler write this process' stacks to a file in memory when
    hlaunch sends it a signal for them (SIGRTMAX-7), unless that signal is in use.

    A call is one system call. It may be made from any thread and after a fork. It waits, for a
    second at most, only if a timeout is given and hlaunch has not read the messages before it. Where
    hlaunch does not listen, as under torchrun, it does nothing. Returns whether hlaunch was told.
    """
    if _socket is None and not _connect():
        return False
    words = "heartbeat/1" + _stacks
    if step is not None:
        words += f" step={int(step)}"
    if timeout is not None:
        words += f" timeout_ms={_milliseconds(timeout)}"
    return _send(words.encode(), wait=timeout is not None)


def _milliseconds(timeout):
    if not timeout > 0:  # Nor a NaN.
        raise ValueError(f"timeout={timeout}: expected seconds, or float('inf')")
    return 0 if timeout == float("inf") else max(1, int(timeout * 1000))


def _show_stacks():
    """Makes faulthandler answer a signal; it needs neither Python's lock nor the main thread."""
    try:
        if signal.getsignal(STACKS_SIGNAL) != signal.SIG_DFL:
            return ""
        file = os.memfd_create("hlaunch-stacks")
        faulthandler.register(STACKS_SIGNAL, file=file, all_threads=True)
    except (OSError, RuntimeError, AttributeError):
        return ""
    return f" stacks={int(STACKS_SIGNAL)},{file}"


def _connect():
    global _socket, _stacks
    address = os.environ.get(VARIABLE)
    if not address:
        return False
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        made.connect("\0" + address[1:] if address.startswith("@") else address)
    except OSError:
        made.close()
        return False
    made.setblocking(False)
    _stacks = _show_stacks()
    _socket = made
    return True


def _send(message, wait):
    try:
        _socket.send(message)
        return True
    except OSError as error:
        if error.errno != errno.EAGAIN:
            return False
    # The messages in the full queue also show that this worker lives, but have no timeout.
    return not wait or _send_waiting(message)


def _send_waiting(message):
    waiting = _socket.dup()
    try:
        waiting.settimeout(SEND_TIMEOUT_S)
        waiting.send(message)
        return True
    except OSError:
        return False
    finally:
        waiting.close()
