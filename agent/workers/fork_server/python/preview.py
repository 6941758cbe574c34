# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Behind server.py and its parts: tells what a server would import. See PreviewScript."""

import sys


def preview(names, kind, script):
    """Prints what a server would import, and what not and why. Imports and runs none of it."""
    from importlib.machinery import PathFinder
    plan = Plan(["plan", names, kind, script, ""])
    sys.path[:0] = plan.first_path
    automatic = names == "auto"
    standard = set(getattr(sys, "stdlib_module_names", ())) | set(sys.builtin_module_names)
    first, later = plan.all_imports() if automatic else (plan.names, [])
    for name in first + later:
        top = name.partition(".")[0]
        if top in UNFIT:
            why = UNFIT[top]
        elif name in later and top in KNOWN:
            why = plan.why_later
        elif automatic and top not in KNOWN:
            why = "" if top in standard else "auto does not know it; it can be named"
            if not why:
                continue
        elif top not in sys.modules and PathFinder.find_spec(top) is None and top not in standard:
            why = "there is no such module"
        else:
            why = ""
        print("hlaunch's answer:", name, why)


try:
    preview(*sys.argv[1:4])
    print("hlaunch's end")
except Exception as error:
    print("%s: %s" % (type(error).__name__, str(error).partition("\n")[0]))
