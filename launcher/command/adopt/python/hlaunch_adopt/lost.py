# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Lies in an adopted environment as hlaunch_adopt_lost.py, which its Python imports only if hlaunch's
folder @FOLDER@ is gone. A program that imports torch's launcher is told so, and goes on."""

import os
import sys


class _Finder:
    def find_spec(self, name, path=None, target=None):  # pylint: disable=unused-argument
        if name == "torch.distributed.launcher.api":
            sys.meta_path.remove(self)
            if sys.stderr is not None and "TORCHELASTIC_RUN_ID" not in os.environ:
                sys.stderr.write("hlaunch: it is not at @FOLDER@ any more, so torch's own agent runs "
                                 "this job; say hlaunch adopt again, or remove @DOOR@\n")


sys.meta_path.insert(0, _Finder())
