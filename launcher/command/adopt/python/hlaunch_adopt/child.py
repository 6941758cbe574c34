# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""hlaunch as a child of the process that called launch_agent."""

import ctypes
import os
import signal
import subprocess
import sys
import threading

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def run_child(program, words, env, config):
    """Runs hlaunch with `words`, which begin with its name; returns its exit code.

    It has a session of its own, so that a signal reaches it once, from here. If this process dies,
    it ends the job. Raises what torch's agent would after a signal, and KeyboardInterrupt after
    SIGINT, which in a notebook ends a cell.
    """
    flush()
    parent = os.getpid()

    def end_with_parent():
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    terminal = sys.__stdin__ is None or _is_terminal(0)  # Nothing reads a terminal of another session.
    with _Forwarding(config) as forwarding:
        process = subprocess.Popen(words, executable=program, env=env, start_new_session=True,
                                   stdin=subprocess.DEVNULL if terminal else None,
                                   preexec_fn=end_with_parent)
        forwarding.to(process)
        try:
            code = process.wait()
        except BaseException:  # Of a handler that somebody else set.
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
    forwarding.raise_received()
    return code


def flush():
    """Writes what this process has printed. A stream that its caller has closed is None."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()


def _is_terminal(descriptor):
    try:
        return os.isatty(descriptor)
    except OSError:
        return True


class _Forwarding:
    """Passes on the signals that torch's agent handles, where Python allows a handler, and puts the
    handlers back."""

    def __init__(self, config):
        names = getattr(config, "signals_to_handle", None) or "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
        self.numbers = [getattr(signal, name.strip()) for name in names.split(",")
                        if hasattr(signal, name.strip())]
        self.process, self.received, self.before = None, None, {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in self.numbers:
                self.before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_):
        for number, handler in self.before.items():
            # None: not set by Python, and so it cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def to(self, process):
        self.process = process
        if self.received is not None:  # It came before the child.
            process.send_signal(self.received)

    def _handle(self, number, _):
        self.received = self.received or number
        if self.process is not None:
            self.process.send_signal(number)

    def raise_received(self):
        if self.received == signal.SIGINT:
            raise KeyboardInterrupt
        if self.received is not None:
            from torch.distributed.elastic.multiprocessing import SignalException
            number = signal.Signals(self.received)
            raise SignalException(f"Process {os.getpid()} got signal: {number}", sigval=number)
