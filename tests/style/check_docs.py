#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The documents tell the truth: links lead somewhere, commands exist, options are real.

1. Every relative link in a *.md file leads to a file or folder of the tree.
2. In a fenced `sh` block every command is a program of ours or one that readers have.
   Paths into the tree (deploy/…, tests/…) exist and can be run.
3. In a block fenced as `sh tested` every line is run, in order, and must exit 0; `hlaunch` is
   the one in build/bin. One that was not built yet is not run.
4. Every --option that a document gives to a program of ours is in its --help, and every option
   there is in README.md (when it has been built).
5. The exit codes of proto/contract/exit_code.h are in README.md, and no others.
"""

import os
import re
import shlex
import subprocess

import source_tree

# What readers have, beside shell words.
OURS = ("hlaunch", "hlaunch status", "hlaunch devices", "hlaunch check",
        "hlaunch-rendezvous")
KNOWN = {"hlaunch", "hlaunch-rendezvous", "sudo", "apt-get", "git", "cd", "cmake", "ninja", "ctest", "ssh", "export",
         "pip", "python3", "torchrun", "mpirun", "srun", "sbatch", "kill", "ip", "ls", "systemctl",
         "journalctl"}
IN_TREE = re.compile(r"^(\./)?(deploy|tests|build|\.ci)/")
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")
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
    """The words of each command line; comments, `$ ` prompts and VAR=value are dropped."""
    joined = "\n".join(lines).replace("\\\n", " ")
    for line in joined.splitlines():
        words = shlex.split(re.sub(r"^\$ ", "", line.strip()), comments=True)
        while words and re.match(r"^\w+=", words[0]):
            words.pop(0)
        if words:
            yield line.strip(), words


def link_problems(root, path, text):
    name = path.relative_to(root)
    return [f"{name}: link to {target}, which does not exist"
            for target, _ in LINK.findall(text)
            if "://" not in target and not (path.parent / target).exists()]


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
                                  stderr=subprocess.STDOUT, check=False, timeout=60)
            if done.returncode != 0:
                found.append(f"{path.relative_to(root)}:{start}: `{line}` exited "
                             f"{done.returncode}: {done.stdout.strip()[-200:]}")
    return found


def command_of(words):
    """Which of OURS a command line is; empty if none."""
    two = " ".join(words[:2])
    return two if two in OURS else words[0] if words[0] in OURS else ""


def option_problems(root, documents, command):
    program = root / "build/bin" / command.split()[0]
    if not program.exists():
        return []
    shown = subprocess.run([program, *command.split()[1:], "--help"], text=True,
                           capture_output=True, check=False, timeout=10).stdout
    real = set(OPTION.findall(shown))
    found = []
    for path, text in documents:
        named = set()
        for _, _, lines in fenced_blocks(text):
            for _, words in commands(lines) if any("hlaunch" in line for line in lines) else []:
                if command_of(words) == command:
                    named.update(word.split("=")[0] for word in words[1:] if OPTION.match(word))
        named &= {option for option in named if option.replace("_", "-") == option}
        found += [f"{path.relative_to(root)}: {option} is not an option of {command}"
                  for option in sorted(named - real - {"--steps", "--lr", "--epochs"})]
        if path == root / "README.md":
            said = set(OPTION.findall(text))
            found += [f"README.md: says nothing of {option}" for option in sorted(real - said)]
    return found


def exit_code_problems(root):
    header, readme = root / "proto/contract/exit_code.h", root / "README.md"
    if not header.exists() or not readme.exists():
        return []
    real = set(re.findall(r"=\s*(2\d\d);", header.read_text(encoding="utf-8")))
    said = set(re.findall(r"^\| (2\d\d) \|", readme.read_text(encoding="utf-8"), re.MULTILINE))
    return ([f"README.md: exit code {code} is missing" for code in sorted(real - said)]
            + [f"README.md: exit code {code} does not exist" for code in sorted(said - real)])


def problems(root):
    documents = [(path, path.read_text(encoding="utf-8"))
                 for path in source_tree.files(root, ".md")]
    found = []
    for path, text in documents:
        for check in (link_problems, command_problems, run_problems):
            found += check(root, path, text)
    for command in OURS:
        found += option_problems(root, documents, command)
    return found + exit_code_problems(root)


if __name__ == "__main__":
    source_tree.run(problems, "change the document, or the program it speaks of")
