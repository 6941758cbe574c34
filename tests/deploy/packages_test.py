#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The packages of deploy/release can be installed and used, each in an empty place of its kind: the
wheel in a virtual environment, the tarball in an empty root, the .deb and the .rpm in a Debian
root. A root is a folder, entered in new namespaces.

Usage: packages_test.py BUILD_FOLDER [CLASS...]
"""

import functools
import hashlib
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
import zipfile

from free_port import free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve()
LIMIT = 600  # Seconds, for a busy machine.
QUICK = {"XZ_OPT": "-0", "XZ_LEVEL": "0", "PATH": f"/usr/bin:/bin:{os.environ['PATH']}"}
MADE = tempfile.TemporaryDirectory(prefix="hlaunch-packages-")
PACKAGES = pathlib.Path(MADE.name)
TWO_NODES = r"""
root=$0
ip link set lo up
mount -t proc proc "$root/proc"
chroot "$root" "$@" & first=$!
chroot "$root" "$@"; second=$?
wait $first && exit $second
"""
ONE_NODE = 'mount -t proc proc "$0/proc"; exec chroot "$0" "$@"'
TRAIN = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("hlaunch")  # torch finds the backend by the package's entry point.
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
losses = []
for step in range(20):
    x = torch.rand(64, 8)
    loss = ((model(x) - x.sum(dim=1, keepdim=True)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0], losses
print(f"rank {dist.get_rank()} of {dist.get_world_size()} has learnt", flush=True)
dist.barrier()
"""


def run(*words, env=None, **options):
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("HLAUNCH_", "PET_", "PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run([str(word) for word in words], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=LIMIT,
                          env={**clean, **(env or {})}, **options)


def loads_libraries(program):
    return "(NEEDED)" in run("readelf", "-Wd", program).stdout


CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "hlaunch"
STATIC = not loads_libraries(BUILD / "bin/hlaunch") and not loads_libraries(BUILD / "bin/hlaunch-agent")
# True if the parts of the library for old systems are here; else packages fit systems like this
# one.
FOR_ALL = STATIC and any(CACHE.glob("abseil-*/libabsl_pic.a"))


@functools.cache
def released():
    """The folder with all packages of BUILD that can be made here."""
    names = ["wheel", "tarball", "deb", *(["rpm"] if shutil.which("rpmbuild") else [])]
    done = run(ROOT / "deploy/release", "--build", BUILD, *([] if FOR_ALL else ["--dynamic"]),
               "--only", ",".join(names), PACKAGES / "out", env=QUICK)
    if done.returncode != 0:
        raise AssertionError(done.stdout)
    return PACKAGES / "out"


def release(pattern):
    """The package whose name matches."""
    (path,) = released().glob(pattern)
    return path


class MpiCase(unittest.TestCase):
    """Runs a program of this machine's Open MPI."""

    def assert_open_mpi_runs(self, hlaunch, **env):
        if not shutil.which("mpicc.openmpi") or not (BUILD / "bin/hlaunch-pmix").exists():
            self.skipTest("no Open MPI, or no hlaunch-pmix (Debian: libopenmpi-dev, libpmix-dev)")
        program = PACKAGES / "hello"
        if not program.exists():
            built = run("mpicc.openmpi", "-o", program, ROOT / "tests/workers/mpi_worker.c")
            self.assertEqual(built.returncode, 0, built.stdout)
        done = run(hlaunch, "-n", 2, program, env={"OMPI_MCA_pml": "ob1", **env})
        self.assertEqual(sorted(re.findall(r"MPI rank \d of \d, \d here", done.stdout)),
                         [f"MPI rank {rank} of 2, 2 here" for rank in range(2)], done.stdout)


class Elves(unittest.TestCase):
    """No program is packed of which nobody has said what it may need."""

    def said_of(self, file, name, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "tree", name)
            path.parent.mkdir()
            shutil.copy(file, path)
            (path.parent / "text").write_text("no program", encoding="utf-8")
            (path.parent / "link").symlink_to(path)
            done = run(ROOT / "deploy/check_elves", *options, path.parent)
        self.assertEqual(done.returncode, int(done.stdout != ""))
        self.assertEqual(done.stdout.count("check_elves: "), done.stdout.count(f"tree/{name}: "))
        return done.stdout

    def test_an_unknown_program_is_refused_by_name(self):
        for options in ([], ["--names"]):
            self.assertIn("does not know it", self.said_of("/bin/true", "hlaunch-new", *options))

    def test_a_library_is_known_by_the_name_that_programs_ask_for(self):
        self.assertEqual(self.said_of("/bin/true", "libhlcomm.so.1.0.1.0", "--names"), "")

    def test_a_program_that_should_be_static_is_refused_by_name(self):
        self.assertIn("HLAUNCH_STATIC=ON", self.said_of("/bin/true", "hlaunch-agent"))
        self.assertEqual(self.said_of("/bin/true", "hlaunch-agent", "--names"), "")

    def test_a_newer_glibc_is_refused_by_name(self):
        # A function of glibc 2.30, as this machine's compiler takes it.
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "new.c")
            source.write_text("#define _GNU_SOURCE\n#include <unistd.h>\n"
                              "int main(void) { return gettid(); }\n", encoding="utf-8")
            built = run("cc", "-o", f"{folder}/new", source)
            self.assertEqual(built.returncode, 0, built.stdout)
            self.assertRegex(self.said_of(f"{folder}/new", "hlaunch-pmix"),
                             r"needs .*GLIBC_2\.30.*glibc 2\.28 at most")

    def test_what_others_could_see_is_refused_by_name(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "shows.c")
            source.write_text("void hlcomm_init(void) {}\nvoid helper(void) {}\n", encoding="utf-8")
            built = run("cc", "-shared", "-fPIC", "-o", f"{folder}/shows", source)
            self.assertEqual(built.returncode, 0, built.stdout)
            self.assertRegex(self.said_of(f"{folder}/shows", "libhlcomm.so.1"), r"shows helper\n")


class Reproducible(unittest.TestCase):
    """A tree gives the same bytes, whenever it was made and with any file modes."""

    def make_tree(self, folder, mode):
        """Makes the files of an installation from /bin/true and short texts."""
        for name in ("bin/hlaunch", "libexec/hlaunch/hlaunch-agent", "libexec/hlaunch/hlaunch-pmix",
                     "lib/libhlcomm.so.1"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy("/bin/true", folder / name)
        (folder / "bin/hlaunch-rendezvous").symlink_to("../libexec/hlaunch/hlaunch-agent")
        for name in ("share/man/man1/hlaunch.1", "lib/python3/dist-packages/hlaunch/__init__.py",
                     "lib/pkgconfig/hlcomm.pc", "lib/cmake/hlcomm/hlcomm-config.cmake",
                     "share/hlaunch/hlaunchd.conf"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(name, encoding="utf-8")
            (folder / name).chmod(mode)

    def test_packages_are_the_same_again(self):
        makers = [path for path in sorted((ROOT / "deploy/package").glob("make_*"))
                  if path.name != "make_rpm" or shutil.which("rpmbuild")]
        self.assertGreaterEqual(len(makers), 4)
        made = []
        for mode in (0o644, 0o640):
            with tempfile.TemporaryDirectory() as folder:
                self.make_tree(pathlib.Path(folder, "tree"), mode)
                for maker in makers:
                    done = run(maker, f"{folder}/tree", f"{folder}/out",
                               env={**QUICK, "SOURCE_DATE_EPOCH": "1700000000"})
                    self.assertEqual(done.returncode, 0, done.stdout)
                made.append({path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                             for path in pathlib.Path(folder, "out").iterdir()})
        self.assertEqual(*made)
        self.assertEqual(len(made[0]), len(makers), made[0])

    def test_what_is_missing_is_said_at_once(self):
        for words, says in ((["/tmp/x", "--only", "snap"], "there is no package 'snap'"),
                            ([], "usage: deploy/release"), (["--fast"], "unknown option --fast")):
            done = run(ROOT / "deploy/release", *words)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(says, done.stdout)


class Wheel(MpiCase):
    """In an empty virtual environment; beside torch if there is one."""

    @classmethod
    def setUpClass(cls):
        cls.torch = os.environ.get("HLAUNCH_TORCH2_PYTHON")
        cls.venv = PACKAGES / "venv"
        cls.bin = cls.venv / "bin"
        cls.wheel = release("*.whl")
        for words in ([cls.torch or sys.executable, "-m", "venv", cls.venv],
                      [cls.bin / "pip", "install", "-q", "--no-index", "--disable-pip-version-check",
                       cls.wheel]):
            done = run(*words)
            assert done.returncode == 0, done.stdout

    def hlaunch(self, *words):
        return run(self.bin / "hlaunch", *words)

    def test_it_is_small_and_takes_nobodys_name(self):
        print(f"{self.wheel.name}: {self.wheel.stat().st_size / 1e6:.1f} MB")
        self.assertLess(self.wheel.stat().st_size, 20e6)
        names = zipfile.ZipFile(self.wheel).namelist()
        self.assertEqual([name for name in names if re.search(r"/(torchrun|mpirun|mpiexec)$", name)], [])
        platform = "manylinux_2_(1[7-9]|2[0-8])" if FOR_ALL else "linux"
        self.assertRegex(self.wheel.name, rf"-py3-none-{platform}_")

    def test_programs_run_and_python_m_is_the_same(self):
        version = self.hlaunch("--version").stdout
        self.assertRegex(version, r"^hlaunch \d+\.\d+\.\d+ \(commit ")
        self.assertEqual(run(self.bin / "python", "-m", "hlaunch", "--version").stdout, version)
        service = run(self.bin / "hlaunch-rendezvous", "--version").stdout
        self.assertRegex(service, r"^hlaunch-rendezvous \d")
        done = self.hlaunch("--no-python", "--nproc-per-node", 2, "sh", "-c", "exit 3")
        self.assertEqual(done.returncode, 3, done.stdout)

    def test_scripts_run_in_its_environment_though_that_is_not_active(self):
        script = PACKAGES / "where.py"
        script.write_text("import sys\nprint('ran in', sys.prefix)\n", encoding="utf-8")
        links = PACKAGES / "links-elsewhere"
        self.assertEqual(self.hlaunch("--install-links", links).returncode, 0)
        ran = f"ran in {self.venv}\n"
        for words in ([self.bin / "hlaunch"], [links / "torchrun"], [self.bin / "python", "-m", "hlaunch"],
                      [links / "mpirun", "-n", 1, "--run-path"],
                      [self.bin / "hlaunch", "--nnodes", 1, "--rdzv-endpoint", f"127.0.0.1:{free_port()}"]):
            done = run(*words, script, env={"VIRTUAL_ENV": "/left/over", "PATH": "/usr/bin:/bin"})
            self.assertEqual((done.returncode, ran in done.stdout), (0, True), done.stdout)

    def test_the_package_works_without_anything_else(self):
        done = self.hlaunch("--nproc-per-node", 2, ROOT / "deploy/examples/all_reduce.py")
        self.assertIn("OK: 2 ranks", done.stdout)

    def test_an_open_mpi_program_is_one_world(self):
        self.assert_open_mpi_runs(self.bin / "hlaunch", VIRTUAL_ENV=str(self.venv))

    def test_links_are_made_on_request(self):
        folder = PACKAGES / "links"
        done = self.hlaunch("--install-links", folder)
        self.assertEqual(done.stdout, "".join(
            f"{folder}/{name}\n" for name in ("torchrun", "mpirun", "mpiexec", "mpiexec.hydra")))
        self.assertTrue(run(folder / "torchrun", "--help").stdout.startswith("usage: torchrun"))
        (folder / "torchrun").unlink()
        (folder / "torchrun").write_text("torch's", encoding="utf-8")
        self.assertEqual(self.hlaunch("--install-links", folder).returncode, 2)

    def test_copies_run_from_their_folder(self):
        folder = PACKAGES / "copies"
        self.assertEqual(self.hlaunch("--install-copies", folder).returncode, 0)
        done = run(folder / "hlaunch", "--nnodes", 1, "--rdzv-endpoint", f"127.0.0.1:{free_port()}",
                   "--no-python", "sh", "-c", "exit 5")
        self.assertEqual(done.returncode, 5, done.stdout)
        self.assert_open_mpi_runs(folder / "hlaunch")

    def test_two_nodes_train(self):
        if not self.torch:
            self.skipTest("no torch 2 (tests/run gets it)")
        site = "import sysconfig; print(sysconfig.get_path('purelib'))"
        path = run(self.torch, "-c", site).stdout
        pathlib.Path(run(self.bin / "python", "-c", site).stdout.strip(), "torch.pth").write_text(
            path, encoding="utf-8")
        script = PACKAGES / "train.py"
        script.write_text(TRAIN, encoding="utf-8")
        words = [self.bin / "hlaunch", "--nnodes", "2", "--rdzv-endpoint", f"127.0.0.1:{free_port()}",
                 script]
        env = {name: value for name, value in os.environ.items() if name != "PYTHON_EXEC"}
        nodes = [subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env=env) for _ in range(2)]
        said = "".join(node.communicate(timeout=LIMIT)[0] for node in nodes)
        self.assertEqual([node.returncode for node in nodes], [0, 0], said)
        for rank in range(2):
            self.assertIn(f"rank {rank} of 2 has learnt", said)

    def test_zz_it_goes_without_a_trace(self):
        done = run(self.bin / "pip", "uninstall", "-q", "-y", "hlaunch")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual([path for path in self.venv.glob("**/*hlaunch*") if not path.is_dir()], [])


class RootCase(unittest.TestCase):
    """Runs programs in a root that is a folder."""

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to enter another root")
        folder = tempfile.TemporaryDirectory(dir=PACKAGES)
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def inside(self, *words, script=ONE_NODE):
        for name in ("proc", "dev", "tmp"):  # The kernel and a container provide these.
            (self.root / name).mkdir(exist_ok=True)
        if not (self.root / "dev/null").exists():
            os.mknod(self.root / "dev/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        return run("unshare", "-mnp", "--fork", "sh", "-c", script, self.root, *words,
                   env={"PATH": os.environ["PATH"] + ":/usr/bin:/usr/sbin:/bin:/sbin"})

    def assert_jobs_run(self, hlaunch):
        """Runs a job of one node and one of two. Their workers are hlaunch itself, since the root
        may hold no other program."""
        done = self.inside(hlaunch, "--nproc-per-node", 2, "--no-python", hlaunch, "--version")
        self.assertEqual((done.returncode, done.stdout.count("] hlaunch ")), (0, 2), done.stdout)
        done = self.inside(hlaunch, "--nnodes", 2, "--rdzv-endpoint", "127.0.0.1:29400", "--no-python",
                           hlaunch, "--version", script=TWO_NODES)
        self.assertEqual((done.returncode, done.stdout.count("hlaunch 0.")), (0, 2), done.stdout)

    def unpack_debian(self):
        base = pathlib.Path(os.environ.get("HLAUNCH_IMAGE_BASE", "/nowhere"))
        if not base.is_file():
            self.skipTest(f"no Debian root at {base} (tests/run makes it)")
        subprocess.run(["tar", "-xf", base, "-C", self.root], check=True, timeout=LIMIT)


class Tarball(RootCase, MpiCase):
    def unpack(self, folder):
        tarball = release("*.tar.xz")
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "-xf", tarball, "-C", folder], check=True, timeout=LIMIT)
        return next(folder.iterdir())

    def test_it_runs_where_it_was_unpacked(self):
        prefix = self.unpack(self.root / "a folder")
        for name in ("bin/hlaunch-rendezvous", "share/man/man1/hlaunch.1", "share/hlaunch/modulefiles",
                     "share/bash-completion/completions/hlaunch", "share/doc/hlaunch/LICENSE",
                     "lib/systemd/system/hlaunch@.service", "share/doc/hlaunch/manual/start.md",
                     "lib/python3/dist-packages/hlaunch/__init__.py", "include/hlaunch/hlcomm.h"):
            self.assertTrue((prefix / name).exists(), name)
        done = run(prefix / "bin/hlaunch", "--nproc-per-node", 2, ROOT / "deploy/examples/all_reduce.py",
                   env={"PYTHONPATH": str(prefix / "lib/python3/dist-packages")})
        self.assertIn("OK: 2 ranks", done.stdout)

    def test_an_open_mpi_program_is_one_world(self):
        self.assert_open_mpi_runs(self.unpack(self.root) / "bin/hlaunch")

    @unittest.skipUnless(STATIC, "the programs are not static, so they need a system around them")
    def test_it_runs_in_a_root_with_nothing_else(self):
        prefix = self.unpack(self.root)
        self.assert_jobs_run(f"/{prefix.name}/bin/hlaunch")


class Deb(RootCase):
    def test_it_is_installed_used_and_removed(self):
        self.unpack_debian()
        package = release("*.deb")
        shutil.copy(package, self.root)
        done = self.inside("dpkg", "-i", f"/{package.name}")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assert_jobs_run("/usr/bin/hlaunch")
        done = self.inside("python3", "-m", "hlaunch", "--version")
        self.assertRegex(done.stdout, r"^hlaunch \d")
        self.assert_head_has_a_user()
        self.assert_settings_outlive_an_upgrade(package)
        done = self.inside("dpkg", "--purge", "hlaunch")
        self.assertEqual(done.returncode, 0, done.stdout)
        left = [path for folder in ("usr", "etc") for path in (self.root / folder).glob("**/*hl[ac]*")
                if "hlaunch" in path.name]
        self.assertEqual(left, [])

    def assert_head_has_a_user(self):
        users = (self.root / "etc/passwd").read_text(encoding="utf-8")
        self.assertRegex(users, r"(?m)^hlaunch-head:[^:]*:\d+:\d+:.*:/var/lib/hlaunch-head:.*/(nologin|false)$")

    def assert_settings_outlive_an_upgrade(self, package):
        """dpkg does not replace a file that its admin has changed."""
        settings = self.root / "etc/hlaunch/hlaunchd.conf"
        settings.write_text("slots = 3\n", encoding="utf-8")
        done = self.inside("dpkg", "-i", f"/{package.name}")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(settings.read_text(encoding="utf-8"), "slots = 3\n")


class Rpm(RootCase):
    """No system with rpm is available: uses a Debian root, of which the package needs no file."""

    def test_it_is_installed_used_and_removed(self):
        if not shutil.which("rpmbuild"):
            self.skipTest("no rpmbuild (Debian's package rpm)")
        self.unpack_debian()
        package = release("*.rpm")
        rpm = ["rpm", "--root", self.root, "--dbpath", "/var/lib/rpm"]
        needs = run("rpm", "-qp", "--requires", package).stdout.split("\n")
        others = [need for need in needs if need and not re.match(r"/bin/sh|rpmlib\(", need)]
        self.assertEqual(others, [])
        done = run(*rpm, "-i", "--nodeps", package)  # rpm on Debian has no /bin/sh in its database.
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assert_jobs_run("/usr/bin/hlaunch")
        done = run(*rpm, "-e", "--nodeps", "hlaunch")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertFalse((self.root / "usr/bin/hlaunch").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
