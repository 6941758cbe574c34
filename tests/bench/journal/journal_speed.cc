// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Measures what it costs to keep jobs: journal_speed DIRECTORY, on the file system to be measured.

#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "rendezvous/job/job_registry.h"
#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/rpc/journal.h"
#include "rendezvous/rpc/journal_format.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

double Millis(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

class Deaf final : public JobRendezvous::Session {
 public:
  void OnDirective(const Directive&) override {}
  void OnEnd(const absl::Status&) override {}
};

JobRecord RunningRecord(int members) {
  JobRecord record;
  record.job_id = "job";
  record.policy = Policy(members, members);
  record.state = JobState::kRunning;
  record.round = 1;
  record.round_nodes = members;
  record.master_addr = "10.0.0.1";
  for (int i = 0; i < members; ++i) {
    MemberRecord member;
    member.info = Node(i, members, members);
    member.told = 1;
    member.node_rank = i;
    record.members.push_back(member);
    record.held_ranks.emplace(member.info.node_id, i);
  }
  return record;
}

// Replaces the record that was kept last for the job.
absl::Status Keep(Journal& journal, const JobRecord& record) {
  static std::map<std::string, RecordVersion> versions;
  RecordVersion& version = versions[record.job_id];
  const auto kept = journal.Keep(record, version);
  if (kept.ok()) version = *kept;
  return kept.status();
}

void PrintCommits(Journal& journal) {
  std::printf("members  bytes    encode ms  keep ms: median  fastest  slowest\n");
  for (const int members : {2, 64, 512, 4000}) {
    const JobRecord record = RunningRecord(members);
    std::vector<double> encode, keep;
    for (int i = 0; i < 51; ++i) {
      const Instant begin = MonotonicClock().Now();
      const size_t bytes = EncodeRecord(record).size();
      const Instant encoded = MonotonicClock().Now();
      HLAUNCH_CHECK(bytes > 0 && Keep(journal, record).ok());
      encode.push_back(Millis(encoded - begin));
      keep.push_back(Millis(MonotonicClock().Now() - encoded));
    }
    std::sort(encode.begin(), encode.end());
    std::sort(keep.begin(), keep.end());
    std::printf("%-8d %-8zu %-10.3f %-16.3f %-8.3f %-8.3f\n", members, EncodeRecord(record).size(),
                encode[encode.size() / 2], keep[keep.size() / 2], keep.front(), keep.back());
  }
}

// A job of two nodes that restarts forever: a worker fails, both nodes stop, both run.
void PrintRounds(const char* name, const std::function<absl::Status(const JobRecord&)>& commit) {
  JobRules rules;
  rules.job_id = "job";
  rules.policy = Policy(2, 2, 1 << 30);
  rules.commit = commit;
  JobRendezvous job(std::move(rules), MonotonicClock());
  for (int i = 0; i < 2; ++i) {
    HLAUNCH_CHECK(
        job.Attach(Node(i, 2, 2), Says(0, NodePhase::kReady), i == 0, std::make_shared<Deaf>())
            .ok());
  }
  const Instant begin = MonotonicClock().Now();
  Round round = 1;
  while (MonotonicClock().Now() - begin < std::chrono::seconds(2)) {
    HLAUNCH_CHECK(job.Update("id0", 1, Failed(round, Failure(0, 7))).ok());
    HLAUNCH_CHECK(job.Update("id0", 1, Says(round, NodePhase::kReady)).ok());
    HLAUNCH_CHECK(job.Update("id1", 2, Says(round, NodePhase::kReady)).ok());
    ++round;
  }
  const double seconds = Millis(MonotonicClock().Now() - begin) / 1000;
  std::printf("rounds of a job of two nodes, %s: %.0f a second\n", name,
              static_cast<double>(round) / seconds);
}

std::string Self(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (absl::StartsWith(line, name)) return line.substr(name.size() + 1);
  }
  return "?";
}

void PrintManyJobs(Journal& journal) {
  std::printf("resident %s, threads %s\n", Self("VmRSS:").c_str(), Self("Threads:").c_str());
  JobRegistry::Options options;
  options.keeper = &journal;
  JobRegistry registry(std::move(options), MonotonicClock());
  const Instant begin = MonotonicClock().Now();
  for (int i = 0; i < 1000; ++i) {
    for (int n = 0; n < 2; ++n) {
      NodeInfo info = Node(n, 2, 2);
      info.job_id = absl::StrCat("job", i);
      const NodeUpdate update = Says(0, NodePhase::kReady);
      HLAUNCH_CHECK((*registry.Open(info, update))
                        ->Attach(info, update, false, std::make_shared<Deaf>())
                        .ok());
    }
  }
  std::printf("1000 jobs of two nodes began in %.0f ms; resident %s, threads %s\n",
              Millis(MonotonicClock().Now() - begin), Self("VmRSS:").c_str(),
              Self("Threads:").c_str());
  const Instant tidy = MonotonicClock().Now();
  registry.Tidy();
  std::printf("Tidy of 1000 jobs: %.3f ms\n", Millis(MonotonicClock().Now() - tidy));
}

}  // namespace
}  // namespace hlaunch

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: journal_speed DIRECTORY\n"), 2;
  const auto journal = hlaunch::Journal::Open({argv[1], {}});
  if (!journal.ok()) return std::fprintf(stderr, "%s\n", journal.status().ToString().c_str()), 1;
  hlaunch::PrintCommits(**journal);
  hlaunch::PrintRounds(
      "kept", [&](const hlaunch::JobRecord& record) { return hlaunch::Keep(**journal, record); });
  hlaunch::PrintRounds("not kept", nullptr);
  hlaunch::PrintManyJobs(**journal);
  return 0;
}
