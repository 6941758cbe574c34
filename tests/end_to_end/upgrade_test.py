#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Nodes of a job with different releases of hlaunch: they work together if they are one release
apart; greater differences are refused. Another release is this build with another version
number."""

import os
import pathlib
import re
import shutil
import subprocess

import jobs
import lab

RELEASE = re.search(r"project\(hlaunch VERSION (\d+\.\d+\.\d+)",
                    (lab.ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "hlaunch"
LIBPMIX = ("/usr/lib/x86_64-linux-gnu/libpmix.so.2", "/usr/lib/x86_64-linux-gnu/pmix2/lib/libpmix.so.2")
WAITING = r"waiting for|still waiting|1 of 2 nodes"


def later(minors):
    """The number of the release that is `minors` minor releases later."""
    major, minor, patch = RELEASE.split(".")
    return f"{major}.{int(minor) + minors}.{patch}"


def last_release():
    """The tag of the release before this tree; empty if there is none."""
    tags = subprocess.run(["git", "-C", lab.ROOT, "tag", "--list", "v*", "--merged", "HEAD~1",
                           "--sort=-v:refname"], text=True, capture_output=True, check=False)
    return tags.stdout.split("\n", maxsplit=1)[0]


def programs_of(tag):
    """The folder of a release's programs. They are built once and kept."""
    kept = CACHE / f"release-{tag}"
    if not (kept / "build/bin/hlaunch-agent").exists():
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        subprocess.run(f"git -C '{lab.ROOT}' archive {tag} | tar -x -C '{kept}' && cd '{kept}' &&"
                       " cmake --preset test -B build && ninja -C build hlaunch hlaunch-agent",
                       shell=True, check=True, capture_output=True)
    return kept / "build/bin"


class Mixed(jobs.JobTest):
    """A job of two nodes, each with a program of its own."""

    def node(self, index, program):
        return self.nodes[index].start(program, "--nnodes", 2, "--rdzv-endpoint", self.endpoint,
                                       "--rdzv-id", "mixed", jobs.WORKER, "env",
                                       env={"PYTHON_EXEC": jobs.PYTHON})


class OtherReleases(Mixed):
    """One of the nodes has another release."""

    def program(self, release):
        """An hlaunch that reports that release."""
        folder = self.lab.folder / release
        folder.mkdir()
        number = re.compile(rb"(?<![0-9.])" + re.escape(RELEASE.encode()) + rb"(?=\0)")
        for name in ("hlaunch", "hlaunch-agent"):
            content, replaced = number.subn(release.encode(), (lab.BIN / name).read_bytes())
            self.assertGreater(replaced, 0, name)
            (folder / name).write_bytes(content)
            (folder / name).chmod(0o755)
        said = subprocess.run([folder / "hlaunch", "--version"], text=True, capture_output=True,
                              check=True, timeout=30 * lab.PATIENCE).stdout
        self.assertTrue(said.startswith(f"hlaunch {release} "), said)
        return str(folder / "hlaunch")

    def assert_refused(self, run, *releases):
        self.assertEqual(jobs.REFUSED, run.wait(30), str(run))
        for release in releases:
            self.assertIn(release, run.err)
        self.assertRegex(run.err, "node1 has hlaunch .*update the older one")

    def test_two_releases_further_is_refused_and_one_is_not(self):
        far, near = self.program(later(2)), self.program(later(1))
        first = self.node(0, lab.HLAUNCH)
        first.wait_for(WAITING, 30)
        self.assert_refused(self.node(1, far), RELEASE, later(2))
        self.assert_done([first, self.node(1, near)], jobs.OK, 60)

    def test_an_older_one_is_refused_by_a_newer_one(self):
        far = self.program(later(2))
        first = self.node(0, far)
        first.wait_for(WAITING, 30)
        self.assert_refused(self.node(1, lab.HLAUNCH), RELEASE, later(2))
        self.assert_done([first, self.node(1, far)], jobs.OK, 60)


class UnderAJob(jobs.JobTest):
    """The installed files are replaced or removed while a job runs that has a restart left."""

    def assert_goes_on(self, change):
        folder = self.lab.folder / "installed"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name in ("hlaunch", "hlaunch-agent", "hlaunch-pmix"):
            if (lab.BIN / name).exists():
                shutil.copy2(lab.BIN / name, folder / name)
        go = self.lab.folder / f"go-{change.__name__}"
        script = ('echo "round $TORCHELASTIC_RESTART_COUNT: rank $RANK, PMIx ${PMIX_RANK:-none}"; '
                  f'while [ ! -e {go} ]; do sleep 0.1; done; exit $((7 * (1 - $TORCHELASTIC_RESTART_COUNT)))')
        runs = [node.start(folder / "hlaunch", "--nnodes", 2, "--rdzv-endpoint", self.endpoint,
                           "--max-restarts", 1, "--mpi", "any", "--preflight", "quick",
                           "--no-python", "sh", "-c", script)
                for node in self.nodes]
        for run in runs:
            lab.poll(lambda run=run: "round 0: rank" in run.out, 20)
        for file in folder.iterdir():
            change(file)
        go.touch()
        self.assert_done(runs, jobs.OK, 60)
        served = (lab.BIN / "hlaunch-pmix").exists() and any(
            pathlib.Path(path).exists() for path in LIBPMIX)
        for rank, run in enumerate(runs):
            self.assertRegex(run.out, f"round 0: rank {rank}, PMIx {rank if served else 'none'}\n")
            self.assertRegex(run.out, f"round 1: rank {rank}, PMIx {rank if served else 'none'}\n")
            self.assertNotIn("PMIx is not served", run.err if served else "", str(run))
            self.assertNotRegex(run.err, "unknown|preflight")

    def test_a_restart_goes_on_with_what_was_there_after_the_files_were_removed(self):
        def removed(file):
            file.unlink()
        self.assert_goes_on(removed)

    def test_a_restart_goes_on_with_what_was_there_after_the_files_were_replaced(self):
        def replaced(file):
            draft = file.with_name(f"{file.name}.new")
            draft.write_text("#!/bin/sh\nexit 9\n", encoding="utf-8")
            draft.chmod(0o755)
            draft.rename(file)
        self.assert_goes_on(replaced)


class LastRelease(Mixed):
    """A job with programs of the last release, built from its tag."""

    def setUp(self):
        if not last_release():
            self.skipTest("no release has been tagged")
        super().setUp()

    def test_a_job_runs_both_ways_round(self):
        old = str(programs_of(last_release()) / "hlaunch")
        for programs in ((old, lab.HLAUNCH), (lab.HLAUNCH, old)):
            runs = [self.node(index, program) for index, program in enumerate(programs)]
            self.assert_done(runs, jobs.OK, 60)


if __name__ == "__main__":
    lab.main()
