// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/cluster/json_fields.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/base/status_macros.h"
#include "proto/base/utf8_prefix.h"

namespace hlaunch {
namespace {

using absl::string_view;
using nlohmann::json;

constexpr int kMaxDepth = 16;
constexpr string_view kZero("\0", 1);

// nlohmann's parser accepts any depth, and code that walks through its values is recursive.
absl::Status CheckDepth(string_view text) {
  int depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_text = !in_text;
    } else if (!in_text && (c == '{' || c == '[') && ++depth > kMaxDepth) {
      return absl::InvalidArgumentError(
          absl::StrCat("JSON is nested more than ", kMaxDepth, " deep at byte ", i));
    } else if (!in_text && (c == '}' || c == ']')) {
      --depth;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<json> ParseAny(string_view text) {
  try {
    return json::parse(text.begin(), text.end());
  } catch (const json::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("this is no JSON from byte ", error.byte, " on"));
  } catch (const json::exception&) {
    return absl::InvalidArgumentError("JSON with a number that is too large");
  }
}

// Reads a signed number, as all limits are. False if it is no whole number or is too large.
bool ReadWhole(const json& value, int64_t* number) {
  if (!value.is_number_integer()) return false;
  constexpr uint64_t kMost = INT64_MAX;
  if (value.is_number_unsigned() && value.get<uint64_t>() > kMost) return false;
  *number = value.get<int64_t>();
  return true;
}

bool IsWithin(const json& value, int64_t min, int64_t max, int64_t* number) {
  return ReadWhole(value, number) && *number >= min && *number <= max;
}

bool IsUnsigned(const json& value) {
  return value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0);
}

// Why `value` is no valid text; empty if it is one.
std::string FaultOfText(const json& value, size_t max) {
  if (!value.is_string()) return "must be text";
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() > max) return absl::StrCat("must have at most ", max, " bytes");
  if (absl::StrContains(text, kZero)) return "must have no zero byte";
  return "";
}

}  // namespace

absl::StatusOr<json> ParseObject(string_view text) {
  HLAUNCH_RETURN_IF_ERROR(CheckDepth(text));
  HLAUNCH_ASSIGN_OR_RETURN(json value, ParseAny(text));
  if (value.is_object()) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("JSON of type ", value.type_name(), ", no object"));
}

std::string TextOf(const json& json) {
  return json.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string WithoutZeroBytes(string_view text) {
  return absl::StrReplaceAll(text, {{kZero, "\xEF\xBF\xBD"}});
}

std::string BeginningOf(string_view text, size_t max) {
  const bool plain = std::all_of(text.begin(), text.end(),
                                 [](char c) { return absl::ascii_isascii(c) && c != 0; });
  if (plain) return std::string(text.substr(0, max));
  std::string whole = WithoutZeroBytes(json::parse(TextOf(std::string(text))).get<std::string>());
  whole.resize(Utf8Prefix(whole, max).size());
  return whole;
}

JsonFields::JsonFields(const json& object, string_view what) : object_(object), what_(what) {
  if (!object_.is_object()) status_ = absl::InvalidArgumentError(what_ + " is no object");
}

bool JsonFields::Has(const char* name) const {
  return object_.is_object() && object_.contains(name);
}

const json* JsonFields::Find(const char* name, const char* expected, bool (*fits)(const json&)) {
  if (!status_.ok() || !Has(name)) return nullptr;
  const json& value = object_[name];
  if (fits(value)) return &value;
  Refuse(name, expected);
  return nullptr;
}

void JsonFields::Text(const char* name, std::string* value, size_t max) {
  const json* found = Find(name, "", [](const json&) { return true; });
  if (found == nullptr) return;
  const std::string fault = FaultOfText(*found, max);
  if (!fault.empty()) return Refuse(name, fault);
  *value = found->get<std::string>();
}

void JsonFields::Texts(const char* name, std::vector<std::string>* value, size_t max_count,
                       size_t max) {
  const json* found =
      Find(name, "must be a list of texts", [](const json& list) { return list.is_array(); });
  if (found == nullptr) return;
  if (found->size() > max_count) {
    return Refuse(name, absl::StrCat("must have at most ", max_count, " texts"));
  }
  for (const json& text : *found) {
    const std::string fault = FaultOfText(text, max);
    if (!fault.empty()) return Refuse(name, absl::StrCat("is a list, each of which ", fault));
  }
  *value = found->get<std::vector<std::string>>();
}

void JsonFields::Flag(const char* name, bool* value) {
  const json* found =
      Find(name, "must be true or false", [](const json& flag) { return flag.is_boolean(); });
  if (found != nullptr) *value = found->get<bool>();
}

void JsonFields::Number(const char* name, int* value, int min, int max) {
  int64_t number = *value;
  Number(name, &number, min, max);
  *value = static_cast<int>(number);
}

void JsonFields::Number(const char* name, int64_t* value, int64_t min, int64_t max) {
  const json* found = Find(name, "", [](const json&) { return true; });
  if (found == nullptr) return;
  int64_t number = 0;
  if (IsWithin(*found, min, max, &number)) {
    *value = number;
  } else {
    Refuse(name, absl::StrCat("must be a whole number from ", min, " to ", max));
  }
}

void JsonFields::Number(const char* name, uint64_t* value) {
  const json* found = Find(name, "must be a whole number, 0 or more", IsUnsigned);
  if (found != nullptr) *value = found->get<uint64_t>();
}

void JsonFields::Real(const char* name, double* value, double min, double max) {
  const json* found =
      Find(name, "must be a number", [](const json& number) { return number.is_number(); });
  if (found == nullptr) return;
  const double number = found->get<double>();
  if (!(number >= min && number <= max)) {
    return Refuse(name, absl::StrCat("must be a number from ", min, " to ", max));
  }
  *value = number;
}

void JsonFields::Numbers(const char* name, std::vector<int>* value, int min, int max,
                         size_t max_count) {
  const json* found =
      Find(name, "must be a list of numbers", [](const json& list) { return list.is_array(); });
  if (found == nullptr) return;
  if (found->size() > max_count) {
    return Refuse(name, absl::StrCat("must have at most ", max_count, " numbers"));
  }
  std::vector<int> numbers;
  for (const json& entry : *found) {
    int64_t number = 0;
    if (!IsWithin(entry, min, max, &number)) {
      return Refuse(name, absl::StrCat("must be a list of whole numbers from ", min, " to ", max));
    }
    numbers.push_back(static_cast<int>(number));
  }
  *value = std::move(numbers);
}

void JsonFields::Numbers(const char* name, std::vector<uint64_t>* value, size_t max_count) {
  const json* found =
      Find(name, "must be a list of whole numbers, 0 or more", [](const json& list) {
        return list.is_array() && std::all_of(list.begin(), list.end(), IsUnsigned);
      });
  if (found == nullptr) return;
  if (found->size() > max_count) {
    return Refuse(name, absl::StrCat("must have at most ", max_count, " numbers"));
  }
  *value = found->get<std::vector<uint64_t>>();
}

const json* JsonFields::Object(const char* name) {
  return Find(name, "must be an object", [](const json& object) { return object.is_object(); });
}

std::vector<const json*> JsonFields::Objects(const char* name, size_t max_count) {
  const json* found =
      Find(name, "must be a list of objects", [](const json& list) { return list.is_array(); });
  if (found == nullptr) return {};
  std::vector<const json*> objects;
  for (const json& entry : *found) {
    if (!entry.is_object() || objects.size() == max_count) {
      Refuse(name, absl::StrCat("must be a list of at most ", max_count, " objects"));
      return {};
    }
    objects.push_back(&entry);
  }
  return objects;
}

void JsonFields::Refuse(const char* name, string_view why) {
  Merge(absl::InvalidArgumentError(absl::StrCat(what_, ": ", name, " ", why)));
}

void JsonFields::Merge(const absl::Status& status) {
  if (status_.ok()) status_ = status;
}

}  // namespace hlaunch
