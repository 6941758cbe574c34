#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""What a slow file system is asked while ranks import a module from it, with and without --preload.

    tests/bench/launch/slow_files.py PACKAGES [--import torch] [--ranks 8] [--delay 0.5] [--rate 200]

PACKAGES is a folder of installed packages (…/site-packages) that fits /usr/bin/python3. It is mounted
through FUSE, with nothing cached, so that each request takes --delay milliseconds and reading --rate
MiB a second; as NFS does, the kernel keeps what it has read of a file until that changes, and what
it knows of a name for a second. Prints until all ranks stand behind the import:

    start       seconds
    requests    how often the file system was asked, and of that how often for a name or for a file's
                attributes
    bytes       MiB that it gave
    processor   processor seconds of the job, without the file system's own

Needs root, /dev/fuse, and Debian's python3-fusepy; this machine's processor serves the file system,
too, so the seconds of one machine say little about another.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import warm_start

SCRIPT = """
import os, time
import MODULE
with open(os.environ["BEHIND"], "a") as file:
    file.write("behind\\n")
time.sleep(600)
"""


def serve(source, place, delay, rate, told):
    """Mounts `source` at `place`, and writes what it was asked into `told` at the end."""
    import fusepy as fuse
    counts, lock = {"names": 0, "others": 0, "bytes": 0}, threading.Lock()

    def count(kind, size=0):
        with lock:
            counts[kind] += 1
            counts["bytes"] += size
        time.sleep(delay / 1000 + size / (rate * 2 ** 20))

    class Slow(fuse.Operations):
        def getattr(self, path, fh=None):
            count("names")
            try:
                found = os.lstat(source + path)
            except OSError as error:
                raise fuse.FuseOSError(error.errno)
            return {name: getattr(found, name) for name in (
                "st_atime", "st_ctime", "st_gid", "st_mode", "st_mtime", "st_nlink", "st_size", "st_uid")}

        def readdir(self, path, fh):
            count("others")
            return [".", "..", *os.listdir(source + path)]

        def readlink(self, path):
            count("names")
            return os.readlink(source + path)

        def open(self, path, flags):
            count("others")
            return os.open(source + path, os.O_RDONLY)

        def read(self, path, size, offset, fh):
            data = os.pread(fh, size, offset)
            count("others", len(data))
            return data

        def release(self, path, fh):
            os.close(fh)

    fuse.FUSE(Slow(), place, foreground=True, ro=True, auto_cache=True, allow_other=True)
    pathlib.Path(told).write_text(json.dumps(counts), encoding="ascii")


def start(options, preload, folder, place, behind):
    env = {**os.environ, "PYTHON_EXEC": "/usr/bin/python3", "PYTHONPATH": str(place), "BEHIND": str(behind),
           "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    began = time.time()
    with subprocess.Popen([str(warm_start.HLAUNCH), "--nproc-per-node", str(options.ranks), "--preload",
                           options.module if preload else "off", str(folder / "script.py")],
                          env=env, cwd=folder, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as job:
        try:
            warm_start.wait_until(lambda: len(warm_start.lines(behind)) == options.ranks, job, "the first round")
            return time.time() - began, warm_start.processor_of(job.pid)
        finally:
            job.terminate()


def measure(options, preload, folder):
    place, told, behind = (folder / name for name in ("place", "told", "behind"))
    place.mkdir()
    (folder / "script.py").write_text(SCRIPT.replace("MODULE", options.module), encoding="utf-8")
    words = [sys.executable, __file__, "--serve", place, told, options.packages,
             "--delay", options.delay, "--rate", options.rate]
    with subprocess.Popen(list(map(str, words))) as server:
        try:
            warm_start.wait_until(lambda: os.path.ismount(place), server, "the mount")
            took, processor = start(options, preload, folder, place, behind)
        finally:
            subprocess.run(["umount", "--lazy", str(place)], check=False, timeout=60)
            server.wait(600)
    return took, json.loads(told.read_text(encoding="ascii")), processor


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("packages")
    parser.add_argument("--import", dest="module", default="torch")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--delay", type=float, default=0.5)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.packages, *options.serve[:1], options.delay, options.rate, options.serve[1])
        return
    print(f"{options.ranks} ranks, import {options.module}, {options.delay} ms a request, {options.rate:.0f} MiB/s")
    print(f"{'':20}{'start':>10}{'requests':>12}{'for names':>12}{'bytes':>12}{'processor':>12}")
    for preload in False, True:
        with tempfile.TemporaryDirectory() as folder:
            took, counts, processor = measure(options, preload, pathlib.Path(folder))
        print(f"{'hlaunch --preload' if preload else 'hlaunch':20}{took:8.1f} s{counts['names'] + counts['others']:12}"
              f"{counts['names']:12}{counts['bytes'] / 2 ** 20:8.0f} MiB{processor:10.1f} s", flush=True)


if __name__ == "__main__":
    main()
