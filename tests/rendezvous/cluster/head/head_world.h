// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/base/release.h"
#include "rendezvous/cluster/head/answer_user.h"
#include "rendezvous/cluster/head/head_record.h"
#include "rendezvous/cluster/head/head_table.h"
#include "rendezvous/cluster/head/job_words.h"

namespace hlaunch {

inline const ClusterUser kAlice = {"alice", 1001, false, false};
inline const ClusterUser kBob = {"bob", 1002, false, false};
inline const ClusterUser kRoot = {"root", 0, true, true};

inline HostFacts FactsOf(int devices, const std::string& boot_id = "boot1") {
  HostFacts facts;
  facts.version = kRelease;
  facts.boot_id = boot_id;
  facts.slots = 4;
  for (int id = 0; id < devices; ++id) facts.devices.push_back({id, "hpu", ""});
  return facts;
}

inline JobRequest RequestOf(int nodes, int workers = 8) {
  JobRequest request;
  request.name = "train.py";
  request.min_nodes = request.max_nodes = nodes;
  request.workers = workers;
  request.script = {"train.py"};
  request.environment = {"SECRET=x"};
  request.directory = "/home";
  return request;
}

// A head with its surroundings: the time, its records, the messages of hosts. One thread.
class HeadWorld {
 public:
  HeadWorld() { Restart(); }

  // The head ends, and another one goes on from the written record.
  void Restart() {
    if (table) Write();
    HeadRecord record = ReadHosts(kept_hosts).value();
    for (const auto& [number, job] : kept_jobs) record.jobs.push_back(ReadHeadJob(job).value());
    HeadTable::Options made;
    made.limits = limits;
    made.settle = std::chrono::seconds(10);
    made.make_token = [this] { return "token" + std::to_string(++tokens_); };
    table = std::make_unique<HeadTable>(std::move(made), std::move(record), t());
  }

  HeadTime t() const { return {now, wall_ms}; }
  void Pass(Duration time) {
    now += time;
    wall_ms += std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
    table->Tick(t());
    Place();
  }

  // Runs the turns of the loop that follow an event.
  void Place() {
    while (table->PlaceSome(t())) ++turns;
  }

  void Come(const std::string& host, HostFacts facts, const std::vector<PartTold>& parts = {}) {
    ASSERT_TRUE(table->Came(host, t()).ok());
    table->TakeFacts(host, std::move(facts));
    for (const PartTold& part : parts) table->TakePart(host, part, t());
    table->TakeAllTold(host, t());
    Place();
  }

  void Tell(const std::string& host, uint64_t job, PartState state, const std::string& meeting = "",
            std::optional<int> exit_code = std::nullopt) {
    PartTold told;
    told.job = job;
    told.state = state;
    told.meeting = meeting;
    told.exit_code = exit_code;
    table->TakePart(host, told, t());
    Place();
  }

  uint64_t Submit(const JobRequest& request, const ClusterUser& user = kAlice) {
    const uint64_t job = table->Submit(user, request, t()).value();
    Place();
    return job;
  }
  void Drain(const std::string& host, const std::string& reason, int evict_s = -1) {
    ASSERT_TRUE(table->Drain(host, reason, evict_s, t()).ok());
    Place();
  }

  // The orders since the last call: "node1 start 7", "node1 signal 7 15".
  std::vector<std::string> Orders() {
    Place();
    Write();
    std::vector<std::string> words;
    for (const HeadOrder& order : table->TakeOrders()) {
      const nlohmann::json body = BodyOf(order);
      std::string text =
          order.host + " " + VerbOf(order) + " " + std::to_string(body["job"].get<int>());
      if (body.contains("signal")) text += " " + std::to_string(body["signal"].get<int>());
      words.push_back(std::move(text));
    }
    return words;
  }

  JobView View(uint64_t job) const {
    return ViewOf(*table->jobs().Find(job), table->jobs(), table->hosts(), true);
  }
  ClusterJobState State(uint64_t job) const { return table->jobs().Find(job)->state; }
  std::string Why(uint64_t job) const { return View(job).why; }

  void Write() {
    WriteSome([] { return true; });
  }

  // Does what WriteChanges does. The power may fail before all of it is on the disk: `is_written`
  // says for each file whether it was written. Forgotten jobs are removed last and may come back.
  void WriteSome(const std::function<bool()>& is_written) {
    const HeadChanges changes = table->TakeChanges();
    bool all = true;
    const auto written = [&] {
      const bool is = is_written();
      all &= is;
      return is;
    };
    for (const uint64_t number : changes.jobs) {
      if (written()) kept_jobs[number] = JobToJson(*table->jobs().Find(number));
    }
    if (changes.hosts && written()) {
      kept_hosts = HostsToJson(table->jobs().last_number(), table->hosts().all());
    }
    for (const uint64_t number : changes.forgotten) {
      if (all && is_written()) kept_jobs.erase(number);
    }
  }

  OwnLimits limits;
  Instant now = Instant() + std::chrono::hours(1);
  int64_t wall_ms = 1'800'000'000'000;
  nlohmann::json kept_hosts = nlohmann::json::object();
  std::map<uint64_t, nlohmann::json> kept_jobs;
  std::unique_ptr<HeadTable> table;
  int turns = 0;  // Turns that left jobs to place.

 private:
  int tokens_ = 0;
};

}  // namespace hlaunch
