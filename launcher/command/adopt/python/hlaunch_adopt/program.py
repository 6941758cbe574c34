# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Where hlaunch's program is."""

import os
import runpy

from hlaunch_adopt.words import Refused

HERE = os.path.dirname(os.path.abspath(__file__))
NAMED = "HLAUNCH_PROGRAM"


def find_program():
    named = os.environ.get(NAMED, "")
    if named:
        if os.path.isfile(named) and os.access(named, os.X_OK):
            return named
        raise Refused(f"{NAMED} is {named}, which is no program; correct it or unset it")
    # `python -m hlaunch` looks in the same places; importing its package would load the library.
    own = os.path.join(HERE, "..", "..", "__main__.py")
    places = list(runpy.run_path(own)["candidates"]("hlaunch")) if os.path.exists(own) else []
    for path in places:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    raise Refused("hlaunch's program is not beside its Python package and not in PATH; install it, "
                  f"or set {NAMED} to its path")
