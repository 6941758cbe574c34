# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Programs in a memory cgroup with a limit."""

import os
import pathlib

import lab


class MemoryGroup:
    """A memory cgroup of the version that this machine has; OSError where none can be made."""

    def __init__(self, limit_bytes):
        v1, v2 = pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup")
        self.folder, limit = None, None
        if (v1 / "memory.limit_in_bytes").exists():
            self.folder, limit = v1, "memory.limit_in_bytes"
        elif "memory" in (v2 / "cgroup.subtree_control").read_text(encoding="ascii").split():
            self.folder, limit = v2, "memory.max"
        if not self.folder:
            raise OSError("no cgroup has memory.max")
        self.folder /= f"hlaunch-test-{os.getpid()}"
        self.folder.mkdir()
        try:
            (self.folder / limit).write_text(str(limit_bytes), encoding="ascii")
        except OSError:
            self.folder.rmdir()
            raise

    def within(self, *words):
        """The command line that runs `words` in it."""
        return ["sh", "-c", f"echo $$ > {self.folder}/cgroup.procs && exec \"$@\"", "sh", *words]

    def close(self):
        lab.poll(lambda: not (self.folder / "cgroup.procs").read_text(encoding="ascii"), 5)
        self.folder.rmdir()
