# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Part of server.py: what the script imports, as read in its text, and which of it may be imported
before the script runs."""

import os
import sys


class Plan:
    why_later = "the script runs other code before it, which may change what it sees"

    def __init__(self, words):
        _, names, self.kind, self.script, unshared = words
        self.names = names.split(",")
        self.unshared = set(unshared.split(","))
        safe = getattr(sys.flags, "safe_path", False)
        # What Python puts before sys.path for this script, later than now.
        self.first_path = [] if safe else {
            "script": [os.path.dirname(self._file())], "module": [os.getcwd()]}.get(self.kind, [""])

    def _file(self):
        path = self.script
        if os.path.islink(path):
            path = os.path.join(os.path.dirname(path), os.readlink(path))
        return os.path.realpath(path)

    def file_of_main(self):
        return MainFile(self.script if self.kind == "script" else None)

    def imports(self):
        """The modules of KNOWN that the script imports by itself, in its order: those which it
        imports before all else, and those behind its first statement that may do something."""
        first, later = self.all_imports()
        return [[name for name in names if name.partition(".")[0] in KNOWN]
                for names in (first, later)]

    def all_imports(self):
        """All modules that the script imports, parted likewise."""
        import ast
        first, later = {}, {}
        found = first
        for node in top_level(ast.parse(self._source()), ast):
            for name in imported_by(node, ast):
                if name not in first:
                    found[name] = None
            if not does_nothing(node, ast):
                found = later
        return list(first), list(later)

    def _source(self):
        if self.kind == "code":
            return self.script
        with open(self._file() if self.kind == "script" else self._module_file(), "rb") as file:
            return file.read()

    def _module_file(self):
        from importlib.machinery import PathFinder
        path = None
        for name in self.script.split("."):  # Without running the packages.
            spec = PathFinder.find_spec(name, path)
            path = spec.submodule_search_locations
        if path is not None:
            spec = PathFinder.find_spec("__main__", path)
        return spec.origin


class MainFile:
    """Modules see the script's file in __main__, as they do while it runs."""

    def __init__(self, file):
        self.file, self.main = file, sys.modules["__main__"]

    def __enter__(self):
        if self.file is not None:
            self.main.__file__ = self.file

    def __exit__(self, *_):
        vars(self.main).pop("__file__", None)


def top_level(tree, ast):
    for node in tree.body:
        if isinstance(node, ast.Try):
            for inner in top_level(node, ast):
                yield inner
            for inner in (*node.handlers, *node.orelse, *node.finalbody):
                yield inner
        else:
            yield node


def imported_by(node, ast):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return [node.module]
    return []


def does_nothing(node, ast):
    """Whether a module that is imported behind this statement sees what it would see before it. The
    statement may name things, and import modules of KNOWN and of Python itself: no other one, which
    may set variables of the environment, and no call."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        names = imported_by(node, ast)
        return bool(names) and all(is_trusted(name.partition(".")[0]) for name in names)
    if getattr(node, "decorator_list", []):
        return False  # Each is called.
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        parts = [node.args]
    elif isinstance(node, ast.ClassDef):
        parts = [*node.bases, *node.keywords, *node.body]
    elif isinstance(node, ast.If):
        never = getattr(node.test, "attr", getattr(node.test, "id", "")) == "TYPE_CHECKING"
        parts = node.orelse if never else [node.test, *node.body, *node.orelse]
    elif isinstance(node, ast.ExceptHandler):
        parts = node.body
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.Expr, ast.Pass)):
        parts = list(ast.iter_child_nodes(node))
    elif isinstance(node, ast.Raise):
        return True  # Nothing is imported behind it.
    elif isinstance(node, ast.stmt):
        return False
    else:
        return not acts(node, ast)
    return all(does_nothing(part, ast) for part in parts)


def acts(expression, ast):
    """Whether it calls something, or changes a thing that has another name as well."""
    return any(isinstance(node, (ast.Call, ast.Await, ast.Yield, ast.YieldFrom)) or
               isinstance(node, (ast.Attribute, ast.Subscript)) and
               not isinstance(node.ctx, ast.Load)
               for node in ast.walk(expression))


def is_trusted(name):
    """Whether it is of KNOWN, or a module of Python itself and no file that has its name."""
    from importlib.machinery import PathFinder
    if name in KNOWN or name in sys.builtin_module_names:
        return True
    spec = PathFinder.find_spec(name)
    folder = os.path.dirname(os.__file__)
    return spec is not None and spec.origin is not None and os.path.dirname(spec.origin) in (
        folder, os.path.join(folder, name), os.path.join(folder, "lib-dynload"))
