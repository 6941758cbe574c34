// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/round/hang/rank_snapshot.h"

namespace hlaunch {

// How a torch release records the calls of a backend. A value.
struct Recorder {
  std::string name;          // "NCCL of torch 2.5"
  std::string backend;       // As in its entries: "nccl"; "hlaunch" has records of its own.
  bool on_device = false;    // A call returns at once, and a device does it later.
  bool messages = false;     // Records send and recv.
  bool blocks = false;       // A block of collectives has an entry of its own.
  bool started = false;      // Says that the device has begun.
  bool members = false;      // Says who is in a group.
  std::string version = "";  // Of the record.
  bool sleeps = false;  // A rank that waits for its device sleeps, so nobody sees that it does.
};

// All that are known: of NCCL from 2.5 on, of nccl2, of gloo, and of hlaunch's own backend.
const std::vector<Recorder>& Recorders();

// One step of a rank's program. A value.
struct Step {
  enum class Kind { kCall, kSend, kReceive, kExchange, kBlock, kSynchronize, kSleep, kExit, kDie };
  Kind kind = Kind::kCall;
  std::string group = "0";
  std::string op = "all_reduce";
  int size = 4;
  Rank peer = 0;  // kSend, kReceive: of the job. kExchange: to the next, from the previous one.
};

Step Call(const std::string& group = "0", const std::string& op = "all_reduce", int size = 4);
Step Send(Rank peer);
Step Receive(Rank peer);
Step Exchange();
Step Block();
Step Synchronize();  // Waits until the device has done all calls.
Step Sleep();
Step Exit();
Step Die();

// Ranks that run programs, as far as they get. It shows them as an agent would see them: by the
// text of their flight records.
//
// Belongs to one thread.
class PlayedJob {
 public:
  PlayedJob(Recorder recorder, Rank size);

  // Adds a group beside that of all ranks, which is "0".
  void AddGroup(const std::string& name, std::vector<Rank> members);

  std::vector<Step>& of(Rank rank) { return ranks_[static_cast<size_t>(rank)].steps; }
  void Everybody(const Step& step);

  // The device of that rank ends no call of this number in group "0".
  void BreakDevice(Rank rank, int64_t number) { broken_ = {rank, number}; }

  // Runs until no rank can go on, or until each has begun `most` steps since the beginning.
  void Run(size_t most = 1000);

  // A rank that has begun no step since the last time stands still.
  std::vector<RankSnapshot> Snapshots();

 private:
  struct Issued {
    Step step;
    int64_t number = 0;  // Of its group's collectives, or of its messages.
    std::map<std::pair<Rank, bool>, int> messages;  // How many there were with that rank before.
    bool over = false;
  };
  struct PlayedRank {
    std::vector<Step> steps;
    std::vector<Issued> issued;
    size_t next = 0;
    size_t seen = 0;
    bool ended = false, died = false, asleep = false;
    std::map<std::string, int64_t> numbers;
    std::map<std::pair<Rank, bool>, int> messages;
  };

  bool Begin(Rank rank, size_t most);
  bool IsOver(Rank rank, const Issued& issued) const;
  bool HasCalled(Rank rank, const Issued& like) const;
  bool EndCalls();
  std::string Record(const PlayedRank& rank, Rank number) const;
  void TakeRecord(const PlayedRank& rank, RankSnapshot* snapshot) const;

  const Recorder recorder_;
  std::map<std::string, std::vector<Rank>> groups_;
  std::vector<PlayedRank> ranks_;
  std::pair<Rank, int64_t> broken_ = {-1, 0};
};

}  // namespace hlaunch
