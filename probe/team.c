/* Teams: worker processes that start together and run for the same time.
 *
 * Workers are processes, because threads would need a C library. For the kernel the load of the original programs (UnixBench,
 * Blogbench) is the same with either. Workers share one piece of memory, and each writes only its own part. Each measures its own
 * time, so that a worker that the scheduler starts late is not charged for the wait. */
#include "probe.h"

/* The first worker that fails sets it, and the others stop. */
static volatile bool *failed;

bool over(void) { return alarm_rang || *failed; }

void *shared_memory(const char *command, size_t n)
{
	long p = sys_mmap(n, MAP_SHARED);
	if (p < 0)
		die(EXIT_FAILED, command, "map shared memory", NULL, p);
	return (void *)p;
}

static long fail(struct worker *w, const char *what, long error)
{
	w->failed = what;
	return error;
}

/* Workers wait for the start in a read from a pipe without data. The read returns when the last write end is closed. */
static long wait_for_start(int gate)
{
	char byte;
	long n;
	do
		n = sys_read(gate, &byte, 1);
	while (n == -EINTR);
	return n;
}

static long measured(const struct team *t, struct worker *w)
{
	uint64_t start = now_ns();
	long e = alarm_after_ms(t->ms);
	if (e < 0)
		return fail(w, "set the alarm", e);
	e = t->work(w);
	w->elapsed_ns = now_ns() - start;
	return e;
}

_Noreturn static void be_worker(const struct team *t, struct worker *w, long parent, int ready[2], int gate[2])
{
	/* Workers must not outlive a killed parent, even if it is killed before this call. */
	long e = sys_prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (e < 0)
		fail(w, "ask for a signal at the end of the parent", e);
	if (sys_getppid() != parent)
		sys_exit(EXIT_FAILED);
	sys_close(ready[0]);
	sys_close(gate[1]);
	if (e == 0 && t->prepare)
		e = t->prepare(w);
	if (e < 0) {
		w->error = e;
		*failed = true;
	}
	sys_write(ready[1], "r", 1);
	sys_close(ready[1]);
	long waited = wait_for_start(gate[0]);
	if (e == 0 && waited < 0)
		e = fail(w, "wait for the start", waited);
	if (e == 0 && !over())
		e = measured(t, w);
	if (e < 0) {
		w->error = e;
		*failed = true;
	}
	sys_exit(EXIT_OK);
}

/* Waits until every worker is ready or has exited. Each closes its end of the pipe then. */
static void wait_until_ready(int ready)
{
	char bytes[64];
	long n;
	do
		n = sys_read(ready, bytes, sizeof bytes);
	while (n > 0 || n == -EINTR);
}

/* Workers can wait for each other, so the first one that was killed is noticed at once, whichever it is. */
static struct worker *reap(struct team *t, const long *pids, unsigned started)
{
	for (unsigned left = started; left > 0;) {
		int status = 0;
		long pid = sys_wait(-1, &status);
		if (pid == -EINTR)
			continue;
		for (unsigned i = 0; i < started; i++) {
			struct worker *w = &t->workers[i];
			if (pid >= 0 && pid != pids[i])
				continue;
			left--;
			if (!w->failed && (pid < 0 || status)) {
				w->failed = "a worker was killed or cannot be waited for";
				w->error = pid < 0 ? pid : 0;
				*failed = true;
			}
		}
		if (pid < 0)
			break;
	}
	for (unsigned i = 0; i < started; i++)
		if (t->workers[i].failed)
			return &t->workers[i];
	return NULL;
}

struct worker *team_run(struct team *t)
{
	static long pids[TEAM_MAX];
	long parent = sys_getpid();
	int ready[2], gate[2];
	long e;

	failed = shared_memory(t->command, sizeof *failed);
	t->workers = shared_memory(t->command, t->size * sizeof *t->workers);
	if ((e = sys_pipe(ready)) < 0 || (e = sys_pipe(gate)) < 0)
		die(EXIT_FAILED, t->command, "make a pipe", NULL, e);
	unsigned started = 0;
	for (; started < t->size; started++) {
		struct worker *w = &t->workers[started];
		w->index = started;
		w->seed = t->seed + started;
		pids[started] = sys_fork();
		if (pids[started] == 0)
			be_worker(t, w, parent, ready, gate);
		if (pids[started] < 0) {
			w->error = fail(w, "fork a worker", pids[started]);
			*failed = true;
			break;
		}
	}
	sys_close(ready[1]);
	sys_close(gate[0]);
	wait_until_ready(ready[0]);
	sys_close(ready[0]);
	sys_close(gate[1]);
	struct worker *bad = reap(t, pids, started);
	return bad || started == t->size ? bad : &t->workers[started];
}

uint64_t team_count(const struct team *t, unsigned counter)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < t->size; i++)
		sum += t->workers[i].counts[counter];
	return sum;
}

double team_rate(const struct team *t, unsigned counter)
{
	double sum = 0;
	for (unsigned i = 0; i < t->size; i++)
		sum += (double)t->workers[i].counts[counter] * 1e9 / (double)t->workers[i].elapsed_ns;
	return sum;
}
