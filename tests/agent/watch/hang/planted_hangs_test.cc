// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Hangs that are planted in programs of several ranks, for each recorder: the rank to blame is
// named, and no other. Programs that go on, however slowly, are not suspected.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rendezvous/round/hang/attribute_hang.h"
#include "rendezvous/round/hang/describe_hang.h"
#include "rendezvous/round/hang/judge_hang.h"
#include "tests/agent/watch/hang/played_job.h"

namespace hlaunch {
namespace {

using ::testing::HasSubstr;

// What is planted. A value.
struct Plant {
  std::string name;
  HangKind kind = HangKind::kBehind;
  std::vector<Rank> blamed;
  std::string says;  // A part of what people are told.
  std::function<void(PlayedJob&)> play;
  bool devices_only = false;  // It cannot be seen where a call is over when it returns.
  bool seen_only = false;     // Only ranks that are seen to wait show who does not.
};

// Three calls of all, then what is odd, then calls in which the others run ahead.
void PlayOdd(PlayedJob& job, Rank size, Rank odd, const std::vector<Step>& steps,
             const std::vector<Step>& of_others = {}) {
  for (int i = 0; i < 3; ++i) job.Everybody(Call());
  for (Rank rank = 0; rank < size; ++rank) {
    const std::vector<Step>& here = rank == odd ? steps : of_others;
    job.of(rank).insert(job.of(rank).end(), here.begin(), here.end());
  }
  for (int i = 0; i < 6; ++i) job.Everybody(Call());
}

// The ranks of one half of the job.
std::vector<Rank> Half(Rank size, bool second) {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < size; ++rank) {
    if ((rank >= size / 2) == second) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<Plant> PlantsOf(Rank size, Rank odd) {
  const Rank next = (odd + 1) % size, other = (odd + 2) % size;
  const bool second = odd >= size / 2;
  const auto halves = [size](PlayedJob& job) {
    job.AddGroup("1", Half(size, false));
    job.AddGroup("2", Half(size, true));
  };
  const std::string own = second ? "2" : "1";
  std::vector<Rank> both = {std::min(odd, next), std::max(odd, next)};
  return {
      {"asleep",
       HangKind::kBehind,
       {odd},
       "has not come to it: it stands in load",
       [=](PlayedJob& job) { PlayOdd(job, size, odd, {Sleep()}); }},
      {"asleep before a barrier",
       HangKind::kBehind,
       {odd},
       "are in barrier number 4",
       [=](PlayedJob& job) { PlayOdd(job, size, odd, {Sleep()}, {Call("0", "barrier")}); }},
      {"exited",
       HangKind::kBehind,
       {odd},
       "it has exited with 0",
       [=](PlayedJob& job) { PlayOdd(job, size, odd, {Exit()}); }},
      {"two asleep", HangKind::kBehind, both, "it stands in load",
       [=](PlayedJob& job) {
         job.Everybody(Call());
         job.of(odd).push_back(Sleep());
         job.of(next).push_back(Sleep());
         job.Everybody(Call());
       }},
      {"one died, one asleep",
       HangKind::kBehind,
       {odd, next},
       "it has died\n",
       [=](PlayedJob& job) {
         job.Everybody(Call());
         job.of(odd).push_back(Die());
         job.of(next).push_back(Sleep());
         job.Everybody(Call());
       }},
      {"another operation",
       HangKind::kMismatch,
       {odd},
       "differs from most",
       [=](PlayedJob& job) { PlayOdd(job, size, odd, {Call("0", "all_gather")}, {Call()}); }},
      {"another size",
       HangKind::kMismatch,
       {odd},
       "[8] float32",
       [=](PlayedJob& job) { PlayOdd(job, size, odd, {Call("0", "all_reduce", 8)}, {Call()}); }},
      {"a call is left out",
       HangKind::kMismatch,
       {odd},
       "differs from most",
       [=](PlayedJob& job) { PlayOdd(job, size, odd, {}, {Call("0", "all_reduce", 64)}); }},
      {"asleep in its half",
       HangKind::kBehind,
       {odd},
       "stands in load",
       [=](PlayedJob& job) {
         halves(job);
         for (int i = 0; i < 4; ++i) {
           for (Rank rank = 0; rank < size; ++rank) {
             if (rank == odd && i == 2) job.of(rank).push_back(Sleep());
             job.of(rank).push_back(Call(rank >= size / 2 ? "2" : "1"));
           }
           job.Everybody(Call());
         }
       }},
      {"groups in different orders",
       HangKind::kCrossed,
       {},
       "in different orders",
       [=](PlayedJob& job) {
         job.AddGroup("1", Half(size, false));
         job.AddGroup("2", Half(size, false));
         job.Everybody(Call());
         for (const Rank rank : Half(size, false)) {
           const bool crosses = rank == 0;
           job.of(rank).push_back(Call(crosses ? "1" : "2"));
           job.of(rank).push_back(Synchronize());
           job.of(rank).push_back(Call(crosses ? "2" : "1"));
         }
       }},
      {"all are in a call that does not end",
       HangKind::kAllInside,
       {},
       "look at the network",
       [=](PlayedJob& job) {
         // Each rank has called it on another size that may differ.
         for (Rank rank = 0; rank < size; ++rank) {
           job.of(rank) = {Call(), Call("0", "all_to_all", rank + 1)};
         }
       }},
      {"a device does not end a call",
       HangKind::kDevice,
       {odd},
       "has ended on",
       [=](PlayedJob& job) {
         for (int i = 0; i < 12; ++i) job.Everybody(Call());  // More than a snapshot has.
         job.BreakDevice(odd, 4);
       },
       true},
      {"does not send",
       HangKind::kBehind,
       {odd},
       absl::StrCat("recv from rank ", odd),
       [=](PlayedJob& job) {
         job.Everybody(Call());
         job.of(odd).push_back(Sleep());
         job.of(odd).push_back(Send(next));
         job.of(next).push_back(Receive(odd));
       },
       true},
      {"does not receive",
       HangKind::kBehind,
       {odd},
       absl::StrCat("send to rank ", odd),
       [=](PlayedJob& job) {
         job.Everybody(Call());
         job.of(odd).push_back(Sleep());
         job.of(next).push_back(Send(odd));
       },
       true},
      {"a pipeline whose first does not send",
       HangKind::kBehind,
       {odd},
       "stands in load",
       [=](PlayedJob& job) {
         job.Everybody(Call());
         for (Rank i = 0; i < size; ++i) {
           const Rank rank = (odd + i) % size;
           if (i == 0) job.of(rank).push_back(Sleep());
           if (i > 0) job.of(rank).push_back(Receive((rank + size - 1) % size));
           if (i + 1 < size) job.of(rank).push_back(Send((rank + 1) % size));
         }
       },
       true},
      {"an exchange to which one does not come",
       HangKind::kBehind,
       {odd},
       "in send or recv",
       [=](PlayedJob& job) {
         job.Everybody(Exchange());
         job.of(odd).push_back(Sleep());
         job.Everybody(Exchange());
       },
       true},
      {"a block of collectives",
       HangKind::kBehind,
       {odd},
       "has not come to it",
       [=](PlayedJob& job) {
         job.Everybody(Block());
         job.Everybody(Call());
         job.of(odd).push_back(Sleep());
         job.Everybody(Block());
         job.Everybody(Call());
       }},
      {"sent to the wrong rank",
       HangKind::kPeers,
       {},
       absl::StrCat("rank ", next,
                    ": in recv from "
                    "rank ",
                    odd,
                    ", which is in "
                    "send to rank ",
                    other),
       [=](PlayedJob& job) {
         job.Everybody(Call());
         job.of(odd).push_back(Send(other));
         job.of(next).push_back(Receive(odd));
         job.of(other).push_back(Receive(next));
       },
       true},
      {"gave its device a call and is elsewhere",
       HangKind::kBehind,
       {odd},
       "stands in load",
       [=](PlayedJob& job) {
         halves(job);
         job.Everybody(Call());
         job.of(odd).push_back(Call(own));
         job.of(odd).push_back(Sleep());
         job.Everybody(Call());
       },
       true,
       true},
  };
}

// Returns what is wrong with what is said of a plant; empty if all is right.
std::string Complaint(const Plant& plant, const std::vector<RankSnapshot>& ranks) {
  const std::vector<HangVerdict> verdicts = AttributeHangs(ranks, /*whole=*/true);
  if (verdicts.size() != 1) return absl::StrCat(verdicts.size(), " verdicts");
  const HangVerdict& verdict = verdicts[0];
  const std::string told = DescribeHang(verdict, ranks, std::chrono::seconds(60));
  if (verdict.kind == plant.kind && verdict.culprits == plant.blamed &&
      told.find(plant.says) != told.npos) {
    return "";
  }
  return absl::StrCat("kind ", static_cast<int>(verdict.kind), ", blames ",
                      absl::StrJoin(verdict.culprits, ","), ": ", told);
}

TEST(PlantedHangs, AreBlamedOnTheRankThatCausedThem) {
  int planted = 0, right = 0;
  for (const Recorder& recorder : Recorders()) {
    for (const Rank size : {4, 8}) {
      for (const Rank odd : {0, size / 2, size - 1}) {
        for (const Plant& plant : PlantsOf(size, odd)) {
          if (plant.devices_only && !recorder.on_device) continue;
          if (plant.seen_only && recorder.sleeps) continue;
          PlayedJob job(recorder, size);
          plant.play(job);
          job.Run();
          const std::string complaint = Complaint(plant, job.Snapshots());
          ++planted;
          if (complaint.empty()) ++right;
          EXPECT_EQ(complaint, "")
              << plant.name << ", " << recorder.name << ", rank " << odd << " of " << size;
        }
      }
    }
  }
  std::cerr << right << " of " << planted << " planted hangs are told right\n";
  EXPECT_GE(planted, 100);
}

// Programs in which nothing hangs; `slow` needs several looks for each step.
std::vector<std::pair<std::string, std::function<void(PlayedJob&, Rank)>>> HealthyPrograms() {
  constexpr int kSteps = 20;
  const auto each = [](const std::function<void(PlayedJob&, int)>& step) {
    return [step](PlayedJob& job, Rank) {
      for (int i = 0; i < kSteps; ++i) step(job, i);
    };
  };
  return {{"collectives", each([](PlayedJob& job, int) { job.Everybody(Call()); })},
          {"collectives of all kinds", each([](PlayedJob& job, int i) {
             constexpr const char* kOps[] = {"all_reduce", "barrier", "broadcast", "all_gather"};
             job.Everybody(Call("0", kOps[i % 4]));
           })},
          {"blocks", each([](PlayedJob& job, int i) { job.Everybody(i % 2 ? Call() : Block()); })},
          {"exchanges",
           each([](PlayedJob& job, int i) { job.Everybody(i % 2 ? Call() : Exchange()); })},
          {"a pipeline",
           [](PlayedJob& job, Rank size) {
             for (int i = 0; i < kSteps; ++i) {
               for (Rank rank = 0; rank < size; ++rank) {
                 if (rank > 0) job.of(rank).push_back(Receive(rank - 1));
                 if (rank + 1 < size) job.of(rank).push_back(Send(rank + 1));
               }
               job.Everybody(Call());
             }
           }},
          {"two halves", [](PlayedJob& job, Rank size) {
             job.AddGroup("1", Half(size, false));
             job.AddGroup("2", Half(size, true));
             for (int i = 0; i < kSteps; ++i) {
               for (Rank rank = 0; rank < size; ++rank) {
                 job.of(rank).push_back(Call(rank >= size / 2 ? "2" : "1"));
               }
               if (i % 5 == 0) job.Everybody(Call());
             }
           }}};
}

TEST(HealthyPrograms, AreNotSuspected) {
  constexpr Duration kApart = std::chrono::seconds(5);
  int programs = 0;
  for (const Recorder& recorder : Recorders()) {
    for (const auto& [name, play] : HealthyPrograms()) {
      for (const Rank size : {2, 4}) {
        // A step takes one look, or so many that a standstill lasts for 20 s.
        for (const size_t looks : {size_t{1}, size_t{4}}) {
          PlayedJob job(recorder, size);
          play(job, size);
          HangJudge judge({});
          Instant now = Instant() + std::chrono::seconds(1000);
          for (size_t step = 1; step <= 20; ++step) {
            job.Run(step);
            for (size_t i = 0; i < looks; ++i, now += kApart) {
              const HangNews news = judge.Look(AttributeHangs(job.Snapshots(), true), now);
              EXPECT_EQ(news.kind, HangNews::Kind::kNothing)
                  << name << ", " << recorder.name << ", step " << step;
            }
          }
          ++programs;
        }
      }
    }
  }
  std::cerr << programs << " healthy programs are not suspected\n";
  EXPECT_GE(programs, 50);
}

TEST(PlantedHangs, AreFoundBesideAHalfThatGoesOn) {
  for (const Recorder& recorder : Recorders()) {
    PlayedJob job(recorder, 8);
    job.AddGroup("1", Half(8, false));
    job.AddGroup("2", Half(8, true));
    for (int i = 0; i < 40; ++i) {
      for (Rank rank = 0; rank < 8; ++rank) {
        if (rank == 2 && i == 5) job.of(rank).push_back(Sleep());
        job.of(rank).push_back(Call(rank >= 4 ? "2" : "1"));
      }
    }
    HangJudge judge({std::chrono::seconds(20)});
    Instant now = Instant() + std::chrono::seconds(1000);
    std::string told;
    for (size_t step = 1; step <= 40; ++step, now += std::chrono::seconds(1)) {
      job.Run(step);
      const std::vector<RankSnapshot> ranks = job.Snapshots();
      const std::vector<HangVerdict> verdicts = AttributeHangs(ranks, true);
      const HangNews news = judge.Look(verdicts, now);
      if (news.kind != HangNews::Kind::kSuspect) continue;
      EXPECT_EQ(told, "");
      told = DescribeHang(verdicts[news.which], ranks, news.age);
    }
    EXPECT_THAT(told, HasSubstr("rank 2 (node0, local rank 2, pid 102) has not come to it"))
        << recorder.name;
  }
}

}  // namespace
}  // namespace hlaunch
