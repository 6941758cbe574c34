# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Lets a training loop tell its hlaunch that it makes progress, and when it may be stopped."""

import errno
import faulthandler
import os
import signal
import socket

VARIABLE = "HLAUNCH_HEARTBEAT"
BOUNDARY_VARIABLE = "HLAUNCH_BOUNDARY"  # Only rank 0 has it.
SEND_TIMEOUT_S = 1  # For a message with a timeout, which the next message may not repeat.
STACKS_SIGNAL = signal.SIGRTMAX - 7  # No common program uses it.

_socket = None
_boundary_socket = None
_stacks = ""  # Part of each heartbeat: how hlaunch can make this process write its stacks.


def heartbeat(step=None, timeout=None):
    """Tells hlaunch that this worker lives; call it once in each step.

    With --heartbeat-timeout S, a worker that has called this once and then not for S seconds is
    stalled. If `step`, a number, is given, only a new value counts, so a thread that repeats the
    same step does not keep a stalled worker alive. `timeout` replaces S until the next call, in
    seconds, for work that takes longer; float("inf") means no limit.

    The first call registers Python's faulthandler: when hlaunch sends a signal (SIGRTMAX-7), it
    writes this process' stacks to a file in memory. It does not do so if that signal is in use.

    A call is one system call. It may be made from any thread and after a fork. It waits, for a
    second at most, only if a timeout is given and hlaunch has not read the earlier messages. If
    hlaunch does not listen, as under torchrun, it does nothing. Returns whether hlaunch was told.
    """
    if _socket is None and not _connect():
        return False
    words = "heartbeat/1" + _stacks
    if step is not None:
        words += f" step={int(step)}"
    if timeout is not None:
        words += f" timeout_ms={_milliseconds(timeout)}"
    return _send(_socket, words.encode(), wait=timeout is not None)


def at_boundary():
    """Tells hlaunch that this is a good moment to stop; call it right after saving a checkpoint.

    If nodes wait to join the job, hlaunch stops its workers now rather than between two
    checkpoints, and they start again with the new nodes from this checkpoint. Only rank 0's calls
    count; the others may call it too.

    A call is one system call on rank 0, and none on the others. It does nothing if hlaunch does not
    listen: under torchrun, alone, on one node. Returns whether hlaunch was told.
    """
    global _boundary_socket
    if _boundary_socket is None:
        _boundary_socket = _open(BOUNDARY_VARIABLE)
    if _boundary_socket is None:
        return False
    return _send(_boundary_socket, b"boundary/1", wait=True)


def _milliseconds(timeout):
    if not timeout > 0:  # This refuses NaN, too.
        raise ValueError(f"timeout={timeout}: expected seconds, or float('inf')")
    return 0 if timeout == float("inf") else max(1, int(timeout * 1000))


def _show_stacks():
    """Makes faulthandler answer a signal, which needs neither Python's lock nor the main thread."""
    try:
        if signal.getsignal(STACKS_SIGNAL) != signal.SIG_DFL:
            return ""
        file = os.memfd_create("hlaunch-stacks")
        faulthandler.register(STACKS_SIGNAL, file=file, all_threads=True)
    except (OSError, RuntimeError, AttributeError):
        return ""
    return f" stacks={int(STACKS_SIGNAL)},{file}"


def _open(variable):
    """A socket to the address that this variable names, or None."""
    address = os.environ.get(variable)
    if not address:
        return None
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        made.connect("\0" + address[1:] if address.startswith("@") else address)
    except OSError:
        made.close()
        return None
    made.setblocking(False)
    return made


def _connect():
    global _socket, _stacks
    made = _open(VARIABLE)
    if made is None:
        return False
    _stacks = _show_stacks()
    _socket = made
    return True


def _send(to, message, wait):
    try:
        to.send(message)
        return True
    except OSError as error:
        if error.errno != errno.EAGAIN:
            return False
    # The messages in the full queue also show that this worker lives, but have no timeout.
    return not wait or _send_waiting(to, message)


def _send_waiting(to, message):
    waiting = to.dup()
    try:
        waiting.settimeout(SEND_TIMEOUT_S)
        waiting.send(message)
        return True
    except OSError:
        return False
    finally:
        waiting.close()
