/* The shared parts of the probe: output, failures, options, time, random numbers, and teams of worker processes. */
#pragma once

#include "sys.h"

/* Increased when the output changes so that an older reader would misread it. */
#define PROBE_VERSION "1"

/* The exit codes. A command that fails exits with EXIT_FAILED unless its file documents another code. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* The commands. Each has its own file, except the two that exit at once. */
_Noreturn void command_confinement(char **argv);
_Noreturn void command_cpus(char **argv);
_Noreturn void command_daemon(char **argv, char **envp);
_Noreturn void command_drills(char **argv);
_Noreturn void command_enter(char **argv, char **envp);
_Noreturn void command_exit(char **argv);
_Noreturn void command_files(char **argv);
_Noreturn void command_forks(char **argv);
_Noreturn void command_grow(char **argv);
_Noreturn void command_kvm(char **argv);
_Noreturn void command_latency(char **argv, const char *self);
_Noreturn void command_pause(char **argv);
_Noreturn void command_reach(char **argv);
_Noreturn void command_ready(char **argv);
_Noreturn void command_rights(char **argv);
_Noreturn void command_sequence(char **argv, char **envp);
_Noreturn void command_serve(char **argv);
_Noreturn void command_stream(char **argv);
_Noreturn void command_syscall(char **argv);
_Noreturn void command_tick(char **argv);
_Noreturn void command_write(char **argv);

/* The adapter, selected by the name of the file (adapter.c). */
bool is_adapter(void);
_Noreturn void run_adapter(char **argv, char **envp);

/* Strings (mem.c). */
bool same(const char *a, const char *b);
size_t length(const char *s);

/* Buffered output (sink.c). A write error on out ends the program; a write error on err is ignored. */
struct sink {
	int fd;
	size_t len;
	char buf[4096];
};

extern struct sink out, err;

void put(struct sink *s, const char *text);
void put_escaped(struct sink *s, const char *text, size_t n); /* the inside of a string of JSON; a byte is a character of Latin-1 */
void put_number(struct sink *s, uint64_t n);
void put_hex(struct sink *s, uint64_t value, unsigned digits);
void put_error(struct sink *s, long error); /* the name and the number of a negative error (fail.c) */
void put_fixed(struct sink *s, double value); /* three decimals; value in [0, 9e18) */
void flush(struct sink *s);

/* The result of a measuring command: JSON lines (report.c). */
void report_metric(const char *name, double value, const char *unit);
/* A command puts the text of a fact on out between the two calls. */
void begin_fact(const char *name);
void end_fact(void);
void report_text(const char *name, const char *text, size_t n);
void report_number(const char *name, long value); /* a negative value is an error */
void report_line(void); /* counts a line that the caller has written itself */
_Noreturn void report_done(void);

/* Failures (fail.c). error is a negative error number, or 0 without one; subject is the object of the failed operation, or
 * NULL. */
_Noreturn void die(int code, const char *command, const char *what, const char *subject, long error);
_Noreturn void usage(const char *command, const char *what, const char *subject);

/* Options (options.c). */
enum option_kind { OPTION_NUMBER, OPTION_TEXT, OPTION_LIST, OPTION_FLAG };

enum { LIST_MAX = 32 };

struct list {
	size_t n;
	char *items[LIST_MAX];
	const char *names[LIST_MAX]; /* the option of each item, because several options can share a list */
};

struct option {
	const char *name;
	enum option_kind kind;
	void *value;	   /* uint64_t, char *, struct list or bool, by kind */
	uint64_t min, max; /* the range of a number */
};

/* parse_options parses options until "--" or the first other word, and returns the remaining words. parse_all refuses
 * remaining words. Both end the program after an error. */
char **parse_options(const char *command, char **argv, const struct option *options, size_t n);
void parse_all(const char *command, char **argv, const struct option *options, size_t n);
bool parse_number(const char *text, uint64_t *value);

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* The longest duration of a measurement: an hour. */
#define MS_MAX 3600000

/* CLOCK_MONOTONIC (clock.c). Without a C library the vDSO is unavailable, so each read of the clock is a system call, and
 * commands read it rarely. */
uint64_t now_ns(void);

/* Deterministic random numbers: splitmix64 (random.c). */
uint64_t random_next(uint64_t *state);
unsigned random_below(uint64_t *state, unsigned n);

/* Signals (signals.c). */
void exit_on_sigterm(bool writes); /* writes: a line "signal" before the exit */
long alarm_after_ms(uint64_t ms); /* alarm_rang turns true then */
extern volatile bool alarm_rang;

/* Teams of worker processes (team.c). */
enum { TEAM_MAX = 256, TEAM_COUNTERS = 12 };

struct worker {
	_Alignas(128) uint64_t counts[TEAM_COUNTERS]; /* in its own cache line */
	uint64_t elapsed_ns; /* from the common start to the end of the worker's work */
	uint64_t seed;
	unsigned index;
	long error; /* negative if it failed */
	const char *failed; /* the failed operation */
};

struct team {
	const char *command;
	unsigned size;
	uint64_t ms;
	uint64_t seed;
	/* prepare runs before the common start and is not measured; it may be NULL.
	 * work runs until over() tells it to end. Both return 0, or a negative error
	 * with worker->failed set. */
	long (*prepare)(struct worker *);
	long (*work)(struct worker *);
	struct worker *workers; /* shared by all; filled in by team_run */
};

/* team_run returns when all workers have exited. If a worker fails, the others stop early, and team_run returns the failed
 * one. */
struct worker *team_run(struct team *t);
bool over(void);
/* team_rate returns the sum of the workers' rates of a counter, per second. */
double team_rate(const struct team *t, unsigned counter);
uint64_t team_count(const struct team *t, unsigned counter);
/* shared_memory ends the program if the kernel has no memory. */
void *shared_memory(const char *command, size_t n);
