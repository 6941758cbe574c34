#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Each style check passes a clean tree and fails on a planted violation."""

import pathlib
import subprocess
import shutil
import sys
import tempfile
import unittest

import check_docs
import check_evidence
import check_format
import check_headers
import check_includes
import check_layers
import check_licence
import check_names
import check_symbols
import check_tests
import check_words

SPDX = "".join(f"// {line}\n" for line in check_licence.LINES)
CLEAN = {
    "proto/base/a.h": SPDX + "\n#pragma once\n\n#include <string>\n\nstd::string A();\n",
    "rendezvous/b.cc": SPDX + '\n#include "proto/base/a.h"\n\nstd::string B() { return A(); }\n',
    "rendezvous/service.cc": SPDX + "\n#include <grpcpp/grpcpp.h>\n",
    "proto/base/CMakeLists.txt": "hlaunch_room(proto/base SOURCES a.cc)\n",
    "proto/contract/CMakeLists.txt": "hlaunch_room(proto/contract)\n",
    "rendezvous/CMakeLists.txt": "hlaunch_room(rendezvous SOURCES b.cc USES proto/base)\n"
                                 "if(HLAUNCH_GRPC)\n  add(SOURCES service.cc)\nendif()\n",
    "tests/end_to_end/CMakeLists.txt": "hlaunch_end_to_end(a_test A)\n",
    "tests/end_to_end/a_test.py": SPDX.replace("//", "#") +
                                  "class Base:\n    def test_it(self):\n        pass\n\n\n"
                                  "class A(Base):\n    count = 2\n",
    "tests/run": "#!/bin/sh\n" + SPDX.replace("//", "#"),
    ".clang-format": "BasedOnStyle: Google\nColumnLimit: 100\n",
    "README.md": "# x\n\n[design](proto/base/a.h)\n\n```sh\ntests/run\n```\n\n"
                 "[codes](launcher/manual/exit-codes.md#its-codes)\n",
    "launcher/manual/exit-codes.md": "# Exit codes\n\n```sh\n# no heading\n```\n\n"
                                     "## Its `codes`\n\n| 193 | bug, see `tests/run` |\n",
    "proto/contract/exit_code.h": SPDX + "\ninline constexpr int kExitInternal = 193;\n"
                                  "inline constexpr int kOwnExitCodes[] = {kExitInternal};\n",
}


class PlantedViolation(unittest.TestCase):
    def check(self, check, **planted):
        """The complaints of `check` about the clean tree with these files (path=text) added or
        replaced."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {**CLEAN, **planted.get("files", {})}.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            for program in "tests/run", "build/launcher/hlaunch_man":
                if (root / program).exists():
                    (root / program).chmod(0o755)
            return check.problems(root)

    def assert_only(self, found, *words):
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_a_clean_tree_passes_all(self):
        for check in (check_docs, check_evidence, check_headers, check_layers, check_licence, check_names,
                      check_tests, check_words):
            self.assertEqual(self.check(check), [], check.__name__)

    def test_layers_catches_an_arrow_up(self):
        found = self.check(check_layers, files={
            "rendezvous/c.h": SPDX, "proto/base/up.cc": SPDX + '#include "rendezvous/c.h"\n'})
        self.assertTrue([line for line in found if "proto/base/up.cc" in line and "floor above" in line
                         and "rendezvous/c.h" in line], found)

    def test_layers_catches_an_arrow_to_a_room_that_is_not_listed(self):
        found = self.check(check_layers, files={
            "proto/contract/d.h": SPDX, "rendezvous/d.cc": SPDX + '#include "proto/contract/d.h"\n'})
        self.assert_only(found, "rendezvous/d.cc", "proto/contract/d.h", "does not use that room")

    def test_layers_catches_a_listed_room_that_is_not_used(self):
        found = self.check(check_layers, files={
            "proto/contract/CMakeLists.txt": "hlaunch_room(proto/contract USES proto/base)\n"})
        self.assert_only(found, "proto/contract", "USES proto/base")

    def test_layers_catches_a_folder_that_is_no_room(self):
        self.assert_only(self.check(check_layers, files={"agent/d.cc": SPDX}), "agent/d.cc",
                         "no hlaunch_room")

    def test_layers_catches_a_circle_of_files(self):
        found = self.check(check_layers, files={
            "proto/base/d.h": SPDX + '#include "proto/base/e.h"\n',
            "proto/base/e.h": SPDX, "proto/base/e.cc": SPDX + '#include "proto/base/d.h"\n'})
        self.assert_only(found, "proto/base/d -> proto/base/e -> proto/base/d")

    def test_layers_catches_a_circle_of_rooms(self):
        found = self.check(check_layers, files={
            "proto/base/CMakeLists.txt": "hlaunch_room(proto/base USES proto/contract)\n",
            "proto/contract/CMakeLists.txt": "hlaunch_room(proto/contract USES proto/base)\n",
            "proto/contract/d.h": SPDX, "proto/base/e.h": SPDX + '#include "proto/contract/d.h"\n',
            "proto/contract/f.h": SPDX + '#include "proto/base/a.h"\n'})
        self.assert_only(found, "proto/base -> proto/contract -> proto/base")

    def check_wings(self, lists, **listed):
        """The complaints about agent/one/a and agent/two/{b,c}: a uses b, and b uses what `listed`
        says; `lists` is what agent/one and agent/two have beside their rooms."""
        rooms = {"agent/one/a": "USES agent/two/b", "agent/two/b": "", "agent/two/c": "", **listed}
        files = {f"{wing}/CMakeLists.txt": text for wing, text in lists.items()}
        for room, uses in rooms.items():
            files[f"{room}/CMakeLists.txt"] = f"hlaunch_room({room} {uses})\n"
            header = "".join(f'#include "{other}/x.h"\n' for other in uses.split()[1:])
            files[f"{room}/x.h"] = SPDX + header
        return self.check(check_layers, files=files)

    def test_layers_takes_wings_that_list_what_their_rooms_use(self):
        self.assertEqual(self.check_wings({"agent/two": "hlaunch_wing(agent/two)\n"}), [])
        self.assertEqual(self.check_wings({"agent/one": "hlaunch_wing(agent/one USES agent/two)\n",
                                           "agent/two": "hlaunch_wing(agent/two)\n"}), [])

    def test_layers_catches_an_arrow_between_wings_that_is_not_listed(self):
        self.assert_only(self.check_wings({"agent/one": "hlaunch_wing(agent/one)\n",
                                           "agent/two": "hlaunch_wing(agent/two)\n"}),
                         "agent/one", "use agent/two", "does not list")

    def test_layers_catches_a_listed_wing_that_is_not_used(self):
        self.assert_only(self.check_wings({"agent/two": "hlaunch_wing(agent/two USES agent/one)\n"}),
                         "agent/two", "lists agent/one")

    def test_layers_catches_a_wing_of_several_rooms_without_a_list(self):
        self.assert_only(self.check_wings({}), "agent/two", "2 rooms", "no hlaunch_wing")

    def test_layers_catches_a_circle_of_wings(self):
        found = self.check_wings({"agent/two": "hlaunch_wing(agent/two USES agent/one)\n"},
                                 **{"agent/two/c": "USES agent/one/a"})
        self.assert_only(found, "agent/one -> agent/two -> agent/one")

    def test_layers_catches_grpc_in_a_core_file(self):
        found = self.check(check_layers, files={
            "rendezvous/b.cc": CLEAN["rendezvous/b.cc"] + "#include <google/protobuf/message.h>\n"})
        self.assert_only(found, "rendezvous/b.cc", "google/protobuf/message.h")

    def test_layers_catches_grpc_through_our_own_header(self):
        found = self.check(check_layers, files={
            "rendezvous/service.h": SPDX + "#include <grpcpp/grpcpp.h>\n",
            "rendezvous/b.cc": CLEAN["rendezvous/b.cc"] + '#include "rendezvous/service.h"\n'})
        self.assert_only(found, "rendezvous/b.cc", "rendezvous/service.h -> grpcpp/grpcpp.h")

    def test_words_catches_a_word_that_has_left(self):
        found = self.check(check_words, files={"rendezvous/b.h": SPDX + "class WitnessThread;\n"})
        self.assert_only(found, "rendezvous/b.h:3", "Witness", "voter")
        self.assertEqual(self.check(check_words, files={
            "rendezvous/b.h": SPDX + "v1::PassWitnessMessageRequest request;\n"}), [])

    def test_words_catches_a_word_that_users_are_to_read_no_more(self):
        page, code = "launcher/manual/a.md", "rendezvous/b.cc"
        self.assert_only(self.check(check_words, files={page: "# x\n\nIt mends it.\n"}),
                         f"{page}:3", "mends", "fix")
        self.assert_only(self.check(check_words, files={
            code: CLEAN[code] + 'const char a[] = "of a stranger";\n'}), code, "unauthenticated peer")
        self.assertEqual(self.check(check_words, files={
            code: CLEAN[code] + '// A stranger.\nint C() { return D("a", stranger.b, " c"); }\n'}), [])

    def test_includes_catches_a_use_that_only_precompiled_headers_cover(self):
        self.assertEqual(self.check(check_includes), [])  # b.cc gets <string> through a.h.
        found = self.check(check_includes, files={
            "rendezvous/b.cc": CLEAN["rendezvous/b.cc"] + "std::vector<int> C();\n"})
        self.assert_only(found, "rendezvous/b.cc", "<vector>")

    def test_includes_catches_a_use_that_only_a_neighbour_s_include_covers(self):
        header = SPDX + "\n#pragma once\n\n"
        for own, use in {"struct Of {\n  int a;\n};\n": "Of C();\n",
                         "constexpr int kOf = 1;\n": "int C() { return kOf; }\n",
                         "#define HLAUNCH_OF 1\n": "int C() { return HLAUNCH_OF; }\n",
                         "int Of(int a);\n": "int C() { return Of(1); }\n"}.items():
            files = {"proto/base/of.h": header + own, "rendezvous/b.cc": CLEAN["rendezvous/b.cc"] + use}
            self.assert_only(self.check(check_includes, files=files), "rendezvous/b.cc",
                             "proto/base/of.h")
            files["rendezvous/b.cc"] += '\n#include "proto/base/of.h"\n'
            self.assertEqual(self.check(check_includes, files=files), [])

    def test_includes_lets_a_file_have_a_name_of_its_own(self):
        files = {"proto/base/of.h": SPDX + "\n#pragma once\n\nint Of(int a);\n",
                 "rendezvous/b.cc": CLEAN["rendezvous/b.cc"] +
                                    "// Of() of another.\nint Of() { return 1; }\nint C() { return Of(); }\n"}
        self.assertEqual(self.check(check_includes, files=files), [])

    def test_headers_catches_one_that_needs_another_first(self):
        found = self.check(check_headers, files={
            "proto/base/a.h": SPDX + "#pragma once\nstd::string A();\n"})
        self.assert_only(found, "proto/base/a.h", "does not compile alone")

    @unittest.skipUnless(shutil.which(check_format.TOOL), f"{check_format.TOOL} is not installed")
    def test_format_catches_a_crooked_line_and_a_trailing_blank(self):
        self.assertEqual(self.check(check_format), [])
        self.assertTrue(self.check(check_format, files={"agent/d.cc": SPDX + "int  d ;\n"}))
        self.assert_only(self.check(check_format, files={"agent/d.py": "a = 1 \n"}), "agent/d.py:1")

    def test_licence_catches_a_file_without_header(self):
        found = self.check(check_licence, files={"agent/d.cc": "int d;\n"})
        self.assert_only(found, "agent/d.cc")

    def test_docs_catches_dead_link_and_missing_program(self):
        readme = CLEAN["README.md"]
        self.assert_only(self.check(check_docs, files={"README.md": readme + "[x](gone.md)\n"}),
                         "gone.md")
        self.assert_only(self.check(check_docs, files={
            "README.md": readme.replace("tests/run", "tests/runs")}), "tests/runs")
        self.assert_only(self.check(check_docs, files={
            "README.md": readme.replace("tests/run", "frobnicate --all")}), "frobnicate")

    def test_docs_runs_tested_blocks_and_checks_options(self):
        fake = "#!/bin/sh\necho '--nnodes --mentioned'\nexit ${1:+0}\n"
        page = "--nnodes --mentioned\n\n```sh tested\n%s\n```\n"

        def with_hlaunch(line):
            with tempfile.TemporaryDirectory() as folder:
                root = pathlib.Path(folder)
                for name, text in {"build/bin/hlaunch": fake, "launcher/manual/x.md": page % line,
                                   "README.md": "[x](launcher/manual/x.md)\n"}.items():
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).write_text(text, encoding="utf-8")
                    (root / name).chmod(0o755)
                return check_docs.problems(root)
        self.assertEqual(with_hlaunch("hlaunch --nnodes 2 true"), [])
        self.assertEqual(with_hlaunch("hlaunch x.py --nodes 2"), [])  # The script's.
        self.assert_only(with_hlaunch("hlaunch --nodes 2 true"), "--nodes is not an option")
        self.assert_only(with_hlaunch("hlaunch --nnodes 2 true && false"), "exited 1")
        page = page.replace("--mentioned", "")
        self.assert_only(sorted(set(with_hlaunch("hlaunch --nnodes 2 true"))),
                         "launcher/manual: says nothing of --mentioned")

    def test_docs_catches_an_exit_code_that_is_not_told(self):
        page = "launcher/manual/exit-codes.md"
        self.assert_only(self.check(check_docs, files={page: CLEAN[page].replace("193", "x")}),
                         "exit code 193 is missing")
        self.assert_only(self.check(check_docs, files={page: CLEAN[page] + "| 194 | ? |\n"}),
                         "exit code 194 does not exist")

    def test_docs_catches_a_dead_anchor(self):
        readme, page = CLEAN["README.md"], "launcher/manual/exit-codes.md"
        for link in ("launcher/manual/exit-codes.md#no-heading", "#no-heading"):
            self.assert_only(self.check(check_docs, files={"README.md": readme + f"[x]({link})\n"}),
                             "#no-heading", "no such heading")
        self.assertEqual(self.check(check_docs, files={
            page: CLEAN[page] + "\n## A, b: [c](exit-codes.md)\n\n## Its codes\n\n"
                                "[x](#a-b-c) [y](#its-codes-1)\n"}), [])

    def test_docs_catches_a_page_that_leads_out_of_the_manual(self):
        page = "launcher/manual/exit-codes.md"
        self.assert_only(self.check(check_docs, files={
            page: CLEAN[page] + "[x](../../proto/base/a.h)\n"}), "not installed beside")
        self.assert_only(self.check(check_docs, files={page: CLEAN[page] + "`deploy/gone`\n"}),
                         "names deploy/gone")

    def test_docs_catches_what_is_too_long(self):
        page = "launcher/manual/exit-codes.md"
        for name, lines in ("README.md", 200), (page, 150):
            rest = lines - len(CLEAN[name].splitlines())
            self.assertEqual(self.check(check_docs, files={name: CLEAN[name] + "\n" * rest}), [])
            self.assert_only(self.check(check_docs, files={
                name: CLEAN[name] + "\n" * (rest + 1)}), name, f"at most {lines}")
        readme = CLEAN["README.md"] + "[o](launcher/manual/options.md)\n"
        self.assertEqual(self.check(check_docs, files={
            "README.md": readme, "launcher/manual/options.md": "# Options\n" * 300}), [])

    def test_docs_catches_a_page_that_the_readme_does_not_name(self):
        self.assert_only(self.check(check_docs, files={"launcher/manual/new.md": "# New\n"}),
                         "does not name the page launcher/manual/new.md")

    def test_docs_catches_a_page_of_options_that_is_out_of_date(self):
        def with_page(text):
            return self.check(check_docs, files={
                "README.md": CLEAN["README.md"] + "[o](launcher/manual/options.md)\n",
                "launcher/manual/options.md": text,
                "build/launcher/hlaunch_man": "#!/bin/sh\necho \"# made of $1\"\n"})
        self.assertEqual(with_page("# made of options.md\n"), [])
        self.assert_only(with_page("# old\n"), "options.md: is not what the program's table says",
                         "hlaunch_man options.md > launcher/manual/options.md")

    def test_docs_catches_an_own_exit_code_that_is_not_in_the_list_of_all(self):
        header, page = "proto/contract/exit_code.h", "launcher/manual/exit-codes.md"
        self.assert_only(self.check(check_docs, files={
            header: CLEAN[header] + "inline constexpr int kExitNew =\n    194;  // new\n",
            page: CLEAN[page] + "| 194 | new |\n"}), "should be kExitInternal, kExitNew")

    def test_docs_catches_an_exit_code_of_an_old_release_wherever_it_is_named(self):
        page = "launcher/manual/exit-codes.md"
        for name, text in (("proto/DESIGN.md", "the exit code is 1, it ends with 203\n"),
                           ("README.md", CLEAN["README.md"] + "see exit code 203\n"),
                           (page, CLEAN[page] + "| `refused` (203) | wait |\n"),
                           ("deploy/a.service", "RestartPreventExitStatus=2 126 203\n"),
                           ("deploy/a.yaml", "onExitCodes: {values: [2, 203]}\n"),
                           ("deploy/a.sbatch", "# hlaunch exits with 203\n")):
            with self.subTest(name):
                self.assert_only(self.check(check_docs, files={name: text}), name,
                                 "exit code 203, which does not exist")
                right = self.check(check_docs, files={name: text.replace("203", "193")})
                self.assertEqual(right, [])

    def test_docs_catches_a_range_of_exit_codes_that_is_none(self):
        for said in "193 to 194", "200 to 209":
            found = self.check(check_docs, files={"proto/DESIGN.md": f"codes {said}\n"})
            self.assert_only(found, f"{said} is no range of exit codes")
        header, page = "proto/contract/exit_code.h", "launcher/manual/exit-codes.md"
        two = {header: CLEAN[header].replace("{kExitInternal}", "{kExitInternal, kExitNew}")
               .replace("= 193;\n", "= 193;\ninline constexpr int kExitNew = 194;\n"),
               page: CLEAN[page] + "| 194 | new |\n"}
        self.assertEqual(self.check(check_docs, files={**two, "proto/DESIGN.md": "193 to 194\n"}),
                         [])

    def test_docs_catches_a_service_that_is_not_told(self):
        found = self.check(check_docs, files={"proto/v1/a.proto": SPDX + "service Store {\n}\n",
                                              "proto/DESIGN.md": "one service, `Rendezvous`\n"})
        self.assert_only(found, "the service Store")

    def test_evidence_catches_a_judgement_by_prose(self):
        for judges in ('absl::StartsWith(failure.evidence, "stalled: ")',
                       'absl::StrContains(first->evidence(), kWaits)',
                       'places.front().did == "exited"', "first.evidence.find(kBefore)"):
            found = self.check(check_evidence, files={"rendezvous/c.cc": f"{SPDX}bool x = {judges};\n"})
            self.assert_only(found, "rendezvous/c.cc:3")

    def test_names_catches_a_type_that_two_files_define(self):
        of = lambda inside: SPDX + f"namespace hlaunch {{\n{inside}struct Frame {{\n}};\n"
        one, other = "proto/base/c.h", "rendezvous/d.cc"
        self.assert_only(self.check(check_names, files={one: of(""), other: of("")}),
                         "hlaunch::Frame", one, other)
        self.assertEqual(self.check(check_names, files={one: of(""), other: of("namespace {\n")}), [])

    def test_symbols_catches_a_function_that_two_libraries_define(self):
        with tempfile.TemporaryDirectory() as folder:
            libraries = []
            for name, text in {"a": "int Peer(int) { return 1; } inline int Sum() { return 2; }",
                               "b": "int Peer(int) { return 3; } static int Sum() { return 4; }",
                               "c": "int Peer(long) { return 5; }"}.items():
                libraries.append(f"{folder}/lib{name}.a")
                subprocess.run(["c++", "-c", "-x", "c++", "-", "-o", f"{folder}/{name}.o"], input=text,
                               text=True, check=True, timeout=100)
                subprocess.run(["ar", "rc", libraries[-1], f"{folder}/{name}.o"], check=True, timeout=100)
            self.assert_only(check_symbols.problems(libraries), "Peer(int)", "liba.a", "libb.a")

    def test_tests_catches_a_class_that_nothing_runs(self):
        name = "tests/end_to_end/a_test.py"
        found = self.check(check_tests, files={name: CLEAN[name] + "\n\nclass B(Base):\n    count = 3\n"})
        self.assert_only(found, name, "no test runs B")
        self.assert_only(self.check(check_tests, files={name.replace("a_", "b_"): CLEAN[name].replace(
            "class A(Base):\n    count = 2\n", "")}), "b_test.py: no test runs Base")

    def test_count_says_that_a_word_is_no_commit(self):
        count = pathlib.Path(__file__).with_name("count.py")
        for word in "", "no-such-commit":
            done = subprocess.run([sys.executable, count, word], capture_output=True, text=True,
                                  check=False, timeout=100)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, f"^'{word}' is no commit here")


if __name__ == "__main__":
    unittest.main()
