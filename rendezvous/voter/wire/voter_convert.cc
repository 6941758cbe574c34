// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/voter/wire/voter_convert.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/address.h"
#include "proto/base/status_macros.h"
#include "rendezvous/round/values/limits.h"

namespace hlaunch {
namespace {

using Request = v1::PassWitnessMessageRequest;

constexpr Term kMaxTerm = Term{1} << 62;  // No group counts this far.

// The proto's enum begins with UNSPECIFIED; the rest has the same order.
static_assert(static_cast<int>(VoterMessage::Kind::kAppend) + 1 == Request::KIND_APPEND);
static_assert(static_cast<int>(VoterMessage::Kind::kRemoved) + 1 == Request::KIND_REMOVED);

// A host's name may contain any bytes, but a proto's string must be UTF-8.
std::string Plain(std::string name) {
  for (char& c : name) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return name.substr(0, kMaxNameBytes);
}

v1::VoterEntry ToProto(const VoterEntry& entry) {
  v1::VoterEntry out;
  *out.mutable_ballot() = hlaunch::ToProto(entry.ballot);
  out.set_version(entry.version);
  for (const VoterMember& member : entry.members) *out.add_members() = hlaunch::ToProto(member);
  if (entry.record.size() <= kMaxCarriedRecordBytes) {
    out.set_record(entry.record);
  } else {
    out.set_record_bytes(static_cast<uint32_t>(entry.record.size()));
  }
  return out;
}

absl::StatusOr<SharedEntry> FromProto(const v1::VoterEntry& in) {
  if (in.members().empty() || in.members_size() > kMaxVoters) {
    return absl::InvalidArgumentError(absl::StrCat("entry.members has ", in.members_size()));
  }
  if (in.record().size() > kMaxCarriedRecordBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("entry.record has ", in.record().size(), " bytes"));
  }
  if (in.record_bytes() > kMaxVoterRecordBytes || (in.record_bytes() > 0 && !in.record().empty())) {
    return absl::InvalidArgumentError(absl::StrCat("entry.record_bytes is ", in.record_bytes()));
  }
  auto entry = std::make_shared<VoterEntry>();
  entry->ballot = hlaunch::FromProto(in.ballot());
  entry->version = in.version();
  for (const v1::Voter& one : in.members()) {
    HLAUNCH_ASSIGN_OR_RETURN(VoterMember member, hlaunch::FromProto(one));
    if (FindMember(entry->members, member.incarnation) != nullptr) {
      return absl::InvalidArgumentError("entry.members names one twice");
    }
    entry->members.push_back(std::move(member));
  }
  entry->record = in.record();
  return SharedEntry(std::move(entry));
}

}  // namespace

v1::VoterBallot ToProto(const Ballot& ballot) {
  v1::VoterBallot out;
  out.set_term(ballot.term);
  out.set_index(ballot.index);
  return out;
}

Ballot FromProto(const v1::VoterBallot& in) { return {in.term(), in.index()}; }

VoterAddress SplitAddress(absl::string_view address) {
  const size_t colon = address.rfind(':');
  VoterAddress parts;
  int port = 0;
  HLAUNCH_CHECK(colon != address.npos && absl::SimpleAtoi(address.substr(colon + 1), &port));
  parts.port = static_cast<uint16_t>(port);
  absl::string_view literal = address.substr(0, colon);
  if (literal.size() > 1 && literal.front() == '[') literal = literal.substr(1, literal.size() - 2);
  parts.literal = std::string(literal);
  return parts;
}

v1::Voter ToProto(const VoterMember& member) {
  const VoterAddress parts = SplitAddress(member.address);
  v1::Voter out;
  out.set_incarnation(member.incarnation);
  out.set_host(Plain(member.name));
  out.set_address(parts.literal);
  out.set_port(parts.port);
  return out;
}

absl::StatusOr<VoterMember> FromProto(const v1::Voter& in) {
  if (in.incarnation() == 0) return absl::InvalidArgumentError("a voter's incarnation is 0");
  if (in.host().size() > kMaxNameBytes ||
      std::any_of(in.host().begin(), in.host().end(), absl::ascii_iscntrl)) {
    return absl::InvalidArgumentError("a voter's host is too long, or holds control characters");
  }
  if (in.address().size() > kMaxNameBytes || !IsAddressLiteral(in.address())) {
    return absl::InvalidArgumentError("a voter's address is no literal");
  }
  if (in.port() < 1 || in.port() > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("a voter's port is ", in.port()));
  }
  return VoterMember{in.incarnation(), in.host(),
                     HostPort(in.address(), static_cast<uint16_t>(in.port()))};
}

Request ToProto(const VoterMessage& message, absl::string_view job_id, const VoterMember& self) {
  Request out;
  out.set_job_id(std::string(job_id));
  out.set_kind(static_cast<Request::Kind>(static_cast<int>(message.kind) + 1));
  *out.mutable_from() = ToProto(self);
  out.set_to(message.to);
  out.set_term(message.term);
  *out.mutable_ballot() = ToProto(message.ballot);
  if (message.entry != nullptr) *out.mutable_entry() = ToProto(*message.entry);
  out.set_beat(message.beat);
  out.set_confirmed(message.confirmed);
  out.set_asked(message.asked);
  out.set_granted(message.granted);
  out.set_taken(message.taken);
  return out;
}

absl::StatusOr<VoterLetter> FromProto(const Request& in) {
  if (in.kind() < Request::KIND_APPEND || in.kind() > Request::KIND_REMOVED) {
    return absl::InvalidArgumentError(absl::StrCat("kind is ", in.kind()));
  }
  VoterLetter letter;
  for (const uint64_t term : {in.term(), in.asked(), in.ballot().term()}) {
    if (term > kMaxTerm) return absl::InvalidArgumentError(absl::StrCat("a term is ", term));
  }
  HLAUNCH_ASSIGN_OR_RETURN(letter.from, FromProto(in.from()));
  VoterMessage& message = letter.message;
  message.kind = static_cast<VoterMessage::Kind>(in.kind() - 1);
  message.from = letter.from.incarnation;
  message.to = in.to();
  message.term = in.term();
  message.ballot = FromProto(in.ballot());
  if (in.has_entry()) {
    HLAUNCH_ASSIGN_OR_RETURN(message.entry, FromProto(in.entry()));
    if (message.entry->ballot != message.ballot) {
      return absl::InvalidArgumentError("the entry is not the one that the sender holds");
    }
    letter.lacks_bytes = in.entry().record_bytes();
  }
  message.beat = in.beat();
  message.confirmed = in.confirmed();
  message.asked = in.asked();
  message.granted = in.granted();
  message.taken = in.taken();
  return letter;
}

}  // namespace hlaunch
