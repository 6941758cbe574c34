// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "hlaunch/v1/rendezvous.pb.h"
#include "rendezvous/voter/group.h"
#include "rendezvous/voter/voter_message.h"

// Converts between the plain values of rendezvous/voter and the messages of rendezvous.proto, as
// convert.h does for job.proto. FromProto trusts nothing.

namespace hlaunch {

// The most members of a group, and the most voters that a node is told of.
inline constexpr int kMaxVoters = 8;
inline constexpr int kMaxVotersTold = 16;
// The largest packed record that a message carries: a server takes who often sends more for a
// flood, see TrafficAllowance.
inline constexpr size_t kMaxCarriedRecordBytes = 16 << 10;
// The largest packed record. It fits into a response.
inline constexpr size_t kMaxVoterRecordBytes = 12 << 20;

// Requires: member.address is "LITERAL:PORT", IPv6 in brackets.
v1::Voter ToProto(const VoterMember& member);
// `self` is the sender. A record beyond kMaxCarriedRecordBytes is not carried.
v1::PassWitnessMessageRequest ToProto(const VoterMessage& message, absl::string_view job_id,
                                      const VoterMember& self);

// Errors:
//   InvalidArgument - a field is out of its range; the message names it.
absl::StatusOr<VoterMember> FromProto(const v1::Voter& in);

struct VoterLetter {
  VoterMessage message;
  VoterMember from;
  // If not 0, the entry has no record: the sender has to be asked for it, of so many bytes.
  size_t lacks_bytes = 0;
};
absl::StatusOr<VoterLetter> FromProto(const v1::PassWitnessMessageRequest& in);

v1::VoterBallot ToProto(const Ballot& ballot);
Ballot FromProto(const v1::VoterBallot& in);

// The parts of an address of a voter. Requires: as ToProto.
struct VoterAddress {
  std::string literal;
  uint16_t port = 0;
};
VoterAddress SplitAddress(absl::string_view address);

}  // namespace hlaunch
