# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The rows of attribution.py: planted hangs with what should be said of them, and healthy
programs."""

import dataclasses

@dataclasses.dataclass
class Plant:
    """A hang, and patterns that its report should match."""

    mode: str
    hosts: int = 1
    nproc: int = 4
    culprits: tuple = (2,)  # Empty if no rank is at fault.
    says: str = r"3 of 4 ranks are in all_reduce number 4 of default_pg"
    does: str = "stands"
    place: str = ""  # Empty if the function has the mode's name.
    options: tuple = ()
    raises: str = ""  # The report's first line where hlaunch's collectives find it by themselves.
    own: str = ""  # Instead of `says` with hlaunch's collectives; "-": they do not hang.

    @property
    def name(self):
        return self.mode + (f", {self.hosts} hosts" if self.hosts > 1 else "")


def is_in(collective, number, of="default_pg", count="3 of 4"):
    return rf"{count} ranks (is|are) in {collective} number {number} of {of}"


THREE = {"hosts": 3, "nproc": 1, "says": is_in("all_reduce", 4, count="2 of 3")}
TWO = {"hosts": 2, "nproc": 2}
STORE = "Ranks 0,1,3 wait for the master store"
# Two groups wait for the rank: its column for this step, its row for the next one.
MESH = r"3 of 4 ranks are in all_reduce number (5 of column|6 of row)1"
CROSSED = {"culprits": (), "says": "different orders", "place": "crossed", "does": ""}
DIFFERENT = r"job failed: .*[Rr]ank 2\b"
PLANTS = [
    Plant("sleep"), Plant("sleep", **TWO), Plant("sleep", **THREE),
    Plant("interpreter", does="holds the interpreter"),
    Plant("interpreter", does="holds the interpreter", **TWO),
    Plant("regex", does="holds the interpreter"),
    Plant("c_loop", does="computes"),
    Plant("c_loop_in_interpreter", does="holds the interpreter"),
    Plant("python_loop", does="computes"),
    Plant("stopped", does=r"is stopped", place="-"),
    Plant("stopped", does=r"is stopped", place="-", **TWO),
    Plant("kernel", does="is stuck in the kernel"),
    Plant("loader"), Plant("loader", **THREE), Plant("deadlock"), Plant("answer"), Plant("pipe"),
    Plant("child"), Plant("stdin"), Plant("open_file"), Plant("empty_queue"), Plant("locked_file"),
    Plant("last_thread", place="-"), Plant("at_exit", place="sleep"),
    Plant("early_exit", does="has exited with 0", place="-"),
    Plant("early_exit", does="has exited with 0", place="-", **THREE),
    Plant("recv_of_nobody", does="waits for another rank"),
    Plant("key_of_one", does="waits for the master store"),
    Plant("broadcast", says="different collectives as number 4 of default_pg", does="differs",
          raises=DIFFERENT),
    Plant("barrier", says="different collectives as number 4 of default_pg", does="differs",
          raises=DIFFERENT),
    Plant("sizes", says="different collectives as number 4 of default_pg", does="differs",
          raises=DIFFERENT),
    Plant("started_only", says=is_in("all_reduce", 5)),
    Plant("first_step", says=is_in("all_reduce", 1)),
    Plant("first_step", hosts=2, nproc=2, says=is_in("all_reduce", 1)),
    Plant("before_init", says=STORE, own=is_in("all_reduce", 1)),
    Plant("before_init", hosts=3, nproc=1, says="Ranks 0,1 wait for the master store",
          own=is_in("all_reduce", 1, count="2 of 3")),
    Plant("before_torch", says=STORE, place="-", does="", own=is_in("all_reduce", 1)),
    Plant("before_torch", hosts=3, nproc=1, says="Ranks 0,1 wait for the master store", place="-",
          does="", own=is_in("all_reduce", 1, count="2 of 3")),
    Plant("checkpoint", culprits=(0,), says=is_in("barrier", 6), does="holds the interpreter"),
    Plant("crossed", **CROSSED), Plant("crossed", hosts=3, nproc=1, **CROSSED),
    Plant("key_of_all", culprits=(), place="key_of_one", does="waits for the master store",
          says="Ranks 0-3 wait for the master store, for keys that nobody has set"),
    Plant("new_group_of_most", says=STORE, place="steps", own="-"),
    Plant("recv_ring", culprits=(), says="Ranks 0-3 wait for other ranks",
          does="waits for another"),
    Plant("recv_of_odd", says=is_in("all_reduce", 4, count="2 of 4")),
    Plant("pipeline", says="Ranks 0,1,3 wait for other ranks",
          own="Ranks? [0-9,]*3 waits? for other ranks"),
    Plant("monitored", says="Ranks 0,1,3 wait for other ranks", own=is_in("monitored_barrier", 4)),
    Plant("two_ranks", culprits=(1, 3), says=is_in("all_reduce", 4, count="2 of 4")),
    Plant("stages", says=is_in("all_reduce", 4, count="2 of 4")),
    Plant("stages", says=is_in("all_reduce", 4, count="2 of 4"), **TWO),
    Plant("mesh", nproc=16, culprits=(5,), says=MESH),
    Plant("mesh", hosts=2, nproc=8, culprits=(5,), says=MESH),
    Plant("parallel_data", says=r"3 of 4 ranks are in \w+ number \d+ of default_pg",
          place="forward"),
    Plant("objects", says=r"3 of 4 ranks are in \w+ number 3 of default_pg"),
    Plant("second_round", options=("--max-restarts", 1)),
    Plant("second_round", hosts=2, nproc=2, options=("--max-restarts", 1)),
]


@dataclasses.dataclass
class Healthy:
    """A healthy program."""

    mode: str
    hosts: int = 1
    options: tuple = ()
    suspended: int = 0  # Seconds for which all its processes are stopped from outside.

    @property
    def name(self):
        words = [f"{self.hosts} hosts"] if self.hosts > 1 else []
        words += ["suspended as a whole"] if self.suspended else []
        return ", ".join([self.mode, *words, " ".join(map(str, self.options))]).rstrip(", ")


SOON = ("--hang-timeout", 4)
HEALTHY = [
    *map(Healthy, ("no_torch", "no_group", "late_start", "compile_all", "compile_one", "first_step",
                   "late_rank", "slow_steps", "long_pause", "checkpoint", "quiet_checkpoint",
                   "validation", "pipeline", "ring", "server", "debugger", "all_stopped",
                   "two_groups", "download", "growing_steps")),
    Healthy("short_steps", suspended=45), Healthy("short_steps", hosts=2),
    Healthy("pipeline", hosts=2), Healthy("compile_one", hosts=2), Healthy("no_torch", hosts=2),
    Healthy("short_steps", options=SOON), Healthy("ring", options=SOON),
    Healthy("no_torch", options=SOON), Healthy("no_group", options=SOON),
    Healthy("debugger", options=SOON), Healthy("all_stopped", options=SOON),
    Healthy("long_pause", options=SOON), Healthy("short_steps", hosts=2, options=SOON),
    Healthy("ring", hosts=2, options=SOON),
]


# Where a device does the collectives: the programs of device_plants.py.
def on_devices(collective="all_reduce", number=4, of="default_pg", ranks=3, size=4):
    many = "The devices of" if ranks > 1 else "The device of"
    return (rf"{many} {ranks} of {size} ranks (is|are) in {collective} number {number} of {of}")


BARRIER = "(all_reduce_)?barrier"  # Torch 2.13 and 2.14 record it as an all_reduce.
DIFFERENT_CALLS = {"says": "different collectives as number 4 of default_pg", "does": "differs"}
ALONE = {"says": on_devices(ranks=1, size=2, of="dp", number=4), "culprits": (1,)}
WAITS = "waits for its device|stands"
DEVICE_PLANTS = [
    Plant("sleep", says=on_devices()), Plant("sleep", says=on_devices(), **TWO),
    Plant("sleep", **{**THREE, "says": on_devices(ranks=2, size=3)}),
    Plant("c_loop", says=on_devices(), does="computes"),
    Plant("python_loop", says=on_devices(), does="computes"),
    Plant("stopped", says=on_devices(), does="is stopped", place="-"),
    Plant("deadlock", says=on_devices()), Plant("answer", says=on_devices()),
    Plant("pipe", says=on_devices()), Plant("child", says=on_devices()),
    Plant("open_file", says=on_devices()), Plant("empty_queue", says=on_devices()),
    Plant("locked_file", says=on_devices()),
    Plant("early_exit", says=on_devices(), does="has exited with 0", place="-"),
    Plant("early_exit", hosts=3, nproc=1, says=on_devices(ranks=2, size=3),
          does="has exited with 0", place="-"),
    Plant("broadcast", place="synchronize", **DIFFERENT_CALLS),
    Plant("broadcast", place="synchronize", **TWO, **DIFFERENT_CALLS),
    Plant("barrier", place="synchronize", **DIFFERENT_CALLS),
    Plant("sizes", place="synchronize", **DIFFERENT_CALLS),
    Plant("spinning", says=on_devices()), Plant("none_waits", says=on_devices()),
    Plant("all_in_barrier", says=on_devices(BARRIER)),
    Plant("gather", says=on_devices("_all_gather_base")),
    Plant("left_out", place="synchronize", does="differs",
          says="different collectives as number 13 of default_pg"),
    Plant("one_fewer", says=on_devices(number=13)),
    Plant("crossed", culprits=(), says="different orders", place="synchronize", does=""),
    Plant("crossed", culprits=(), says="different orders", place="synchronize", does="", **TWO),
    Plant("elsewhere", says=on_devices(number=1, of="dp")),
    Plant("elsewhere_asleep", place="elsewhere", says=on_devices(number=1, of="dp")),
    Plant("two_ranks", culprits=(1, 3), says=on_devices(ranks=2)),
    Plant("one_device", does=WAITS, place="synchronize",
          says="All 4 ranks have called all_reduce number 7 .* has ended on 3 of their devices"),
    Plant("one_device", does=WAITS, place="synchronize", **TWO,
          says="All 4 ranks have called all_reduce number 7 .* has ended on 3 of their devices"),
    Plant("all_devices", culprits=(), says=on_devices(number=7, ranks=4), does=WAITS,
          place="synchronize"),
    Plant("stuck_driver", says=on_devices()),
    Plant("first_step", says=on_devices(number=1)),
    Plant("communicator", says=STORE),
    Plant("pipeline", says="(devices? of|Ranks?) .*wait.* for other ranks"),
    Plant("exchanges", says="(devices? of|Ranks?) .*wait.* for other ranks"),
    Plant("ring_of_blocks", says="(devices? of|Ranks?) .*wait.* for other ranks"),
    Plant("recv_of_nobody", says=on_devices(), does=WAITS, place="synchronize"),
    Plant("recv_ring", culprits=(), says="wait for other ranks, in send or recv, each for",
          does=WAITS, place="synchronize"),
    Plant("block", says=on_devices("coalesced")),
    Plant("wrapped", says=on_devices(number=201)),
    Plant("checkpoint", culprits=(0,), says=on_devices(BARRIER, 6)),
    Plant("own_group", says=on_devices(ranks=2, size=3, of="dp", number=1)),
    Plant("stages", says=on_devices(ranks=2)),
    Plant("stages", **TWO, says=on_devices(ranks=2)),
    Plant("mesh", nproc=16, culprits=(5,),
          says="ranks are in all_reduce number (5 of column|6 of row)1"),
    Plant("mesh", hosts=2, nproc=8, culprits=(5,),
          says="ranks are in all_reduce number (5 of column|6 of row)1"),
    Plant("beside_gloo", says=is_in("barrier", 3)),
    Plant("gloo_beside", says=on_devices()),
    Plant("second_round", says=on_devices(), options=("--max-restarts", 1)),
    Plant("part", **ALONE), Plant("part", hosts=2, nproc=2, **ALONE),
]

# The programs of healthy_devices.py.
DEVICE_HEALTHY = [
    *(Healthy(mode, options=SOON) for mode in (
        "replays", "exchanges", "blocks", "server", "long_steps", "slow_device",
        "slow_device_alone", "gloo_beside", "halves", "streams", "wrapped", "late_answer",
        "nothing_called")),
    Healthy("exchanges", hosts=2, options=SOON), Healthy("slow_device", hosts=2, options=SOON),
    Healthy("halves", hosts=2, options=SOON),
    *map(Healthy, ("uneven_ends", "pipeline", "validation", "quiet_checkpoint", "late_rank",
                   "compile_one", "first_step")),
]
