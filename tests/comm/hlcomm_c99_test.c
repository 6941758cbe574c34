// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

/* hlcomm_c99_test RANKS: uses the C interface from C, in RANKS processes that meet at a file. */

#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/hlcomm.h"

#define MOST 4

static int rank = -1;

#define EXPECT(condition)                                                               \
  do {                                                                                  \
    if (!(condition)) {                                                                 \
      fprintf(stderr, "rank %d, line %d: %s\n    last error: %s\n", rank, __LINE__, #condition, \
              hlcomm_error());                                                          \
      exit(1);                                                                          \
    }                                                                                   \
  } while (0)

static int refused(int status, const char* word) {
  return status == HLCOMM_INVALID_ARGUMENT && strstr(hlcomm_error(), word) != NULL;
}

static void arguments_are_checked(hlcomm_group* group) {
  hlcomm_group* none = NULL;
  hlcomm_work* work = NULL;
  hlcomm_call call = {0};
  float data = 1;
  int zero = 0;
  EXPECT(refused(hlcomm_init(NULL, 0, 1, NULL, 0, &none), "url is NULL"));
  EXPECT(refused(hlcomm_init("env://", 0, 1, NULL, 0, NULL), "group is NULL"));
  EXPECT(refused(hlcomm_init("nowhere", 0, 1, NULL, 0, &none), "'nowhere'"));
  EXPECT(none == NULL);
  hlcomm_free(NULL);
  hlcomm_free_work(NULL);
  hlcomm_abort(NULL, NULL);
  EXPECT(hlcomm_rank(NULL) == -1 && hlcomm_size(NULL) == -1 && hlcomm_source(NULL) == -1);
  EXPECT(hlcomm_done(NULL) == 1);
  EXPECT(refused(hlcomm_wait(NULL, 1), "work is NULL"));
  EXPECT(refused(hlcomm_run(NULL, &call), "group is NULL"));
  EXPECT(refused(hlcomm_run(group, NULL), "call is NULL"));
  EXPECT(refused(hlcomm_run(group, &call), "hlcomm_verb"));
  EXPECT(refused(hlcomm_start(group, &call, NULL), "work is NULL"));
  EXPECT(refused(hlcomm_new_group(group, NULL, 1, 0, &none), "ranks is NULL"));
  EXPECT(refused(hlcomm_new_group(group, &zero, 1, 0, NULL), "sub is NULL"));
  EXPECT(refused(hlcomm_new_group(group, &zero, 0, 0, &none), "0 ranks"));
  EXPECT(refused(hlcomm_send(group, HLCOMM_FLOAT32, NULL, 1, 0, 0), "from is NULL"));
  EXPECT(refused(hlcomm_recv(group, 77, &data, 1, 0, 0, NULL), "77"));
  EXPECT(refused(hlcomm_start_recv(group, HLCOMM_FLOAT32, NULL, 1, 0, 0, &work), "into is NULL"));
  EXPECT(refused(hlcomm_start_send(group, HLCOMM_FLOAT32, &data, 1, 0, 0, NULL), "work is NULL"));
  EXPECT(refused(hlcomm_monitored_barrier(NULL, 1), "group is NULL"));
  EXPECT(hlcomm_heartbeat(1, 0) == 0); /* No agent listens. */
  call.verb = HLCOMM_ALL_REDUCE;
  call.type = -1;
  EXPECT(refused(hlcomm_run(group, &call), "hlcomm_type"));
  call.type = HLCOMM_FLOAT64;
  call.op = 10;
  EXPECT(refused(hlcomm_run(group, &call), "hlcomm_op"));
  call.op = HLCOMM_SUM;
  call.from = &data;
  call.into = &data;
  call.from_count = call.into_count = (size_t)-1;
  EXPECT(refused(hlcomm_run(group, &call), "elements"));
  call.from_count = 1;
  call.into = NULL;
  call.into_count = 1;
  EXPECT(refused(hlcomm_run(group, &call), "into is NULL"));
  call.type = HLCOMM_FLOAT32;
  call.op = HLCOMM_BAND; /* Invalid for floats; the group goes on afterwards. */
  call.into = &data;
  EXPECT(hlcomm_run(group, &call) == HLCOMM_INVALID_ARGUMENT);
}

static void verbs_do_what_they_say(hlcomm_group* group, int size) {
  hlcomm_call call = {0};
  hlcomm_work* work = NULL;
  int32_t mine[MOST], theirs[MOST];
  size_t give[MOST], get[MOST];
  int i;

  call.verb = HLCOMM_BARRIER;
  EXPECT(hlcomm_run(group, &call) == HLCOMM_OK);

  memset(&call, 0, sizeof call);
  call.verb = HLCOMM_ALL_REDUCE;
  call.type = HLCOMM_INT32;
  call.op = HLCOMM_SUM;
  mine[0] = rank + 1;
  call.from = mine;
  call.into = theirs;
  call.from_count = call.into_count = 1;
  EXPECT(hlcomm_run(group, &call) == HLCOMM_OK);
  EXPECT(theirs[0] == size * (size + 1) / 2);

  call.op = HLCOMM_MAX;
  theirs[0] = 0;
  EXPECT(hlcomm_start(group, &call, &work) == HLCOMM_OK);
  EXPECT(hlcomm_wait(work, -1) == HLCOMM_OK);
  EXPECT(hlcomm_done(work) == 1 && theirs[0] == size);
  hlcomm_free_work(work);

  call.verb = HLCOMM_BROADCAST;
  call.root = size - 1;
  theirs[0] = rank;
  EXPECT(hlcomm_run(group, &call) == HLCOMM_OK);
  EXPECT(theirs[0] == size - 1);

  call.verb = HLCOMM_ALL_GATHER;
  call.into_count = (size_t)size;
  EXPECT(hlcomm_run(group, &call) == HLCOMM_OK);
  for (i = 0; i < size; ++i) EXPECT(theirs[i] == i + 1);

  /* The last rank sends no elements. */
  for (i = 0; i < size; ++i) get[i] = i == size - 1 ? 0 : 1;
  call.get = get;
  call.from_count = get[rank];
  call.into_count = (size_t)(size - 1);
  memset(theirs, 0, sizeof theirs);
  EXPECT(hlcomm_run(group, &call) == HLCOMM_OK);
  for (i = 0; i < size - 1; ++i) EXPECT(theirs[i] == i + 1);
  EXPECT(theirs[size - 1] == 0);

  for (i = 0; i < size; ++i) {
    mine[i] = 10 * rank + i;
    give[i] = get[i] = 1;
  }
  call.verb = HLCOMM_ALL_TO_ALL;
  call.give = give;
  call.from_count = call.into_count = (size_t)size;
  EXPECT(hlcomm_run(group, &call) == HLCOMM_OK);
  for (i = 0; i < size; ++i) EXPECT(theirs[i] == 10 * i + rank);

  call.verb = HLCOMM_REDUCE_SCATTER;
  call.op = HLCOMM_MIN;
  call.into_count = 1;
  EXPECT(hlcomm_run(group, &call) == HLCOMM_OK);
  EXPECT(theirs[0] == rank);

  if (rank == 0) {
    for (i = 1; i < size; ++i) {
      int source = -1;
      EXPECT(hlcomm_recv(group, HLCOMM_INT32, theirs, 1, HLCOMM_ANY_RANK, 7, &source) == HLCOMM_OK);
      EXPECT(source > 0 && theirs[0] == 100 + source);
    }
  } else {
    mine[0] = 100 + rank;
    EXPECT(hlcomm_send(group, HLCOMM_INT32, mine, 1, 0, 7) == HLCOMM_OK);
  }
  EXPECT(hlcomm_monitored_barrier(group, 300) == HLCOMM_OK);
}

static void a_group_may_have_groups(hlcomm_group* group, int size) {
  hlcomm_group* sub = NULL;
  hlcomm_call call = {0};
  const int ranks[2] = {size - 1, 0};
  EXPECT(hlcomm_new_group(group, ranks, 2, 200, &sub) == HLCOMM_OK);
  EXPECT((sub != NULL) == (rank == 0 || rank == size - 1));
  if (sub == NULL) return;
  EXPECT(hlcomm_size(sub) == 2 && hlcomm_rank(sub) == (rank == 0 ? 1 : 0));
  call.verb = HLCOMM_BARRIER;
  EXPECT(hlcomm_run(sub, &call) == HLCOMM_OK);
  hlcomm_free(sub);
}

/* The last rank dies; the ranks that wait for it learn that in this barrier or the next. */
static void a_rank_that_leaves_is_named(hlcomm_group* group, int size) {
  hlcomm_call call = {0};
  char word[16];
  call.verb = HLCOMM_BARRIER;
  const int first = hlcomm_run(group, &call);
  if (rank == size - 1) _exit(0);
  EXPECT(first == HLCOMM_UNAVAILABLE || hlcomm_run(group, &call) == HLCOMM_UNAVAILABLE);
  sprintf(word, "rank %d", size - 1);
  EXPECT(strstr(hlcomm_error(), word) != NULL);
}

static int be_rank(const char* url, int size) {
  hlcomm_group* group = NULL;
  EXPECT(hlcomm_abi_version() == HLCOMM_ABI_VERSION);
  EXPECT(strcmp(hlcomm_error(), "") == 0);
  EXPECT(hlcomm_init(url, rank, size, NULL, 300, &group) == HLCOMM_OK);
  EXPECT(hlcomm_rank(group) == rank && hlcomm_size(group) == size);
  arguments_are_checked(group);
  verbs_do_what_they_say(group, size);
  a_group_may_have_groups(group, size);
  a_rank_that_leaves_is_named(group, size);
  hlcomm_free(group);
  return 0;
}

int main(int argc, char** argv) {
  const int size = argc > 1 ? atoi(argv[1]) : 2;
  char folder[] = "/tmp/hlcomm_c99_XXXXXX", url[96], path[64];
  int failed = 0, i;
  if (size < 2 || size > MOST || mkdtemp(folder) == NULL) return 2;
  sprintf(path, "%s/store", folder);
  sprintf(url, "file://%s", path);
  for (i = 0; i < size; ++i) {
    if (fork() == 0) {
      rank = i;
      exit(be_rank(url, size));
    }
  }
  for (i = 0; i < size; ++i) {
    int status = -1;
    if (wait(&status) < 0 || status != 0) failed = 1;
  }
  unlink(path); /* The rank that died without leaving has left it. */
  rmdir(folder);
  return failed;
}
