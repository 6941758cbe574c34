#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""libhlcomm for old systems can be built, exports what it should, and works beside torch;
hlaunch-pmix for old systems serves Open MPI. The bill of materials lists what is inside the
programs.

Usage: hlcomm_test.py BUILD_FOLDER [CLASS...]
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIP = 77  # CTest's SKIP_RETURN_CODE
TORCH2 = os.environ.get("HLAUNCH_TORCH2_PYTHON",
                        os.path.expanduser("~/.cache/hlaunch/torch-newest/bin/python"))


def run(*words, **environment):
    return subprocess.run([str(word) for word in words], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          timeout=600, env={**os.environ, **environment})


class Portable(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.library = pathlib.Path(cls.folder.name) / "libhlcomm.so.1"
        done = run(ROOT / "deploy/build_portable", cls.folder.name, "--build", BUILD, "--only",
                   "libhlcomm")
        assert done.returncode == 0, done.stdout

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_it_shows_the_header_and_needs_an_old_glibc(self):
        done = run(sys.executable, ROOT / "tests/comm/hlcomm_library_test.py", self.library,
                   ROOT / "comm/hlcomm.h")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotRegex(run("ldd", self.library).stdout, "absl|crypto|ssl|stdc")

    def test_ranks_in_python(self):
        for python in ("/usr/bin/python3", TORCH2):
            if not os.access(python, os.X_OK):
                continue
            done = run(python, ROOT / "tests/comm/python_test.py", BUILD / "python", "Package",
                       HLAUNCH_COMM_LIBRARY=str(self.library))
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_torch_and_its_own_openssl_are_there_first(self):
        if not os.access(TORCH2, os.X_OK):
            self.skipTest("no torch 2")
        done = run(TORCH2, "-c", "import ssl, torch; from hlaunch import library; library.load();"
                   "print(ssl.create_default_context(), torch.ones(2).sum())",
                   PYTHONPATH=str(BUILD / "python"), HLAUNCH_COMM_LIBRARY=str(self.library))
        self.assertEqual(done.returncode, 0, done.stdout)


class Pmix(unittest.TestCase):
    def test_it_serves_open_mpi_and_needs_an_old_glibc(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(ROOT / "deploy/build_portable", folder, "--build", BUILD, "--only", "hlaunch-pmix")
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertNotRegex(run("ldd", f"{folder}/hlaunch-pmix").stdout, "absl|crypto|ssl|stdc")
            # Else libpmix takes the C library's, and other users are heard.
            self.assertRegex(run("readelf", "--dyn-syms", f"{folder}/hlaunch-pmix").stdout, r"FUNC +GLOBAL.* accept\n")
            shutil.copy(BUILD / "bin/hlaunch", folder)
            program = pathlib.Path(folder, "hello")
            built = run("mpicc.openmpi", "-o", program, ROOT / "tests/workers/mpi_worker.c")
            self.assertEqual(built.returncode, 0, built.stdout)
            done = run(f"{folder}/hlaunch", "-n", 2, program, OMPI_MCA_pml="ob1")
        self.assertEqual(sorted(re.findall(r"MPI rank \d of \d, \d here", done.stdout)),
                         [f"MPI rank {rank} of 2, 2 here" for rank in range(2)], done.stdout)


class Bill(unittest.TestCase):
    def test_it_names_what_is_inside(self):
        with tempfile.TemporaryDirectory() as folder:
            texts = []
            for name in ("one.json", "two.json"):
                file = pathlib.Path(folder) / name
                done = run(ROOT / "deploy/sbom", file, BUILD / "bin/hlaunch", BUILD / "bin/hlaunch-agent",
                           SOURCE_DATE_EPOCH="1700000000")
                self.assertEqual(done.returncode, 0, done.stdout)
                texts.append(file.read_text(encoding="utf-8"))
        self.assertEqual(*texts)
        bill = json.loads(texts[0])
        parts = {part["name"]: part for part in bill["packages"]}
        for name in ("libgrpc-dev", "libprotobuf-dev", "libabsl-dev", "libssl-dev", "libc6-dev"):
            self.assertRegex(parts[name]["versionInfo"], r"^\d", name)
        unknown = [name for name, part in parts.items() if part["licenseDeclared"] == "NOASSERTION"]
        self.assertEqual(unknown, [], "add them to LICENCES in deploy/sbom")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIP)


if __name__ == "__main__":
    classes = sys.argv[2:]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "hlaunch"
    if "Portable" in classes and not list(cache.glob("abseil-*/libabsl_pic.a")):
        skip("no Abseil that can go into a shared library (tests/run --full makes one)")
    if "Pmix" in classes and not (shutil.which("mpicc.openmpi") and (BUILD / "bin/hlaunch-pmix").exists()):
        skip("no Open MPI, or no hlaunch-pmix (Debian: libopenmpi-dev, libpmix-dev)")
    if {"Bill", "Pmix"} & {*classes} and "  static\n" not in run(BUILD / "bin/hlaunch", "--version", "-v").stdout:
        skip("the programs are not static (HLAUNCH_STATIC)")
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
