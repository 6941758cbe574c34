// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

/* hlcomm: collectives between the ranks of a job, for programs in any language.
 *
 * A group is made from the environment that hlaunch, torchrun or a hand sets, or from an address.
 * All functions may be called from any thread. Memory belongs to the caller and is left alone until
 * the call, or the work it began, is over. Counts are elements of `type`.
 *
 * Functions that can fail return a status: 0, or one of hlcomm_status; hlcomm_error() then gives
 * the words, of this thread's last failure. The numbers of all enumerations stay as they are. */

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
  HLCOMM_CANCELLED = 1,         /* Some rank aborted. */
  HLCOMM_INVALID_ARGUMENT = 3,  /* Also: ranks do not call the same; the words show both calls. */
  HLCOMM_DEADLINE_EXCEEDED = 4, /* The words say who waited for whom. */
  HLCOMM_RESOURCE_EXHAUSTED = 8,
  HLCOMM_INTERNAL = 13,
  HLCOMM_UNAVAILABLE = 14 /* A rank went away; the words name it. */
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

/* The library's HLCOMM_ABI_VERSION. */
int hlcomm_abi_version(void);

/* The words of this thread's last failure; "" before the first. Valid until its next call. */
const char* hlcomm_error(void);

/* `url`: "env://", "tcp://HOST:PORT", "file:///PATH". rank and size -1: from the url's query
 * (?rank=0&world_size=2) or the environment. With tcp:// rank 0 opens the store there, unless
 * ?store=open says that it is. name NULL: "default"; a store takes each name once.
 * timeout_s <= 0: 1800. */
int hlcomm_init(const char* url, int rank, int size, const char* name, double timeout_s,
                hlcomm_group** group);
/* Leaves the group. Nothing of it may be in use any more. */
void hlcomm_free(hlcomm_group* group);

int hlcomm_rank(const hlcomm_group* group);
int hlcomm_size(const hlcomm_group* group);

/* As torch.distributed.new_group: all ranks of `group` call it; *sub is NULL where this rank is not
 * in it. timeout_s: of its collectives, <= 0: the group's. */
int hlcomm_new_group(hlcomm_group* group, const int* ranks, int count, double timeout_s,
                     hlcomm_group** sub);

/* One collective. What a verb does not use is 0 or NULL; broadcast's data is `into`, also at the
 * root. Where ranks differ in size: `get` for all_gather, `give` for reduce_scatter, both for
 * all_to_all. */
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
/* Begins it. *work is to be freed. */
int hlcomm_start(hlcomm_group* group, const hlcomm_call* call, hlcomm_work** work);

int hlcomm_send(hlcomm_group* group, int type, const void* from, size_t count, int to,
                uint64_t tag);
/* source may be NULL. */
int hlcomm_recv(hlcomm_group* group, int type, void* into, size_t count, int from, uint64_t tag,
                int* source);
int hlcomm_start_send(hlcomm_group* group, int type, const void* from, size_t count, int to,
                      uint64_t tag, hlcomm_work** work);
int hlcomm_start_recv(hlcomm_group* group, int type, void* into, size_t count, int from,
                      uint64_t tag, hlcomm_work** work);

/* timeout_s < 0: as long as the group lets it. HLCOMM_DEADLINE_EXCEEDED ends nothing. */
int hlcomm_wait(hlcomm_work* work, double timeout_s);
/* 1 once it is over, well or badly. */
int hlcomm_done(hlcomm_work* work);
/* Who sent what was received. */
int hlcomm_source(const hlcomm_work* work);
/* The call goes on. */
void hlcomm_free_work(hlcomm_work* work);

int hlcomm_monitored_barrier(hlcomm_group* group, double timeout_s);

/* Tells the hlaunch that started this program that it lives; call it once in each step. With
 * --heartbeat-timeout hlaunch takes a worker that was heard once, and then not for so long, for
 * stalled. step: only a new one counts; < 0: none, and every call counts. timeout_s: until the next
 * call, in place of the option's, for what takes longer; <= 0: the option's, INFINITY: as long as
 * it likes. Waits only, and for a second at most, where a time would be lost otherwise; needs no
 * group. Returns 1 where hlaunch was told, 0 where nobody listens. */
int hlcomm_heartbeat(int64_t step, double timeout_s);

/* Makes all that waits return HLCOMM_CANCELLED, at every rank. */
void hlcomm_abort(hlcomm_group* group, const char* why);

#ifdef __cplusplus
}
#endif

#endif
