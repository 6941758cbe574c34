// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

/* hlcomm: collectives between the ranks of a job, for programs in any language.
 *
 * A group is made from the environment that hlaunch, torchrun or the user sets, or from an address.
 * All functions may be called from any thread. Memory belongs to the caller, which must not touch
 * it until the call, or the work that it began, is over. Counts are elements of `type`.
 *
 * Functions that can fail return a status: 0, or one of hlcomm_status; hlcomm_error() then returns
 * the message of this thread's last failure. The numbers of all enumerations never change. */

#ifndef HLAUNCH_COMM_HLCOMM_H_
#define HLAUNCH_COMM_HLCOMM_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HLCOMM_ABI_VERSION 1

enum hlcomm_status {
  HLCOMM_OK = 0,
  HLCOMM_CANCELLED = 1,         /* A rank aborted. */
  HLCOMM_INVALID_ARGUMENT = 3,  /* Also: ranks make different calls; the message shows both. */
  HLCOMM_DEADLINE_EXCEEDED = 4, /* The message says which rank waited for which. */
  HLCOMM_RESOURCE_EXHAUSTED = 8,
  HLCOMM_INTERNAL = 13,
  HLCOMM_UNAVAILABLE = 14 /* A rank went away; the message names it. */
};

enum hlcomm_type {
  HLCOMM_BYTE = 0,
  HLCOMM_FLOAT16 = 1,
  HLCOMM_BFLOAT16 = 2,
  HLCOMM_FLOAT32 = 3,
  HLCOMM_FLOAT64 = 4,
  HLCOMM_INT8 = 5,
  HLCOMM_UINT8 = 6,
  HLCOMM_INT32 = 7,
  HLCOMM_INT64 = 8,
  HLCOMM_BOOL = 9
};

enum hlcomm_op {
  HLCOMM_NO_OP = 0,
  HLCOMM_SUM = 1,
  HLCOMM_AVG = 2,
  HLCOMM_PRODUCT = 3,
  HLCOMM_MIN = 4,
  HLCOMM_MAX = 5,
  HLCOMM_BAND = 6,
  HLCOMM_BOR = 7,
  HLCOMM_BXOR = 8,
  HLCOMM_PREMUL_SUM = 9
};

enum hlcomm_verb {
  HLCOMM_BARRIER = 1,
  HLCOMM_BROADCAST = 2,
  HLCOMM_ALL_REDUCE = 3,
  HLCOMM_REDUCE = 4,
  HLCOMM_ALL_GATHER = 5,
  HLCOMM_GATHER = 6,
  HLCOMM_SCATTER = 7,
  HLCOMM_REDUCE_SCATTER = 8,
  HLCOMM_ALL_TO_ALL = 9
};

#define HLCOMM_ANY_RANK (-1)

typedef struct hlcomm_group hlcomm_group;
typedef struct hlcomm_work hlcomm_work;

/* Returns the library's HLCOMM_ABI_VERSION. */
int hlcomm_abi_version(void);

/* Returns the message of this thread's last failure, "" before the first. Valid until the thread's
 * next call. */
const char* hlcomm_error(void);

/* Joins a group. `url` is "env://", "tcp://HOST:PORT", "file:///PATH" or "pmi://". If
 * rank or size are -1, they come from the url's query (?rank=0&world_size=2) or the environment.
 * With tcp:// rank 0 opens the store there, unless ?store=open says that it is open. With pmi://
 * rank and size are not read: the server of PMI-1 has them. If name is NULL, it is "default"; a
 * store accepts each name once. If timeout_s <= 0, it is 1800. */
int hlcomm_init(const char* url, int rank, int size, const char* name, double timeout_s,
                hlcomm_group** group);
/* Leaves the group. No call or work of it may be in use any more. */
void hlcomm_free(hlcomm_group* group);
/* Leaves the group and tells the ranks that still wait for this one why, such as the error that
 * ends it. NULL or "": as hlcomm_free. */
void hlcomm_leave(hlcomm_group* group, const char* why);

int hlcomm_rank(const hlcomm_group* group);
int hlcomm_size(const hlcomm_group* group);

/* Makes a group of some ranks, as torch.distributed.new_group: all ranks of `group` call it; *sub
 * becomes NULL at a rank that is not in it. timeout_s is for its collectives; <= 0: the group's. */
int hlcomm_new_group(hlcomm_group* group, const int* ranks, int count, double timeout_s,
                     hlcomm_group** sub);

/* One collective. Fields that the verb does not use are 0 or NULL; the data of broadcast is `into`,
 * also at the root. Where the sizes of ranks differ, all_gather uses `get`, reduce_scatter `give`,
 * and all_to_all both. */
typedef struct hlcomm_call {
  int verb;
  int type;
  int op;
  int root;
  double factor;
  const void* from;
  size_t from_count;
  void* into;
  size_t into_count;
  const size_t* give; /* NULL, or one for each rank. */
  const size_t* get;
  double timeout_s; /* <= 0: the group's. */
} hlcomm_call;

int hlcomm_run(hlcomm_group* group, const hlcomm_call* call);
/* Begins the call. The caller must free *work. */
int hlcomm_start(hlcomm_group* group, const hlcomm_call* call, hlcomm_work** work);

/* A message to the rank itself is copied: its send is over at once. HLCOMM_ANY_RANK does not
 * receive it, unless there is no other rank. */
int hlcomm_send(hlcomm_group* group, int type, const void* from, size_t count, int to,
                uint64_t tag);
/* source may be NULL. */
int hlcomm_recv(hlcomm_group* group, int type, void* into, size_t count, int from, uint64_t tag,
                int* source);
int hlcomm_start_send(hlcomm_group* group, int type, const void* from, size_t count, int to,
                      uint64_t tag, hlcomm_work** work);
int hlcomm_start_recv(hlcomm_group* group, int type, void* into, size_t count, int from,
                      uint64_t tag, hlcomm_work** work);

/* Waits for the end of the call; timeout_s < 0: until the group's own time-out. After
 * HLCOMM_DEADLINE_EXCEEDED because of timeout_s the call goes on. */
int hlcomm_wait(hlcomm_work* work, double timeout_s);
/* Returns 1 when the call is over, with success or not. A send or receive whose time is up is over,
 * as after hlcomm_wait. */
int hlcomm_done(hlcomm_work* work);
/* Returns the rank that sent the received message. */
int hlcomm_source(const hlcomm_work* work);
/* Frees the work. The call goes on. */
void hlcomm_free_work(hlcomm_work* work);

int hlcomm_monitored_barrier(hlcomm_group* group, double timeout_s);

/* Tells the hlaunch that started this program that the program lives. Call it in each step. With
 * --heartbeat-timeout, a worker that has called it once and then not for that time is stalled. If
 * step >= 0, only a new step counts; else every call counts. timeout_s replaces the option's value
 * until the next call, for work that takes longer; <= 0: the option's, INFINITY: no limit. The
 * function waits, for a second at most, only if timeout_s would be lost otherwise. It needs no
 * group. Returns 1 if hlaunch was told, 0 if it does not listen. */
int hlcomm_heartbeat(int64_t step, double timeout_s);

/* Makes all calls that wait return HLCOMM_CANCELLED, at every rank. */
void hlcomm_abort(hlcomm_group* group, const char* why);

#ifdef __cplusplus
}
#endif

#endif
