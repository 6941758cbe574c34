# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Sums up ctest's JUnit files: what waited longer than it should, what was skipped and why, what failed,
how often and with which last words, and one line of counts. Exit code 1 where something failed."""

import collections
import pathlib
import re
import sys
import xml.etree.ElementTree


def reason(output):
    """The line of a skipped test's output that says why."""
    told = re.search(r"(?:: Skipped|\.cc:\d+)\n(.+)", output)  # GTEST_SKIP() << "why".
    if told:
        return told.group(1).strip()
    said = re.search(r"skipped:\s*(.+)", output) or re.search(r"(.*[Ss]kipped.*)", output)
    return said.group(1).strip() if said else "it did not say why"


def last_words(output):
    """The end of a failed test's output: its assertion, and what the programs said."""
    return [line[:200] for line in output.splitlines() if line.strip()][-25:]


def cases_of(path):
    """The cases of a JUnit file; there are none where it cannot be read."""
    try:
        return list(xml.etree.ElementTree.parse(path).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        return []


def tests_of(path):
    """Yields name, status (run, fail or another) and output of each test of a JUnit file. A case that
    ran several tests of GoogleTest is these tests, where it lived to write what they came to."""
    for case in cases_of(path):
        name, output = case.get("name"), case.findtext("system-out") or ""
        told = pathlib.Path(path).parent / "gtest" / f"{name}.xml"
        tests = cases_of(told)
        if not told.exists() or (case.get("status") == "fail" and not any(
                test.find("failure") is not None for test in tests)):
            yield name, case.get("status"), output  # It may be a leak that was found at the end.
        for test in tests:
            full = f"{test.get('classname')}.{test.get('name')}"
            said = test.find("failure") if test.find("failure") is not None else test.find("skipped")
            status = "run" if said is None else said.tag.replace("failure", "fail")
            words = re.split(rf"\[ .* \] {re.escape(full)}\b", output.partition(
                f"[ RUN      ] {full}\n")[2])[0]
            yield f"{name}.{full}", status, words or (said is not None and said.get("message")) or ""


def main():
    passed, failed, words, slow, skipped = 0, collections.Counter(), {}, {}, {}
    for path in sys.argv[1:]:
        for name, status, output in tests_of(path):
            waits = re.findall(r"^slow: (.+)", output, re.MULTILINE)
            if waits:
                slow[name] = waits[-1]
            if status == "run":
                passed += 1
            elif status == "fail":
                failed[name] += 1
                words[name] = last_words(output)
            else:
                skipped.setdefault(reason(output), []).append(name)
    for name, waited in slow.items():
        print(f"slow: {name}: {waited}")
    for why, names in skipped.items():
        print(f"skipped: {', '.join(dict.fromkeys(names))}: {why}")
    for name, times in failed.most_common():
        print(f"failed: {name}" + (f" ({times} times)" if times > 1 else ""))
        for line in words[name]:
            print(f"    | {line}")
    total_skipped = sum(len(names) for names in skipped.values())
    print(f"{passed} passed, {failed.total()} failed, {total_skipped} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
