// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// A worker for a root directory without other files. It prints its rank. Under the name getent it
// knows the address of one host, $HOST_AND_ADDRESS ("name 10.0.0.1").

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int AnswerAsGetent(const std::string& host) {
  const std::string known = Variable("HOST_AND_ADDRESS");
  const size_t space = known.find(' ');
  if (space == std::string::npos || known.substr(0, space) != host) return 2;
  std::printf("%s  STREAM %s\n", known.c_str() + space + 1, host.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "ahosts") == 0) return AnswerAsGetent(argv[2]);
  std::printf("rank %s of %s\n", Variable("RANK").c_str(), Variable("WORLD_SIZE").c_str());
  return 0;
}
