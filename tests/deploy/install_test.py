#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The quickstart's build can be installed, and the installed programs run.

Usage: install_test.py BUILD_FOLDER [CLASS...]
"""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from free_port import free_port

BUILD = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
WITH_GRPC = (BUILD / "bin/hlaunch-agent").exists()
LIMIT = 120  # Seconds, for a busy machine.
C_PROGRAM = '''#include <hlaunch/hlcomm.h>
#include <stdio.h>
int main(void) { return printf("ABI %d\\n", hlcomm_abi_version()) < 0; }
'''
C_PROJECT = '''cmake_minimum_required(VERSION 3.20)
project(user LANGUAGES C)
find_package(hlcomm 1.0 REQUIRED)
add_executable(user user.c)
target_link_libraries(user hlcomm::hlcomm)
'''
SMALL_PROJECT = '''cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES NONE)
add_custom_target(hlaunch_for_a_job COMMAND sh -c "COMMAND_HERE" VERBATIM)
'''


def run(*words, env=None, **options):
    return subprocess.run([str(word) for word in words], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          timeout=LIMIT, env={**os.environ, "PATH": f"/usr/bin:/bin:{os.environ['PATH']}",
                                              "PYTHON_EXEC": sys.executable, **(env or {})}, **options)


class Quickstart(unittest.TestCase):
    def test_it_builds_all_that_the_install_takes(self):
        self.assertIn("build hlaunch_all\n", (ROOT / "deploy/quickstart").read_text(encoding="utf-8"))
        commands = run("ninja", "-C", BUILD, "-t", "commands", "hlaunch_all").stdout
        built = {str(BUILD / word) for word in commands.split()}
        made = run("ninja", "-C", BUILD, "-t", "targets", "all").stdout
        made = {str(BUILD / line.rsplit(":", 1)[0]) for line in made.splitlines() if ":" in line}
        taken = {path for script in BUILD.glob("**/cmake_install.cmake")
                 for path in re.findall(rf'"({BUILD}/[^"]+)"', script.read_text(encoding="utf-8"))}
        self.assertGreater(len(taken & made), 5, sorted(taken))
        self.assertEqual((taken & made) - built, set(), "the install takes what hlaunch_all lacks")

    def told(self, script):
        """The output of a line of bash that knows deploy/packages.sh."""
        return run("bash", "-c", f". {shlex.quote(str(ROOT / 'deploy/packages.sh'))}; {script}")

    def test_a_dry_run_of_the_build_lists_what_is_left_to_do(self):
        # The estimate counts the dry run's lines. It would end early if CMake had to look for files
        # first.
        done = run("ninja", "-C", BUILD, "-n", "hlaunch_all")
        self.assertEqual(done.returncode, 0, done)
        self.assertNotIn("Re-checking", done.stdout)

    def test_an_old_cmake_is_told_with_what_is_needed(self):
        done = self.told('cmake() { echo "cmake version 3.22.1"; }; check_versions')
        self.assertEqual(done.returncode, 1, done)
        for says in ("CMake is 3.22.1 here, and hlaunch needs 3.25 or newer", "Ubuntu 22.04"):
            self.assertIn(says, done.stdout)

    def test_what_is_new_enough_or_not_there_is_not_told(self):
        for version in ("3.25.1", "3.31.6", "4.0", ""):
            done = self.told(f'cmake() {{ echo "cmake version {version}"; }}; check_versions')
            self.assertEqual((done.returncode, done.stdout), (0, ""), version)

    def test_a_page_for_users_names_the_least_versions(self):
        pages = [ROOT / "README.md", *(ROOT / "launcher/manual").glob("*.md")]
        text = " ".join(" ".join(page.read_text(encoding="utf-8") for page in pages).split())
        for tool, least in (("CMake", "cmake"), ("GCC", "gcc"), ("gRPC", "grpc")):
            version = self.told(f"echo $least_{least}").stdout.strip()
            self.assertTrue(f"{tool} {version}" in text, f"no page names {tool} {version}")

    @contextlib.contextmanager
    def small_tree(self, command, packages=""):
        """A tree with the real quickstart, of which the build is one command of the shell."""
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder) / "tree"
            (tree / "deploy").mkdir(parents=True)
            for name in ("deploy/quickstart", "deploy/packages.sh", "CMakePresets.json"):
                shutil.copy(ROOT / name, tree / name)
            with open(tree / "deploy/packages.sh", "a", encoding="utf-8") as more:
                more.write(packages)
            (tree / "CMakeLists.txt").write_text(SMALL_PROJECT.replace("COMMAND_HERE", command), encoding="utf-8")
            yield tree

    def test_a_build_that_fails_is_told_with_the_way_on(self):
        with self.small_tree("false") as tree:
            done = run(tree / "deploy/quickstart")
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stdout, r"step 3 of 5: what a job needs: \d+ files")
        self.assertIn("quickstart: the build failed; its lines above say why. Mend that, then run quickstart again: "
                      "it goes on where it stopped", done.stdout)

    def test_a_wrong_option_is_refused_before_anything_is_done(self):
        for words, says in ((["--nosuch"], "unknown option --nosuch"), (["extra"], "'extra' is no option")):
            done = run(ROOT / "deploy/quickstart", *words)
            self.assertEqual(done.returncode, 1, done)
            self.assertIn(f"quickstart: {says}", done.stdout)
            self.assertNotIn("step 1", done.stdout)

    def test_ctrl_c_is_told_with_the_way_on(self):
        with self.small_tree("echo begun; exec sleep 600") as tree:
            with subprocess.Popen([tree / "deploy/quickstart"], start_new_session=True, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL) as job:
                while subprocess.run(["pgrep", "-g", str(job.pid), "-x", "ninja"], check=False,
                                     stdout=subprocess.PIPE).returncode and job.poll() is None:
                    time.sleep(0.1)
                os.killpg(job.pid, signal.SIGINT)  # As a terminal does.
                told = job.communicate(timeout=LIMIT)[0]
        self.assertEqual(job.returncode, 130, told)
        self.assertIn("quickstart: stopped; run it again to go on where it stopped", told)

    def test_a_full_disk_is_told_as_that(self):
        with self.small_tree("head -c 100M /dev/zero > full") as tree:
            (tree / "build").mkdir()
            done = run("unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=60M tmpfs "$1/build" && exec "$1/deploy/quickstart"',
                       "sh", tree)
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stdout, r"quickstart: the disk of .*/tree/build is full \(\d+ MB are free\); make room, then run")

    def test_a_network_that_is_gone_is_told_with_the_way_on(self):
        with self.small_tree("true", "build_packages+=(hlaunch-no-such-package)\n") as tree:
            apt = tree / "apt.conf"
            apt.write_text(f'Dir::State::Lists "{tree}/lists";\nAcquire::Retries "0";\nAPT::Update::Error-Mode "any";\n',
                           encoding="utf-8")
            done = run("unshare", "-rn", tree / "deploy/quickstart", env={"APT_CONFIG": str(apt)})
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stdout, r"quickstart: apt-get .* failed; its lines above say why. Mend that, then run quickstart again")

    def test_help(self):
        done = run(ROOT / "deploy/quickstart", "--help")
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(done.stdout, r"(?s)deploy/quickstart \[--torch\].*fetch.*disk")


class Installed(unittest.TestCase):
    """One install into a new folder, for all tests."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.prefix = pathlib.Path(cls.folder.name) / "prefix"
        done = run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        assert done.returncode == 0, done.stdout

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_all_that_documents_name_is_there(self):
        names = ["bin/hlaunch", "sbin/hlaunchd", "libexec/hlaunch/torchrun", "include/hlaunch/hlcomm.h",
                 "lib/systemd/system/hlaunch@.service", "lib/systemd/system/hlaunchd.service",
                 "lib/systemd/system/hlaunch-head.service", "lib/sysusers.d/hlaunch.conf",
                 "share/hlaunch/hlaunchd.conf", "share/hlaunch/monitoring/dashboard.json",
                 "share/hlaunch/monitoring/alerts.yaml", "share/man/man1/hlaunch.1",
                 "lib/libhlcomm.so", "lib/pkgconfig/hlcomm.pc", "lib/cmake/hlcomm/hlcomm-config.cmake",
                 "lib/python3/dist-packages/hlaunch_autoload.py",
                 "lib/python3/dist-packages/hlaunch/adopt/hlaunch_adopt/__init__.py",
                 "share/bash-completion/completions/hlaunch", "share/zsh/site-functions/_hlaunch",
                 "share/hlaunch/slurm/train.sbatch", "share/hlaunch/slurm/requeue.sbatch",
                 "share/hlaunch/examples/train_ddp.py", "share/hlaunch/examples/all_reduce.py",
                 "share/doc/hlaunch/manual/start.md", "share/doc/hlaunch/manual/options.md"]
        if WITH_GRPC:
            names += ["bin/hlaunch-rendezvous", "libexec/hlaunch/hlaunch-agent",
                      "lib/systemd/system/hlaunch-rendezvous.service"]
        self.assertEqual([name for name in names if not (self.prefix / name).exists()], [])
        self.assertEqual(list(self.prefix.glob("**/__pycache__")), [])

    def test_only_the_program_for_several_nodes_holds_grpc(self):
        found = {path.relative_to(self.prefix).as_posix()
                 for folder in ("bin", "sbin", "libexec/hlaunch")
                 for path in (self.prefix / folder).iterdir()
                 if not path.is_symlink() and b"grpc.lb_policy_name" in path.read_bytes()}
        # With shared libraries, it is in none of them.
        self.assertLessEqual(found, {"libexec/hlaunch/hlaunch-agent"})

    def test_a_job_of_one_node_runs(self):
        done = run(self.prefix / "bin/hlaunch", "--nproc-per-node", 2, "--no-python", "sh", "-c",
                   "echo rank $RANK of $WORLD_SIZE")
        self.assertEqual(sorted(line for line in done.stdout.splitlines() if line[0] == "["),
                         ["[0] rank 0 of 2", "[1] rank 1 of 2"], done.stdout)

    @unittest.skipUnless(WITH_GRPC, "it was built without gRPC")
    def test_two_nodes_meet_at_the_service(self):
        service = subprocess.Popen(
            [self.prefix / "bin/hlaunch-rendezvous", "--listen", f"127.0.0.1:{free_port()}"],
            text=True, stderr=subprocess.PIPE)
        self.addCleanup(service.stderr.close)
        self.addCleanup(service.wait, LIMIT)
        self.addCleanup(service.terminate)
        place = re.search(r"listening on (\S+);", service.stderr.readline())[1]
        job = [self.prefix / "bin/hlaunch", "--nnodes", "2", "--rdzv-endpoint", place, "--rdzv-id", "1",
               "--rdzv-conf", "is_host=0", "--no-python", "sh", "-c", "echo rank $RANK of $WORLD_SIZE"]
        nodes = [subprocess.Popen(job, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                 for _ in range(2)]
        said = "".join(node.communicate(timeout=LIMIT)[0] for node in nodes)
        self.assertEqual([node.returncode for node in nodes], [0, 0], said)
        for rank in range(2):
            self.assertIn(f"rank {rank} of 2", said)

    def test_the_python_package_runs_as_built_and_as_installed(self):
        example = self.prefix / "share/hlaunch/examples/all_reduce.py"
        for package in (BUILD / "python", self.prefix / "lib/python3/dist-packages"):
            done = run(self.prefix / "bin/hlaunch", "--nproc-per-node", 2, example,
                       env={"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"})
            self.assertEqual(done.returncode, 0, f"{package}: {done.stdout}")
            self.assertIn("OK: 2 ranks", done.stdout)

    def test_python_m_hlaunch_is_the_program(self):
        for package in (BUILD / "python", self.prefix / "lib/python3/dist-packages"):
            done = run(sys.executable, "-m", "hlaunch", "--no-python", "sh", "-c", "exit 3",
                       env={"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"})
            self.assertEqual(done.returncode, 3, f"{package}: {done.stdout}")

    def c_program(self, **files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, text in {"user.c": C_PROGRAM, **files}.items():
            pathlib.Path(folder.name, name).write_text(text, encoding="utf-8")
        return pathlib.Path(folder.name)

    def assert_uses_the_library(self, built, program):
        self.assertEqual(built.returncode, 0, built.stdout)
        done = run(program, env={"LD_LIBRARY_PATH": str(self.prefix / "lib")})
        self.assertEqual(done.stdout, "ABI 1\n")

    def test_a_c_program_finds_the_library_by_pkg_config(self):
        folder = self.c_program()
        built = run("sh", "-c", "cc -Wall -Werror user.c -o user $(pkg-config --cflags --libs hlcomm)",
                    env={"PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig")}, cwd=folder)
        self.assert_uses_the_library(built, folder / "user")

    def test_a_c_program_finds_the_library_by_find_package(self):
        folder = self.c_program(**{"CMakeLists.txt": C_PROJECT})
        built = run("sh", "-c", "cmake -B b -DCMAKE_PREFIX_PATH=$PREFIX && cmake --build b",
                    env={"PREFIX": str(self.prefix)}, cwd=folder)
        self.assert_uses_the_library(built, folder / "b/user")

    def test_what_was_installed_can_be_uninstalled(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix = pathlib.Path(folder)
            kept = prefix / "share/hlaunch/mine"
            kept.parent.mkdir(parents=True)
            kept.write_text("not hlaunch's\n", encoding="utf-8")
            self.assertEqual(run("cmake", "--install", BUILD, "--prefix", prefix).returncode, 0)
            done = run("ninja", "-C", BUILD, "uninstall")
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertEqual([path for path in prefix.glob("**/*") if not path.is_dir()], [kept])
            self.assertEqual(run("ninja", "-C", BUILD, "uninstall").returncode, 1)

    def test_torchrun_is_hlaunch(self):
        done = run(self.prefix / "libexec/hlaunch/torchrun", "--help")
        self.assertTrue(done.stdout.startswith("usage: torchrun [options]"), done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
