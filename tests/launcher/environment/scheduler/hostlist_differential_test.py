#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Random hostlists, right and wrong, expanded by hlaunch and by Slurm's own scontrol.

    hostlist_differential_test.py PATH_TO_hostlist_main [SEED]

scontrol gets valid lists many at once (a list of lists is a list), but wrong ones one by one, since
it drops the whole list. hlaunch refuses some mistakes that scontrol accepts; `meant` names those,
and nothing else may differ.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

SKIP = 77
VALID, BROKEN, BATCH = 4000, 400, 40


def number(rng):
    return str(rng.choice((rng.randrange(4), rng.randrange(120), rng.randrange(12000)))).zfill(
        rng.choice((0, 0, 0, 2, 3, 5)))


def bracket(rng):
    ranges = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        low = number(rng)
        high = str(int(low) + rng.choice((0, 1, 3))).zfill(rng.choice((0, len(low), 4)))
        ranges.append(low if rng.random() < 0.4 else f"{low}-{high}")
    return "[" + ",".join(ranges) + "]"


def item(rng):
    text = rng.choice(("n", "node", "gpu-a", "10.0.0.", "", "r1-", "x_y", "login"))
    brackets = rng.choice((0, 1, 1, 1, 2, 3, 4))
    if not brackets:
        return text or "h"
    between = [rng.choice(("", "-", "c", "rack")) for _ in range(brackets - 1)] + [""]
    return text + "".join(bracket(rng) + more for more in between)


def valid(rng):
    items = [item(rng) for _ in range(rng.choice((1, 1, 2, 4)))]
    return rng.choice((",", ",", " ", ",,")).join(items)


def broken(rng):
    """A valid list with one character inserted, removed or doubled."""
    text = valid(rng)
    at = rng.randrange(len(text))
    return rng.choice((text[:at] + rng.choice("[]-,:x1 ") + text[at:], text[:at] + text[at + 1:],
                       text[:at] + text[at] + text[at:]))


def meant(text):
    """Whether `text` has none of the mistakes that scontrol accepts and hlaunch refuses on purpose:
    blanks in brackets, an unmatched or nested bracket, a range without an end or with more than
    digits before its dash, numbers beyond 64 bits."""
    inside = re.findall(r"\[([^]]*)\]", text)
    garbage = re.compile(r"[\s\[]|-(,|$)|\d{19}|\d[^\d,-][^,]*-")
    plain = re.sub(r"\[[^]]*\]", "", text)
    return not re.search(r"[\[\]]", plain) and not any(garbage.search(part) for part in inside)


def scontrol(text, env):
    """The hosts, or None if scontrol finds an error. The comma keeps it from reading an option."""
    done = subprocess.run(["scontrol", "show", "hostnames", "," + text], env=env, text=True,
                          timeout=200, capture_output=True, check=False)
    # scontrol only warns of a wrong item with several brackets, and leaves it out.
    if "Invalid hostlist" in done.stdout or done.stderr or done.returncode != 0:
        return None
    return done.stdout.split()


def main():
    if not shutil.which("scontrol"):
        print("skipped: no scontrol here (Debian: slurm-client)")
        return SKIP
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 20250)
    lists = [valid(rng) for _ in range(VALID)] + [broken(rng) for _ in range(BROKEN)]
    ours = subprocess.run([sys.argv[1]], input="\n".join(lists) + "\n", text=True, timeout=600,
                          capture_output=True, check=True).stdout.splitlines()
    assert len(ours) == len(lists), f"{len(ours)} answers for {len(lists)} lists"
    wrong, refused, exempt = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        conf = os.path.join(folder, "slurm.conf")  # scontrol always reads a configuration.
        with open(conf, "w", encoding="utf-8") as file:
            file.write("ClusterName=x\nSlurmctldHost=localhost\nNodeName=n1\n"
                       "PartitionName=p Nodes=ALL\n")
        env = {**os.environ, "SLURM_CONF": conf}
        for at in range(0, VALID, BATCH):
            expected = scontrol(",".join(lists[at:at + BATCH]), env)
            found = " ".join(ours[at:at + BATCH]).split()
            if found != expected:
                wrong += [f"{text!r}: {mine!r}, scontrol {scontrol(text, env)}"
                          for text, mine in zip(lists[at:at + BATCH], ours[at:at + BATCH])
                          if mine.split() != scontrol(text, env)]
        for text, mine in zip(lists[VALID:], ours[VALID:]):
            if mine == "! more than 65536 hosts":  # scontrol has no limit.
                continue
            if not meant(text):
                exempt += 1
                if not mine.startswith("! "):
                    wrong.append(f"{text!r} is taken: {mine!r}")
                continue
            expected = scontrol(text, env)
            refused += expected is None
            if (None if mine.startswith("! ") else mine.split()) != expected:
                wrong.append(f"{text!r}: {mine!r}, scontrol {expected}")
    print(f"{VALID} valid lists; {BROKEN} broken ones, of which scontrol refused {refused} and "
          f"{exempt} are hlaunch's own to refuse; {len(wrong)} differ")
    for line in wrong[:20]:
        print(line)
    assert refused > BROKEN / 20, "hardly a broken list was broken: the test shows nothing"
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
