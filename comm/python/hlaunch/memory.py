# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Finds the memory of a caller's object: anything with the buffer protocol, NumPy arrays, and torch
tensors on the CPU. This module imports neither NumPy nor torch."""

import ctypes
import sys

# hlcomm_type, by the names that NumPy and torch use.
BYTE = 0
TYPES = {"float16": 1, "bfloat16": 2, "float32": 3, "float64": 4, "int8": 5, "uint8": 6,
         "int32": 7, "int64": 8, "bool": 9, "complex64": 3, "complex128": 4}  # Complex: pairs.
SIZES = [1, 2, 2, 4, 8, 1, 1, 4, 8, 1]
# The struct module's letters; those of `long` are 8 bytes wide on 64-bit Linux.
FORMATS = {"e": "float16", "f": "float32", "d": "float64", "b": "int8", "B": "uint8",
           "i": "int32", "l": "int64", "q": "int64", "?": "bool", "c": "uint8"}

# The types that are reduced as pairs of numbers.
COMPLEX = ("complex64", "complex128")

TAKES = "a NumPy array, a CPU torch tensor or an object with the buffer protocol"


class Memory:
    """Contiguous elements. `finish`, if it is not None, copies received data from here to the
    caller's object."""

    __slots__ = ("address", "count", "type", "name", "owner", "finish")

    def __init__(self, address, size, name, owner, finish=None):
        self.name = name  # The type's name.
        self.type = TYPES.get(name, BYTE)
        # Types without arithmetic are moved as bytes.
        self.count = size // SIZES[self.type]
        self.address, self.owner, self.finish = address, owner, finish

    @property
    def size(self):
        return self.count * SIZES[self.type]


def of(thing, what, writable):
    """Returns the memory of `thing`; `what` names it in errors."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(thing, torch.Tensor):
        return of_tensor(thing, what, writable)
    if hasattr(thing, "__array_interface__") and hasattr(thing, "dtype"):
        return of_array(thing, what, writable)
    return of_buffer(thing, what, writable)


def of_tensor(tensor, what, writable):
    if tensor.device.type != "cpu":
        raise TypeError(f"{what} is on {tensor.device}: hlaunch moves memory of the CPU; "
                        "call .cpu() first")
    if str(tensor.layout) != "torch.strided" or tensor.is_quantized:
        raise TypeError(f"{what} is a {'quantized' if tensor.is_quantized else tensor.layout} "
                        "tensor; give a dense one")
    tensor = tensor.detach()
    if writable and (tensor.is_conj() or tensor.is_neg()):
        raise TypeError(f"{what} is a lazy conjugate or negative; call .resolve_conj() and "
                        ".resolve_neg() first")
    dense, finish = tensor, None
    if not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
        dense = tensor.resolve_conj().resolve_neg().contiguous()
        if writable:
            def finish():
                tensor.copy_(dense)
    name = str(tensor.dtype)[len("torch."):]
    return Memory(dense.data_ptr(), dense.numel() * dense.element_size(), name, dense, finish)


def of_array(array, what, writable):
    dtype = array.dtype
    if not dtype.isnative:
        raise TypeError(f"{what} is of {dtype}, the other byte order; call .astype(...) first")
    if dtype.hasobject:
        raise TypeError(f"{what} holds Python objects, which cannot be moved")
    if writable and not array.flags.writeable:
        raise TypeError(f"{what} is read-only")
    dense, finish = array, None
    if not array.flags.c_contiguous:
        dense = array.copy(order="C")
        if writable:
            def finish():
                array[...] = dense
    return Memory(dense.__array_interface__["data"][0], dense.nbytes, dtype.name, dense, finish)


def of_buffer(thing, what, writable):
    try:
        view = memoryview(thing)
    except TypeError:
        raise TypeError(f"{what} is a {type(thing).__name__}; it must be {TAKES}") from None
    if not view.c_contiguous:
        raise TypeError(f"{what} is a view with gaps; give a contiguous one")
    name = FORMATS.get(view.format.lstrip("@="), view.format)
    if view.nbytes == 0:
        return Memory(None, 0, name, view)
    if view.readonly:
        if writable:
            raise TypeError(f"{what} is read-only")
        view = memoryview(bytearray(view.cast("B")))  # ctypes only takes writable memory.
    raw = (ctypes.c_char * view.nbytes).from_buffer(view)
    return Memory(ctypes.addressof(raw), view.nbytes, name, raw)


def source(thing, what="the input"):
    return of(thing, what, False)


def target(thing, what="the output"):
    return of(thing, what, True)


def many(things, what, writable):
    """Returns the memories of a list; all must have one type."""
    if things is None or isinstance(things, (str, bytes)) or not hasattr(things, "__iter__"):
        raise TypeError(f"{what} must be a list, one for each rank")
    memories = [of(thing, f"{what}[{index}]", writable) for index, thing in enumerate(things)]
    names = sorted({memory.name for memory in memories})
    if len(names) > 1:
        raise TypeError(f"{what} mixes {' and '.join(names)}")
    return memories


def joined(memories, writable):
    """Returns one memory for all, in order: the same memory if they are contiguous, else a copy
    whose `finish` distributes the data again."""
    size = sum(memory.size for memory in memories)
    name = memories[0].name if memories else "uint8"
    filled = [memory for memory in memories if memory.size]
    together = all(left.address + left.size == right.address
                   for left, right in zip(filled, filled[1:]))
    finishes = [memory.finish for memory in memories if memory.finish]
    if together and not finishes:
        return Memory(filled[0].address if filled else None, size, name, memories)
    scratch = (ctypes.c_char * size)()
    start = ctypes.addressof(scratch)
    if not writable:
        at = start
        for memory in filled:
            ctypes.memmove(at, memory.address, memory.size)
            at += memory.size
        return Memory(start, size, name, (scratch, memories))

    def distribute():
        at = start
        for memory in filled:
            ctypes.memmove(memory.address, at, memory.size)
            at += memory.size
        for finish in finishes:
            finish()
    return Memory(start, size, name, (scratch, memories), distribute)
