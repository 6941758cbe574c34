// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/find_host.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/base/address.h"
#include "proto/base/log.h"
#include "proto/base/static_program.h"
#include "rendezvous/net/resolver/ask_in_time.h"
#include "rendezvous/net/socket/run_getent.h"

// A function of glibc for the whole process; no installed header declares it.
extern "C" int __nss_configure_lookup(const char* database, const char* services);

namespace hlaunch {
namespace {

constexpr Duration kGetentPatience = std::chrono::seconds(5);

std::atomic<bool> own_services{false};  // One for the process, like glibc's setting.

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

void AddOnce(std::string literal, std::vector<std::string>* literals) {
  if (std::find(literals->begin(), literals->end(), literal) == literals->end()) {
    literals->push_back(std::move(literal));
  }
}

FoundHost AskResolver(const std::string& host, int family) {
  static std::once_flag chosen;
  std::call_once(chosen, ChooseNameServices);
  addrinfo hints = {};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  FoundHost answer;
  answer.error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (answer.error != 0) {
    answer.why = answer.error == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(answer.error);
    return answer;
  }
  const AddressList list(found, &::freeaddrinfo);
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    char text[NI_MAXHOST] = {};
    ::getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
    AddOnce(text, &answer.literals);
  }
  return answer;
}

std::string ReadNsswitch() {
  std::ifstream file("/etc/nsswitch.conf");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// "hosts: files mdns4_minimal [NOTFOUND=return] dns" → files, mdns4_minimal, dns.
std::vector<absl::string_view> ServicesForHosts(absl::string_view nsswitch) {
  for (const absl::string_view line : absl::StrSplit(nsswitch, '\n')) {
    std::vector<absl::string_view> words =
        absl::StrSplit(line.substr(0, line.find('#')), absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.empty() || words[0] != "hosts:") continue;
    bool within = false;  // An action may be several words: "[!UNAVAIL = return]".
    std::vector<absl::string_view> services;
    for (size_t i = 1; i < words.size(); ++i) {
      within = within || absl::StartsWith(words[i], "[");
      if (!within) services.push_back(words[i]);
      within = within && !absl::EndsWith(words[i], "]");
    }
    return services;
  }
  return {};
}

bool IsOwn(absl::string_view service) { return service == "files" || service == "dns"; }

// Completes `answer` with what the machine's own resolver says.
void AskGetent(const std::string& host, FoundHost* answer) {
  answer->literals = AddressesInGetent(RunGetent(host, kGetentPatience));
  if (answer->literals.empty()) {
    absl::StrAppend(&answer->why, " (nor does getent know it)");
    return;
  }
  LogInfo(absl::StrCat("neither /etc/hosts nor the name server knows '", host, "'; getent says ",
                       absl::StrJoin(answer->literals, ", ")));
  answer->error = 0;
  answer->why.clear();
}

// A text that is not a name could be an option of getent.
bool MayBeName(absl::string_view host) { return !host.empty() && !absl::StartsWith(host, "-"); }

}  // namespace

FoundHost FindHost(const std::string& host) {
  FoundHost answer = IsAddressLiteral(host) ? AskResolver(host, AF_UNSPEC)
                                            : AskInTime(host, AskResolver, ResolverPatience());
  if (answer.error != 0 && own_services && MayBeName(host) && NamesOtherServices(ReadNsswitch())) {
    AskGetent(host, &answer);
  }
  return answer;
}

void ChooseNameServices() {
  if (!IsStaticProgram()) return;
  ::__nss_configure_lookup("hosts", OwnNameServices(ReadNsswitch()).c_str());
  ::__nss_configure_lookup("services", "files");
  own_services = true;
}

std::string OwnNameServices(absl::string_view nsswitch) {
  std::vector<absl::string_view> services = ServicesForHosts(nsswitch);
  services.erase(std::remove_if(services.begin(), services.end(),
                                [](absl::string_view service) { return !IsOwn(service); }),
                 services.end());
  return services.empty() ? "files dns" : absl::StrJoin(services, " ");
}

bool NamesOtherServices(absl::string_view nsswitch) {
  const std::vector<absl::string_view> services = ServicesForHosts(nsswitch);
  return !std::all_of(services.begin(), services.end(), IsOwn);
}

std::vector<std::string> AddressesInGetent(absl::string_view output) {
  std::vector<std::string> literals;
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    const absl::string_view word = line.substr(0, line.find_first_of(" \t"));
    if (IsAddressLiteral(word)) AddOnce(std::string(word), &literals);
  }
  return literals;
}

}  // namespace hlaunch
