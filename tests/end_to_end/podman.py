# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""podman for tests."""

import os
import subprocess

import lab


class Podman:
    """podman with its own store; rootful, without systemd, CAP_SYS_RESOURCE or cgroup v2."""

    def __init__(self, folder):
        hard = subprocess.run("ulimit -Hn", shell=True, text=True, capture_output=True,
                              check=True).stdout.strip()
        config = folder / "containers.conf"
        config.write_text(
            f'[containers]\ndefault_ulimits = ["nofile={hard}:{hard}", "nproc=1024:1024"]\n'
            '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "runc"\n',
            encoding="utf-8")
        self.folder = folder  # conmon leaves files in its working directory.
        self.argv = ["podman", "--root", folder / "store", "--runroot", folder / "run"]
        self.env = {**os.environ, "CONTAINERS_CONF": str(config)}

    def start(self, *words):
        return subprocess.Popen(["timeout", "-k", "2", str(60 * lab.PATIENCE), *self.argv, *map(str, words)],
                                env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *words, timeout=60, check=True, inside=()):
        done = subprocess.run([*inside, *self.argv, *map(str, words)], env=self.env, text=True,
                              cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=timeout * lab.PATIENCE, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"podman {words[0]}: {done.stdout[-2000:]}")
        return done
