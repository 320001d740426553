/* stream: memory bandwidth by the four kernels of STREAM (J. D. McCalpin, "Memory bandwidth
 * and machine balance in current high performance computers", 1995), written anew.
 *
 *   Copy   c = a          16 bytes an element
 *   Scale  b = s·c        16
 *   Add    c = a + b      24
 *   Triad  a = b + s·c    24
 *
 * Like in STREAM, a round has REPETITIONS repetitions of the four kernels, the first repetition does not count, and the
 * values of the arrays are checked after each round. Unlike STREAM, it repeats rounds until the time is over. Each round has fresh arrays,
 * because the values grow 15-fold per repetition. Copy, Scale, Add and Triad are the best rates, as in STREAM's report, and the
 * medians are reported as well. A flag of the build prevents the compiler
 * from replacing Copy with a call of memcpy. Each array should be at least four times as large as the last-level cache. The
 * caller chooses the size.
 *
 * --copies N uses N processes with arrays of their own, like RAMspeed/SMP (R. Hollander, P. Bolotoff), which wang fig. 8
 * uses. All copies execute a kernel at the same time: its time lasts from the moment when the last copy is ready to the end of the last
 * copy, as in STREAM with OpenMP, and its rate counts the bytes of all copies. One copy is STREAM without OpenMP.
 *
 * With --lines, and one copy, it writes a line "moved BYTES" after each repetition instead of the result, for a reader that measures the
 * rate over time. The fresh arrays and the check of each round delay one line in REPETITIONS. */
#include "probe.h"

enum { REPETITIONS = 10, KERNELS = 4, TIMES_MAX = 4096 };

static const double scalar = 3.0;

static double *a, *b, *c;
static size_t n;
static uint64_t copies = 1;

/* The state that all copies share. */
static struct shared {
	uint32_t arrived, turn; /* of the meetings */
	uint64_t at; /* the time of the last meeting */
	bool more;
	size_t count; /* of the repetitions that count */
	uint64_t times[KERNELS][TIMES_MAX];
} alone, *all = &alone;

/* meet waits until all copies have called it, and sets the time when the last one does. It returns false if a copy has failed. */
static bool meet(uint64_t *at)
{
	/* A copy that was killed wakes no other one. */
	static const struct __kernel_timespec soon = {.tv_nsec = 100000000};
	uint32_t turn = __atomic_load_n(&all->turn, __ATOMIC_ACQUIRE);
	if (__atomic_add_fetch(&all->arrived, 1, __ATOMIC_ACQ_REL) == copies) {
		all->arrived = 0;
		all->at = now_ns();
		__atomic_store_n(&all->turn, turn + 1, __ATOMIC_RELEASE);
		if (copies > 1)
			sys_futex_wake_shared(&all->turn, TEAM_MAX);
	}
	while (__atomic_load_n(&all->turn, __ATOMIC_ACQUIRE) == turn) {
		if (over())
			return false;
		sys_futex_wait_shared(&all->turn, turn, &soon);
	}
	*at = all->at;
	return true;
}

__attribute__((noinline)) static void copy(double *restrict to, const double *restrict x)
{
	for (size_t i = 0; i < n; i++)
		to[i] = x[i];
}

__attribute__((noinline)) static void scale(double *restrict to, const double *restrict x)
{
	for (size_t i = 0; i < n; i++)
		to[i] = scalar * x[i];
}

__attribute__((noinline)) static void add(double *restrict to, const double *restrict x, const double *restrict y)
{
	for (size_t i = 0; i < n; i++)
		to[i] = x[i] + y[i];
}

__attribute__((noinline)) static void triad(double *restrict to, const double *restrict x, const double *restrict y)
{
	for (size_t i = 0; i < n; i++)
		to[i] = x[i] + scalar * y[i];
}

static void fill(void)
{
	for (size_t i = 0; i < n; i++) {
		a[i] = 1;
		b[i] = 2;
		c[i] = 0;
	}
}

/* Returns false if another copy has failed. */
static bool repetition(uint64_t took[KERNELS])
{
	uint64_t at[KERNELS + 1];
	if (!meet(&at[0]))
		return false;
	copy(c, a);
	if (!meet(&at[1]))
		return false;
	scale(b, c);
	if (!meet(&at[2]))
		return false;
	add(c, a, b);
	if (!meet(&at[3]))
		return false;
	triad(a, b, c);
	if (!meet(&at[4]))
		return false;
	for (int k = 0; k < KERNELS; k++)
		took[k] = at[k + 1] - at[k];
	return true;
}

/* The highest mean relative error that STREAM accepts for doubles. */
static const double tolerance = 1e-13;

static bool is_right(const double *v, double want)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += __builtin_fabs(v[i] - want);
	return sum / (double)n / want <= tolerance; /* false for NaN */
}

/* Returns the failure, or NULL. */
static const char *check(int repetitions)
{
	double x = 1, y = 2, z = 0;
	for (int i = 0; i < repetitions; i++) {
		z = x;
		y = scalar * z;
		z = x + y;
		x = y + scalar * z;
	}
	if (!is_right(a, x))
		return "memory holds wrong values: array a";
	if (!is_right(b, y))
		return "memory holds wrong values: array b";
	if (!is_right(c, z))
		return "memory holds wrong values: array c";
	return NULL;
}

static void sort(uint64_t *v, size_t count)
{
	for (size_t i = 1; i < count; i++)
		for (size_t j = i; j > 0 && v[j - 1] > v[j]; j--) {
			uint64_t swap = v[j];
			v[j] = v[j - 1];
			v[j - 1] = swap;
		}
}

/* Makes the arrays of a copy. */
static long arrays(struct worker *w)
{
	double **const each[] = {&a, &b, &c};
	for (size_t i = 0; i < COUNT(each); i++) {
		long p = sys_mmap(n * sizeof *a, MAP_PRIVATE);
		if (p < 0) {
			w->failed = "map an array";
			return p;
		}
		*each[i] = (double *)p;
	}
	return 0;
}

static uint64_t ms = 1000;

/* The work of a copy. The first one keeps the times, and decides when all end. */
static long rounds(struct worker *w)
{
	uint64_t start = now_ns(), ignored;
	bool first = w->index == 0, more = true;
	while (more) {
		fill();
		int done = 0;
		do {
			uint64_t took[KERNELS];
			if (!repetition(took))
				return 0; /* another copy reports the failure */
			if (done++ > 0 && first) {
				for (int k = 0; k < KERNELS; k++)
					all->times[k][all->count] = took[k];
				all->count++;
			}
			if (first)
				all->more = all->count < 2 || (now_ns() - start < ms * 1000000 && all->count < TIMES_MAX);
			if (!meet(&ignored))
				return 0;
			more = all->more;
		} while (more && done < REPETITIONS);
		w->failed = check(done);
		if (w->failed)
			return -EIO;
	}
	return 0;
}

_Noreturn static void report(void)
{
	static const struct {
		const char *best, *median;
		double bytes;
	} kernels[KERNELS] = {
		{"Copy", "CopyMedian", 16},
		{"Scale", "ScaleMedian", 16},
		{"Add", "AddMedian", 24},
		{"Triad", "TriadMedian", 24},
	};
	for (int k = 0; k < KERNELS; k++) {
		double bytes = kernels[k].bytes * (double)n * 1e9 * (double)copies;
		uint64_t *t = all->times[k];
		size_t count = all->count;
		sort(t, count);
		double median = ((double)t[(count - 1) / 2] + (double)t[count / 2]) / 2;
		report_metric(kernels[k].best, bytes / (double)t[0], "B/s");
		report_metric(kernels[k].median, bytes / median, "B/s");
	}
	report_metric("Repetitions", (double)all->count, "count");
	report_done();
}

/* moves repeats rounds for a time, and writes a line for each repetition. */
_Noreturn static void moves(void)
{
	uint64_t start = now_ns();
	for (;;) {
		fill();
		for (int done = 0; done < REPETITIONS; done++) {
			uint64_t took[KERNELS];
			repetition(took);
			put(&out, "moved ");
			put_number(&out, (16 + 16 + 24 + 24) * n);
			put(&out, "\n");
			flush(&out);
			if (now_ns() - start >= ms * 1000000)
				sys_exit(EXIT_OK);
		}
		const char *wrong = check(REPETITIONS);
		if (wrong)
			die(EXIT_FAILED, "stream", wrong, NULL, -EIO);
	}
}

void command_stream(char **argv)
{
	uint64_t mib = 64;
	bool lines = false;
	const struct option options[] = {
		{"--mib", OPTION_NUMBER, &mib, 1, 1 << 16},
		{"--ms", OPTION_NUMBER, &ms, 1, MS_MAX},
		{"--copies", OPTION_NUMBER, &copies, 1, TEAM_MAX},
		{"--lines", OPTION_FLAG, &lines, 0, 0},
	};
	parse_all("stream", argv, options, COUNT(options));
	if (lines && copies > 1)
		usage("stream", "--lines needs one copy", NULL);

	n = (size_t)(mib << 20) / sizeof *a;
	struct worker one = {.index = 0}, *bad = NULL;
	if (copies == 1) {
		one.error = arrays(&one);
		if (lines && one.error == 0)
			moves();
		if (one.error == 0)
			one.error = rounds(&one);
		if (one.error < 0)
			bad = &one;
	} else {
		all = shared_memory("stream", sizeof *all);
		/* The copies end together, and not by the team's alarm. */
		struct team team = {.command = "stream", .size = (unsigned)copies, .ms = MS_MAX, .prepare = arrays, .work = rounds};
		bad = team_run(&team);
	}
	if (bad)
		die(EXIT_FAILED, "stream", bad->failed, NULL, bad->error);
	report();
}
