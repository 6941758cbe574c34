// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/man_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using testing::EndsWith;

TEST(ManPage, MakesSectionsOfHelp) {
  EXPECT_THAT(ManPage("x-y", "do it",
                      "usage: x [options]\n"
                      "       x --all\n"
                      "\n"
                      "Does it,\n"
                      "and well.\n"
                      "\n"
                      ".hidden files too.\n"
                      "\n"
                      "Places:\n"
                      "  -o, --out FILE    where to:\n"
                      "                    in words:\n"
                      "                    this one\n"
                      "      --a-very-long-one TEXT\n"
                      "                    what \\ is\n"
                      "\n"
                      "Remember.\n"
                      "\n"
                      "Examples:\n"
                      "  x -o a\n"
                      "  x --all\n"
                      "\n"
                      "Exit code: 0\n"),
              EndsWith(".SH NAME\nx\\-y \\- do it\n"
                       ".SH SYNOPSIS\n.B x [options]\n.br\n.B x \\-\\-all\n.br\n"
                       ".SH DESCRIPTION\nDoes it,\nand well.\n.PP\n\\&.hidden files too.\n"
                       ".SH OPTIONS\n.SS Places\n"
                       ".TP\n.B \\-o, \\-\\-out FILE\nwhere to:\nin words:\nthis one\n"
                       ".TP\n.B \\-\\-a\\-very\\-long\\-one TEXT\nwhat \\(rs is\n"
                       ".SH NOTES\nRemember.\n"
                       ".SH EXAMPLES\n.nf\n  x \\-o a\n  x \\-\\-all\n.fi\n"
                       ".SH EXIT STATUS\n0\n"));
}

// An empty line ends a table. The text after it is a note only if it is not another table.
TEST(ManPage, KeepsTheHelpOfEachTablesFirstOptionWithIt) {
  EXPECT_THAT(ManPage("x", "do it",
                      "usage: x\n"
                      "\n"
                      "Places:\n"
                      "  -o, --out FILE    where to\n"
                      "\n"
                      "Times:\n"
                      "      --a-very-long-one TEXT\n"
                      "                    what it is\n"
                      "  -t, --time S      how long,\n"
                      "                    in words\n"),
              EndsWith(".SS Places\n"
                       ".TP\n.B \\-o, \\-\\-out FILE\nwhere to\n"
                       ".SS Times\n"
                       ".TP\n.B \\-\\-a\\-very\\-long\\-one TEXT\nwhat it is\n"
                       ".TP\n.B \\-t, \\-\\-time S\nhow long,\nin words\n"));
}

TEST(ManPage, HasSettingsOfAFileAsOptions) {
  EXPECT_THAT(ManPage("x", "do it",
                      "usage: x\n"
                      "\n"
                      "Does it.\n"
                      "\n"
                      "Settings:\n"
                      "      labels = A,B             words\n"
                      "                               for hosts\n"
                      "\n"
                      "Remember.\n"),
              EndsWith(".SS Settings\n"
                       ".TP\n.B labels = A,B\nwords\nfor hosts\n"
                       ".SH NOTES\nRemember.\n"));
}

}  // namespace
}  // namespace hlaunch
