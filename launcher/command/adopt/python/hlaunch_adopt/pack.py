# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A function and its arguments as bytes, which call reads in each rank.

They are pickled as multiprocessing does for `spawn`: the rank imports the main script once more,
under the name __mp_main__. What exists in no file - of a notebook, a lambda, a closure - is pickled
by value, by cloudpickle.
"""

import multiprocessing.process
import multiprocessing.spawn
import pickle
import sys

from hlaunch_adopt.words import Refused


def pack(function, args):
    """Raises Refused if that cannot be pickled, or would not be what it is."""
    name = getattr(function, "__qualname__", repr(function))
    for number, arg in enumerate(args):
        if any(tensor.is_shared() for tensor in tensors_of(arg)):
            raise Refused(f"argument {number + 1} of {name} is in shared memory, and each rank would "
                          "have a copy of its own: return the values instead")
    by_value = _is_of_main(function) and not _main_has_file()
    why = f"{name} is defined in no file"
    if not by_value:
        try:
            return _with_preparation(pickle.dumps((function, tuple(args))), imports_main=True)
        except Exception as error:  # pylint: disable=broad-except
            why = f"{name} and its arguments cannot be pickled: {_line(error)}"
    try:
        import cloudpickle  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise Refused(f"{why}; install cloudpickle, or move the function into a module") from None
    try:
        return _with_preparation(cloudpickle.dumps((function, tuple(args))), imports_main=False)
    except Exception as error:  # pylint: disable=broad-except
        raise Refused(f"{name} and its arguments cannot be pickled: {_line(error)}; what processes "
                      "share by inheritance cannot be an argument") from error


def _with_preparation(pickled, imports_main):
    data = multiprocessing.spawn.get_preparation_data(multiprocessing.process.current_process().name)
    data["authkey"] = bytes(data["authkey"])  # It refuses to be pickled as what it is.
    if not imports_main:
        data = {key: value for key, value in data.items() if not key.startswith("init_main_from_")}
    return pickle.dumps((data, pickled))


def tensors_of(arg):
    """The tensors in the host's memory that it is or holds, as a list or a model does."""
    torch = sys.modules.get("torch")
    parts = []
    if isinstance(arg, (list, tuple)):
        parts = arg
    elif isinstance(arg, dict):
        parts = arg.values()
    elif torch is not None and isinstance(arg, torch.nn.Module):
        parts = [*arg.parameters(), *arg.buffers()]
    elif torch is not None and isinstance(arg, torch.Tensor):
        return [arg] if arg.device.type == "cpu" else []
    return [tensor for part in parts for tensor in tensors_of(part)]


def _is_of_main(function):
    return getattr(function, "__module__", None) == "__main__"


def _main_has_file():
    main = sys.modules["__main__"]
    return getattr(main, "__file__", None) is not None or getattr(main, "__spec__", None) is not None


def _line(error):
    return " ".join(f"{type(error).__name__}: {error}".split())
