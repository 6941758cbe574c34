# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Finds and loads libhlcomm, declares its functions, and turns its failures into exceptions."""

import ctypes
import os
from ctypes import POINTER, c_char_p, c_double, c_int, c_size_t, c_uint64, c_void_p

ABI_VERSION = 1
FILE = f"libhlcomm.so.{ABI_VERSION}"
VARIABLE = "HLAUNCH_COMM_LIBRARY"


class CommError(RuntimeError):
    """A call failed; the message says which ranks and why."""


class Cancelled(CommError):
    """A rank called abort."""


class InvalidArgument(CommError, ValueError):
    """An argument is wrong, or ranks make different calls; the message shows both calls."""


class TimedOut(CommError, TimeoutError):
    """The time is up; the message says which rank waited for which."""


class OutOfResources(CommError):
    """Memory, descriptors or threads are used up."""


class RankLost(CommError):
    """A rank went away; the message names it."""


ERRORS = {1: Cancelled, 3: InvalidArgument, 4: TimedOut, 8: OutOfResources, 14: RankLost}


class Call(ctypes.Structure):
    """hlcomm_call."""

    _fields_ = [("verb", c_int), ("type", c_int), ("op", c_int), ("root", c_int),
                ("factor", c_double), ("from_", c_void_p), ("from_count", c_size_t),
                ("into", c_void_p), ("into_count", c_size_t), ("give", POINTER(c_size_t)),
                ("get", POINTER(c_size_t)), ("timeout_s", c_double)]


FUNCTIONS = {
    "hlcomm_error": (c_char_p,),
    "hlcomm_init": (c_int, c_char_p, c_int, c_int, c_char_p, c_double, POINTER(c_void_p)),
    "hlcomm_free": (None, c_void_p),
    "hlcomm_leave": (None, c_void_p, c_char_p),
    "hlcomm_rank": (c_int, c_void_p),
    "hlcomm_size": (c_int, c_void_p),
    "hlcomm_new_group": (c_int, c_void_p, POINTER(c_int), c_int, c_double, POINTER(c_void_p)),
    "hlcomm_run": (c_int, c_void_p, POINTER(Call)),
    "hlcomm_start": (c_int, c_void_p, POINTER(Call), POINTER(c_void_p)),
    "hlcomm_start_send": (c_int, c_void_p, c_int, c_void_p, c_size_t, c_int, c_uint64,
                          POINTER(c_void_p)),
    "hlcomm_start_recv": (c_int, c_void_p, c_int, c_void_p, c_size_t, c_int, c_uint64,
                          POINTER(c_void_p)),
    "hlcomm_wait": (c_int, c_void_p, c_double),
    "hlcomm_done": (c_int, c_void_p),
    "hlcomm_source": (c_int, c_void_p),
    "hlcomm_free_work": (None, c_void_p),
    "hlcomm_monitored_barrier": (c_int, c_void_p, c_double),
    "hlcomm_abort": (None, c_void_p, c_char_p),
}

_loaded = None


def candidates():
    """The paths to try, in order; the system searches for a bare name."""
    named = os.environ.get(VARIABLE)
    if named:
        return [named]
    here = os.path.dirname(os.path.abspath(__file__))
    # In a wheel it is beside this file; for PREFIX/lib/python3/dist-packages/hlaunch it is in
    # PREFIX/lib.
    paths = [os.path.join(here, FILE), os.path.join(here, "..", "..", "..", FILE)]
    return [path for path in paths if os.path.exists(path)] + [FILE]


def load():
    """Returns the library; loads it only once.

    Raises ImportError with the paths that were tried if none can be loaded.
    """
    global _loaded
    if _loaded is not None:
        return _loaded
    tried = []
    for path in candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            tried.append(str(error))
            continue
        _loaded = declare(library, path)
        return _loaded
    raise ImportError(f"cannot load {FILE}: {'; '.join(tried)}. Install hlaunch's library, or name "
                      f"its file in {VARIABLE}")


def declare(library, path):
    try:
        version = library.hlcomm_abi_version()
    except AttributeError:
        raise ImportError(f"{path} is not hlaunch's library: it has no hlcomm_abi_version; "
                          f"see {VARIABLE}") from None
    if version != ABI_VERSION:
        raise ImportError(f"{path} has ABI version {version}, this package is for {ABI_VERSION}: "
                          "install both from the same hlaunch")
    for name, (result, *arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def check(status):
    """Raises the exception for `status`, the result of the last call, unless it is 0."""
    if status != 0:
        words = load().hlcomm_error().decode("utf-8", "replace")
        raise ERRORS.get(status, CommError)(words)
