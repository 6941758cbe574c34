// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/make_token.h"

#include <sys/stat.h>

#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/help_text.h"
#include "launcher/cli/options/read_words.h"
#include "launcher/command/print_text.h"
#include "launcher/job/spec/token.h"
#include "launcher/text/environment.h"
#include "launcher/text/printable.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/base/user_files.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/net/trust/token_text.h"

namespace hlaunch {
namespace {

constexpr char kCommand[] = "hlaunch token";
constexpr mode_t kOnlyMine = S_IRUSR | S_IWUSR;

std::string HelpText() {
  return absl::StrCat(
      "usage: hlaunch token [--file FILE] [--new]\n"
      "       hlaunch token --print\n"
      "       hlaunch token --for-job ID [--token-file FILE]\n"
      "       hlaunch token --for-page [--token-file FILE]\n\n"
      "Makes the secret that the nodes of your jobs share, and keeps it where hlaunch finds it by\n"
      "itself: ~/.config/hlaunch/token. From then on your jobs of several nodes are encrypted, "
      "and\n"
      "nobody without the token can join or end them. An existing token is kept.\n\n",
      DescribeOptions(TokenOptionRows()),
      "\nHosts that do not share your home directory need a copy of the file.\n"
      "A token for one job is made from that of a service (hlaunch-rendezvous): whoever has it\n"
      "can join and see the job of that id, and no other of the service.\n"
      "A status page asks for a password where there is a token: it is made from that, and good\n"
      "for reading pages alone.\n"
      "\nExamples:\n"
      "  hlaunch token\n"
      "  hlaunch token --for-job ann-7 > ann-7.token\n"
      "  hlaunch token --print | kubectl create secret generic hlaunch "
      "--from-file=token=/dev/stdin\n"
      "\nExit code: 0; 2 wrong usage, or the file cannot be written.\n");
}

int Fail(const absl::Status& status) {
  LogError(status.message());
  return kExitUsage;
}

}  // namespace

absl::StatusOr<TokenOptions> ParseTokenOptions(int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + 2, argv + argc);
  HLAUNCH_ASSIGN_OR_RETURN(const TypedWords read,
                           ReadWords(kCommand, TokenOptionRows(), words, OptionPlace::kAnywhere));
  TokenOptions options;
  if (read.Has("--help")) {
    options.text_to_print = HelpText();
    return options;
  }
  if (!read.rest.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("hlaunch token takes no word like ", PrintableLine(read.rest[0]),
                     "; to start a script of that name, write hlaunch ./token"));
  }
  options.file = read.Get("--file", "");
  options.renew = read.Has("--new");
  options.print = read.Has("--print");
  options.job_id = read.Get("--for-job", "");
  options.token_file = read.Get("--token-file", "");
  if (read.Has("--for-job") && options.job_id.empty()) {
    return absl::InvalidArgumentError("--for-job: the id of the job is missing");
  }
  options.for_page = read.Has("--for-page");
  if (!options.derives() && !options.token_file.empty()) {
    return absl::InvalidArgumentError(
        "--token-file names what --for-job ID and --for-page are made from");
  }
  if (options.for_page &&
      (!options.job_id.empty() || options.print || options.renew || !options.file.empty())) {
    return absl::InvalidArgumentError(
        "hlaunch token --for-page prints a password and keeps no file; only --token-file goes "
        "with it");
  }
  if (!options.job_id.empty() && (options.print || options.renew || !options.file.empty())) {
    return absl::InvalidArgumentError(
        "hlaunch token --for-job prints a token and keeps no file; only --token-file goes with it");
  }
  if (options.print && (options.renew || !options.file.empty())) {
    return absl::InvalidArgumentError("hlaunch token --print keeps no file; give it alone");
  }
  return options;
}

absl::Status WriteTokenFile(const std::string& path, const std::string& token, bool replace) {
  struct stat there = {};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is no plain file, and would not keep the token; --print prints one"));
  }
  HLAUNCH_RETURN_IF_ERROR(MakeFolders(std::filesystem::path(path).parent_path()));
  const absl::Status status =
      WriteWholeFile(path, absl::StrCat(token, "\n"), {kOnlyMine, replace, /*sync=*/true});
  if (status.ok() || absl::IsAlreadyExists(status)) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("cannot write the token file ", path, ": ", status.message()));
}

int MakeToken(int argc, char** argv) {
  const absl::StatusOr<TokenOptions> options = ParseTokenOptions(argc, argv);
  if (!options.ok()) return Fail(options.status());
  if (options->text_to_print) return PrintText(*options->text_to_print);
  if (options->print) return PrintText(absl::StrCat(NewTokenText(), "\n"));
  const std::string own = OwnTokenFile(Environment::OfThisProcess());
  const std::string path = options->file.empty() ? own : options->file;
  if (path.empty()) {
    return Fail(absl::InvalidArgumentError("HOME is not set here; name a file with --file"));
  }
  const absl::Status written = WriteTokenFile(path, NewTokenText(), options->renew);
  if (absl::IsAlreadyExists(written)) {
    return PrintText(absl::StrCat(path, " holds a token already; --new replaces it\n"));
  }
  if (!written.ok()) return Fail(written);
  return PrintText(
      absl::StrCat("wrote a token to ", path, "\n",
                   path == own ? "hlaunch finds it there by itself, in all jobs of several nodes.\n"
                               : absl::StrCat("Give it to all nodes: --token-file ", path, "\n"),
                   "Hosts that do not share this folder need a copy of the file.\n"));
}

}  // namespace hlaunch
