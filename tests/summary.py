# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Sums up ctest's JUnit files: what failed, how often and with which last words, what waited longer
than it should, what was skipped and why, and one line of counts. Exit code 1 where something failed."""

import collections
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


def last_words(case):
    """The end of a failed test's output: its assertion, and what the programs said."""
    lines = (case.findtext("system-out") or "").splitlines()
    return [line[:200] for line in lines if line.strip()][-25:]


def main():
    passed, failed, words, slow, skipped = 0, collections.Counter(), {}, {}, {}
    for path in sys.argv[1:]:
        try:
            cases = xml.etree.ElementTree.parse(path).iter("testcase")
        except (OSError, xml.etree.ElementTree.ParseError):
            continue
        for case in cases:
            waits = re.findall(r"^slow: (.+)", case.findtext("system-out") or "", re.MULTILINE)
            if waits:
                slow[case.get("name")] = waits[-1]
            if case.get("status") == "run":
                passed += 1
            elif case.get("status") == "fail":
                failed[case.get("name")] += 1
                words[case.get("name")] = last_words(case)
            else:
                skipped.setdefault(reason(case), []).append(case.get("name"))
    for name, waited in slow.items():
        print(f"slow: {name}: {waited}")
    for name, times in failed.most_common():
        print(f"failed: {name}" + (f" ({times} times)" if times > 1 else ""))
        for line in words[name]:
            print(f"    | {line}")
    for why, names in skipped.items():
        print(f"skipped: {', '.join(names)}: {why}")
    total_skipped = sum(len(names) for names in skipped.values())
    print(f"{passed} passed, {failed.total()} failed, {total_skipped} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
