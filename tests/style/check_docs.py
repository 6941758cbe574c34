#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The documents are true: links lead somewhere, commands exist, options are real.

1. Every relative link in a *.md file leads to a file or folder of the tree, and `#heading` to a
   heading of that document. A page of the manual is installed without the tree, so it links only to
   other pages; the paths of the tree that it names (`deploy/…`) exist.
2. In a fenced `sh` block every command is a program of ours or one that readers have.
   Paths into the tree (deploy/…, tests/…) exist and can be run.
3. In a block fenced as `sh tested` every line runs, in order, and must exit with 0; `hlaunch` is
   the one in build/bin. Nothing is run if it has not been built.
4. Every --option that a document gives to a program of ours is in its --help, and every option in
   --help is in the manual (if the program has been built).
5. The manual's page of exit codes has the exit codes of proto/contract/exit_code.h, and no others.
   If a document, a unit, a manifest or a batch script names an exit code of hlaunch's own, or a
   range of them, it exists; so does each code in brackets in the manual.
6. proto/DESIGN.md names every service of proto/.
7. The generated pages are what hlaunch_man prints (if it has been built).
8. README.md has at most 200 lines and names every page; a page has at most 150 lines, except the
   generated ones.
"""

import itertools
import os
import re
import shlex
import subprocess

import source_tree

# Programs that readers have, besides shell words.
OURS = ("hlaunch", "hlaunch status", "hlaunch why", "hlaunch stacks", "hlaunch drain", "hlaunch undrain", "hlaunch attach",
        "hlaunch logs", "hlaunch stop", "hlaunch devices",
        "hlaunch check", "hlaunch doctor", "hlaunch token", "hlaunch cluster", "hlaunch run", "hlaunch adopt",
        "hlaunch-rendezvous")
KNOWN = {"hlaunch", "hlaunch-rendezvous", "sudo", "apt-get", "git", "cd", "cmake", "ninja", "ctest", "ssh", "export",
         "pip", "python3", "torchrun", "mpirun", "mpiexec", "srun", "salloc", "sbatch", "kill", "ip", "ls", "systemctl",
         "journalctl", "podman", "kubectl", "grep", "tar", "dpkg", "rpm", "module", "echo", "accelerate"}
IN_TREE = re.compile(r"^(\./)?(deploy|tests|build|\.ci)/")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
NAMED_PATH = re.compile(r"`((?:deploy|proto|comm|agent|rendezvous|tests)/[\w./@-]+)`")
MANUAL = "launcher/manual"
GENERATED = [f"{MANUAL}/options.md", f"{MANUAL}/mpirun-words.md"]
README_LINES, PAGE_LINES = 200, 150
EXIT_CODE = re.compile(r"(?:exit codes?:?|exits? with|ends?(?: at once)? with|with code)"
                       r" (?:code )?(\d{3})\b", re.IGNORECASE)
EXIT_CODES = re.compile(r"(?:ExitStatus=|values: \[)([\d ,]*)")  # In a unit, in a manifest.
IN_BRACKETS = re.compile(r"[( ](\d{3})\)")
RANGE = re.compile(r"\b(\d{3}) to (\d{3})\b")
LAST_SIGNAL, LAST_CODE = 128 + 64, 255
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")


def fenced_blocks(text):
    """Yields (info string, first line's number, lines) of each fenced block."""
    info, start, lines = None, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            if info is None:
                info, start, lines = line[3:].strip(), number + 1, []
            else:
                yield info, start, lines
                info = None
        elif info is not None:
            lines.append(line)


def commands(lines):
    """Yields the words of each command in these lines, without comments, `$ ` prompts and
    VAR=value."""
    joined = "\n".join(lines).replace("\\\n", " ")
    for line in joined.splitlines():
        whole = shlex.split(re.sub(r"^\$ ", "", line.strip()), comments=True)
        for pipe, piped in itertools.groupby(whole, key="|".__eq__):
            words = list(itertools.dropwhile(re.compile(r"^\w+=").match, piped))
            if words and not pipe:
                yield line.strip(), words


def without_blocks(text):
    """The document without fenced blocks, where `# …` is a comment and no heading."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text):
    """The targets of `#…` in a document, as GitHub makes them from headings."""
    found = set()
    for heading in HEADING.findall(without_blocks(text)):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = 1
        while anchor in found:  # The second heading of a name gets `name-1`.
            anchor = re.sub(r"(-\d+)?$", f"-{number}", anchor, count=1)
            number += 1
        found.add(anchor)
    return found


def in_manual(root, path):
    return path.parent == root / MANUAL


def link_problems(root, path, text):
    name, found = path.relative_to(root), []
    for target, anchor in LINK.findall(without_blocks(text)):
        if "://" in target:
            continue
        to = path.parent / target if target else path
        if not to.exists():
            found.append(f"{name}: link to {target}, which does not exist")
        elif anchor and anchor not in anchors(to.read_text(encoding="utf-8")):
            found.append(f"{name}: link to {target}#{anchor}, and there is no such heading")
        elif in_manual(root, path) and not in_manual(root, to):
            found.append(f"{name}: link to {target}, which is not installed beside this page")
    if in_manual(root, path):
        found += [f"{name}: names {named}, which does not exist"
                  for named in NAMED_PATH.findall(text) if not (root / named).exists()]
    return found


def length_problems(root, path, text):
    name, lines = str(path.relative_to(root)), len(text.splitlines())
    limited = in_manual(root, path) and name not in GENERATED
    most = README_LINES if name == "README.md" else PAGE_LINES if limited else lines
    return [f"{name}: has {lines} lines, and at most {most} are read"] if lines > most else []


def page_problems(root, documents):
    """Checks that the README's table has every page, and that generated pages are up to date."""
    texts = {str(path.relative_to(root)): text for path, text in documents}
    linked = {target for target, _ in LINK.findall(texts.get("README.md", ""))}
    found = [f"README.md: does not name the page {name}" for name in sorted(texts)
             if name.startswith(f"{MANUAL}/") and name not in linked]
    maker = root / "build/launcher/hlaunch_man"
    for page in GENERATED if maker.exists() else []:
        name = page.rpartition("/")[2]
        made = subprocess.run([maker, name], text=True, capture_output=True, check=False,
                              timeout=100).stdout if page in texts else None
        if made != texts.get(page):
            found.append(f"{page}: is not what the program's table says; make it anew: "
                         f"build/launcher/hlaunch_man {name} > {page}")
    return found


def command_problems(root, path, text):
    found = []
    for info, start, lines in fenced_blocks(text):
        if info.split()[:1] != ["sh"]:
            continue
        for line, words in commands(lines):
            where = f"{path.relative_to(root)}:{start}: `{line}`"
            program = words[1] if words[0] == "sudo" and len(words) > 1 else words[0]
            if IN_TREE.match(program):
                if not program.startswith("build/") and not os.access(root / program, os.X_OK):
                    found.append(f"{where}: {program} is not there or cannot be run")
            elif program not in KNOWN:
                found.append(f"{where}: {program} is not a program of hlaunch's or in KNOWN")
    return found


def run_problems(root, path, text):
    if not (root / "build/bin/hlaunch").exists():
        return []
    found = []
    env = dict(os.environ, PATH=f"{root}/build/bin:{os.environ['PATH']}")
    for info, start, lines in fenced_blocks(text):
        if info.split() != ["sh", "tested"]:
            continue
        for line, _ in commands(lines):
            done = subprocess.run(["bash", "-c", line.removeprefix("$ ")], cwd=root, env=env,
                                  text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False, timeout=600)
            if done.returncode != 0:
                found.append(f"{path.relative_to(root)}:{start}: `{line}` exited "
                             f"{done.returncode}: {done.stdout.strip()[-200:]}")
    return found


def command_of(words):
    """The one of OURS that a command line runs; empty if none."""
    two = " ".join(words[:2])
    return two if two in OURS else words[0] if words[0] in OURS else ""


def option_problems(root, documents, command):
    program = root / "build/bin" / command.split()[0]
    if not program.exists():
        return []
    shown = subprocess.run([program, *command.split()[1:], "--help"], text=True,
                           capture_output=True, check=False, timeout=100).stdout
    real = set(OPTION.findall(shown))
    if not real:  # hlaunch-agent, which answers this, was not built yet.
        return []
    found = []
    for path, text in documents:
        named = set()
        for info, _, lines in fenced_blocks(text):
            if info.split()[:1] not in ([], ["sh"]) or not any("hlaunch" in line for line in lines):
                continue  # The output of programs is no command.
            for _, words in commands(lines):
                if command_of(words) == command:
                    words = list(itertools.takewhile(lambda word: not word.endswith(".py"), words))
                    named.update(word.split("=")[0] for word in words[1:] if OPTION.match(word))
        named &= {option for option in named if option.replace("_", "-") == option}
        found += [f"{path.relative_to(root)}: {option} is not an option of {command}"
                  for option in sorted(named - real)]
    said = {option for path, text in documents if in_manual(root, path)
            for option in OPTION.findall(text)}
    return found + [f"{MANUAL}: says nothing of {option}" for option in sorted(real - said)]


def own_exit_codes(root):
    """hlaunch's own exit codes, beyond 128 + a signal, by name; empty without the header."""
    header = root / "proto/contract/exit_code.h"
    rows = re.findall(r"(kExit\w+) =\s*(\d+);", header.read_text(encoding="utf-8")) \
        if header.exists() else []
    return {name: int(code) for name, code in rows if is_own(code)}


def is_own(code):
    """Whether a number, if it is an exit code, can only be one of hlaunch's own."""
    return LAST_SIGNAL < int(code) < LAST_CODE


def exit_code_problems(root):
    own, page = own_exit_codes(root), root / f"{MANUAL}/exit-codes.md"
    if not own or not page.exists():
        return []
    header = "proto/contract/exit_code.h"
    listed = re.search(r"kOwnExitCodes\[\] = \{(.*?)\}", (root / header).read_text(encoding="utf-8"),
                       re.DOTALL)
    listed = re.findall(r"kExit\w+", listed[1]) if listed else []
    real = set(own.values())
    said = {int(code) for code in re.findall(r"^\| (\d{3}) \|", page.read_text(encoding="utf-8"),
                                             re.MULTILINE) if is_own(code)}
    name = page.relative_to(root)
    return ([f"{header}: kOwnExitCodes is {', '.join(listed)}, and should be {', '.join(own)}"
             for _ in range(listed != list(own))]
            + [f"{name}: exit code {code} is missing" for code in sorted(real - said)]
            + [f"{name}: exit code {code} does not exist" for code in sorted(said - real)])


def named_code_problems(root, path, text):
    """Checks that each exit code of hlaunch's own that a text names exists."""
    real, name = set(own_exit_codes(root).values()), path.relative_to(root)
    if not real:
        return []
    said = EXIT_CODE.findall(text) + " ".join(EXIT_CODES.findall(text)).replace(",", " ").split()
    if in_manual(root, path):
        said += IN_BRACKETS.findall(text)
    found = [f"{name}: names exit code {code}, which does not exist"
             for code in sorted(set(said)) if is_own(code) and int(code) not in real]
    for first, last in RANGE.findall(text):
        between = range(int(first), int(last) + 1)
        if is_own(first) and is_own(last) and (
                not real.issuperset(between) or {between[0] - 1, between[-1] + 1} & real):
            found.append(f"{name}: {first} to {last} is no range of exit codes")
    return found


def deployed(root):
    """The files that are installed beside the programs and may name an exit code."""
    return [path for ending in (".service", ".yaml", ".sbatch")
            for path in source_tree.files(root, ending)]


def service_problems(root):
    design = root / "proto/DESIGN.md"
    told = design.read_text(encoding="utf-8") if design.exists() else ""
    return [f"proto/DESIGN.md: says nothing of the service {name}"
            for path in source_tree.files(root, ".proto")
            for name in re.findall(r"^service (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
            if f"`{name}`" not in told]


def problems(root):
    documents = [(path, path.read_text(encoding="utf-8"))
                 for path in source_tree.files(root, ".md")]
    found = []
    for path, text in documents:
        for check in (link_problems, length_problems, command_problems, run_problems,
                      named_code_problems):
            found += check(root, path, text)
    for command in OURS:
        found += option_problems(root, documents, command)
    for path in deployed(root):
        found += named_code_problems(root, path, path.read_text(encoding="utf-8"))
    return (found + exit_code_problems(root) + service_problems(root)
            + page_problems(root, documents))


if __name__ == "__main__":
    source_tree.run(problems, "change the document, or the program it speaks of")
