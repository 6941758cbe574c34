# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Sums up ctest's JUnit files: what failed, what was skipped and why, and one line of counts."""

import re
import sys
import xml.etree.ElementTree


def reason(case):
    """The last line of a skipped test's output that says why."""
    output = case.findtext("system-out") or ""
    told = re.search(r": Skipped\n(.+)", output)  # GTEST_SKIP() << "why".
    if told:
        return told.group(1).strip()
    said = re.findall(r"skipped:\s*(.+)|(?:^|\n)(.*[Ss]kipped.*)", output)
    lines = [first or second for first, second in said]
    return lines[0].strip() if lines else "it did not say why"


def main():
    passed, failed, skipped = 0, [], {}
    for path in sys.argv[1:]:
        try:
            cases = xml.etree.ElementTree.parse(path).iter("testcase")
        except (OSError, xml.etree.ElementTree.ParseError):
            continue
        for case in cases:
            if case.get("status") == "run":
                passed += 1
            elif case.get("status") == "fail":
                failed.append(case.get("name"))
            else:
                skipped.setdefault(reason(case), []).append(case.get("name"))
    for name in failed:
        print(f"failed: {name}")
    for why, names in skipped.items():
        print(f"skipped: {', '.join(names)}: {why}")
    total_skipped = sum(len(names) for names in skipped.values())
    print(f"{passed} passed, {len(failed)} failed, {total_skipped} skipped")


if __name__ == "__main__":
    main()
