/* The system calls that latency measures (latency_calls.c), and how (latency.c). */
#pragma once

#include "probe.h"

/* What the calls work on; opened once. */
struct subject {
	const char *path; /* a regular file that can be read: the probe itself */
	int file;	  /* path, open */
	int zero, null;	  /* /dev/zero and /dev/null, open */
	int pipe[2];
	uint32_t futex; /* nobody waits for it */
};

/* A call is made once per call of run, which returns a negative error if it fails. */
struct call {
	const char *name;
	long (*run)(struct subject *);
};

extern const struct call calls[];
extern const unsigned call_count;
