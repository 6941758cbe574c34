# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The MPIs of this machine: Debian's, and wheels, each in its own environment.

An environment is a folder PACKAGE-VERSION with mpi4py in it, as `tests/run` makes it:

    python3 -m venv DIR/mpich-4.3.2 && DIR/mpich-4.3.2/bin/pip install mpich==4.3.2 mpi4py
"""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "hlaunch"


@dataclasses.dataclass
class Installation:
    name: str
    pmix: bool  # True for an Open MPI.
    compiler: str  # Its C compiler.
    launcher: str  # Its own mpiexec.
    python: str = ""  # A Python with mpi4py.
    env: dict = dataclasses.field(default_factory=dict)  # Variables that its programs need.
    python_env: dict = dataclasses.field(default_factory=dict)  # More for mpi4py.

    def build(self, source, folder):
        """Compiles `source`, in C, with this MPI; returns the program."""
        program = folder / f"{source.stem}.{self.name.replace(' ', '-')}"
        # The wheel's libmpi finds its own libraries by its search path at run time.
        subprocess.run([self.compiler, "-O2", "-o", program, source,
                        "-Wl,--unresolved-symbols=ignore-in-shared-libs"], check=True, timeout=300,
                       env={**os.environ, **self.env})
        return str(program)


def version_of(command):
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout
    found = re.search(r"\d+\.\d+\.\d+", said)
    return found[0] if found else "?"


def debians(folder, python):
    """Yields Debian's MPIs. `python`'s mpi4py finds MPICH by the common name of its library."""
    if shutil.which("mpicc.mpich"):
        library = pathlib.Path("/usr/lib/x86_64-linux-gnu/libmpich.so.12")
        names = folder / "libmpich"
        names.mkdir()
        (names / "libmpi.so.12").symlink_to(library)
        yield Installation(f"MPICH {version_of(['mpichversion'])}", False, "mpicc.mpich",
                           "mpiexec.hydra", python, {}, {"LD_LIBRARY_PATH": str(names),
                                                         "MPI4PY_MPIABI": "mpich"})
    if shutil.which("mpicc.openmpi"):
        yield Installation(f"Open MPI {version_of(['mpirun.openmpi', '--version'])}", True,
                           "mpicc.openmpi", "mpirun.openmpi", python, {},
                           {"MPI4PY_LIBMPI": "/usr/lib/x86_64-linux-gnu/libmpi.so.40",
                            "MPI4PY_MPIABI": "openmpi"})


def of_wheel(place, compilers):
    """The MPI in the environment `place`. Intel's has no compiler, so an MPICH of `compilers`
    builds the programs for it."""
    package, _, version = place.name.rpartition("-")
    names = {"mpich": "MPICH", "openmpi": "Open MPI", "impi-rt": "Intel MPI"}
    if package not in names or not (place / "bin/mpiexec").exists():
        return None
    env = {"LD_LIBRARY_PATH": str(place / "lib")}
    if package == "openmpi":
        env["OPAL_PREFIX"] = str(place)
    compiler = place / "bin/mpicc"
    if package == "impi-rt":
        found = [other for other in compilers if other.name.startswith("mpich-")]
        if not found:
            return None
        compiler = found[0] / "bin/mpicc"
        env["I_MPI_ROOT"] = str(place)
    return Installation(f"{names[package]} {version}", package == "openmpi", str(compiler),
                        str(place / "bin/mpiexec"), str(place / "bin/python"), env)


def find(folders, scratch):
    """All MPIs: Debian's and those in `folders`. `scratch`: an empty folder that lives as long."""
    places = sorted({place.name: place for folder in folders if folder.is_dir()
                     for place in folder.iterdir()}.values(), key=lambda place: place.name)
    wheels = [one for place in places if (one := of_wheel(place, places))]
    python = wheels[0].python if wheels else ""
    return sorted([*debians(scratch, python), *wheels], key=lambda one: (one.pmix, one.name))
