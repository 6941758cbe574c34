# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Heartbeats: a training loop tells the hlaunch that started it that it goes on."""

import errno
import faulthandler
import os
import signal
import socket

VARIABLE = "HLAUNCH_HEARTBEAT"
PATIENCE_S = 1  # For a message that the next one does not make up for.
STACKS_SIGNAL = signal.SIGRTMAX - 7  # Nobody's.

_socket = None
_stacks = ""  # Said with each heartbeat: how this process is made to show its stacks.


def heartbeat(step=None, timeout=None):
    """Tells hlaunch that this worker lives; call it once in each step.

    With --heartbeat-timeout S hlaunch takes a worker that was heard once, and then not for S
    seconds, for stalled. Of `step`, a number, only a new value counts: a thread that goes on
    telling the same one keeps nothing alive. `timeout`: seconds until the next call, in place of S,
    for what takes longer; float("inf"): as long as it likes.

    The first call has Python's faulthandler write this process' stacks to a file in memory when
    hlaunch sends it a signal for them (SIGRTMAX-7), unless that signal is in use.

    Is one system call, may be called from any thread and after a fork, and waits only, for a second
    at most, where a timeout must not be lost and hlaunch is behind with listening. Where
    nobody listens, under torchrun say, it does nothing. Returns whether hlaunch was told.
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
    """Has faulthandler answer a signal; it needs neither Python's lock nor the main thread."""
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
    # What stands in the queue says as well that this worker lives, but it says no time.
    return not wait or _send_patiently(message)


def _send_patiently(message):
    patient = _socket.dup()
    try:
        patient.settimeout(PATIENCE_S)
        patient.send(message)
        return True
    except OSError:
        return False
    finally:
        patient.close()
