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
 * medians are reported as well. It uses one process, like STREAM without OpenMP. A flag of the build prevents the compiler
 * from replacing Copy with a call of memcpy. Each array should be at least four times as large as the last-level cache. The
 * caller chooses the size.
 *
 * With --lines it writes a line "moved BYTES" after each repetition instead of the result, for a reader that measures the
 * rate over time. The fresh arrays and the check of each round delay one line in REPETITIONS. */
#include "probe.h"

enum { REPETITIONS = 10, KERNELS = 4, TIMES_MAX = 4096 };

static const double scalar = 3.0;

static double *a, *b, *c;
static size_t n;

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

static void repetition(uint64_t took[KERNELS])
{
	uint64_t at[KERNELS + 1];
	at[0] = now_ns();
	copy(c, a);
	at[1] = now_ns();
	scale(b, c);
	at[2] = now_ns();
	add(c, a, b);
	at[3] = now_ns();
	triad(a, b, c);
	at[4] = now_ns();
	for (int k = 0; k < KERNELS; k++)
		took[k] = at[k + 1] - at[k];
}

/* The highest mean relative error that STREAM accepts for doubles. */
static const double tolerance = 1e-13;

static void check_array(const char *name, const double *v, double want)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += __builtin_fabs(v[i] - want);
	/* Also true for NaN. */
	if (!(sum / (double)n / want <= tolerance))
		die(EXIT_FAILED, "stream", "memory holds wrong values: array", name, 0);
}

static void check(int repetitions)
{
	double x = 1, y = 2, z = 0;
	for (int i = 0; i < repetitions; i++) {
		z = x;
		y = scalar * z;
		z = x + y;
		x = y + scalar * z;
	}
	check_array("a", a, x);
	check_array("b", b, y);
	check_array("c", c, z);
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

static double *array(size_t bytes)
{
	long p = sys_mmap(bytes, MAP_PRIVATE);
	if (p < 0)
		die(EXIT_FAILED, "stream", "map an array", NULL, p);
	return (double *)p;
}

_Noreturn static void report(uint64_t times[KERNELS][TIMES_MAX], size_t count)
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
		double bytes = kernels[k].bytes * (double)n * 1e9;
		uint64_t *t = times[k];
		sort(t, count);
		double median = ((double)t[(count - 1) / 2] + (double)t[count / 2]) / 2;
		report_metric(kernels[k].best, bytes / (double)t[0], "B/s");
		report_metric(kernels[k].median, bytes / median, "B/s");
	}
	report_metric("Repetitions", (double)count, "count");
	report_done();
}

/* moves repeats rounds for a time, and writes a line for each repetition. */
_Noreturn static void moves(uint64_t ms)
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
		check(REPETITIONS);
	}
}

void command_stream(char **argv)
{
	uint64_t mib = 64, ms = 1000;
	bool lines = false;
	const struct option options[] = {
		{"--mib", OPTION_NUMBER, &mib, 1, 1 << 16},
		{"--ms", OPTION_NUMBER, &ms, 1, MS_MAX},
		{"--lines", OPTION_FLAG, &lines, 0, 0},
	};
	parse_all("stream", argv, options, COUNT(options));

	static uint64_t times[KERNELS][TIMES_MAX];
	size_t bytes = (size_t)mib << 20;
	n = bytes / sizeof *a;
	a = array(bytes);
	b = array(bytes);
	c = array(bytes);
	if (lines)
		moves(ms);
	uint64_t start = now_ns();
	size_t count = 0;
	bool more = true;
	while (more) {
		fill();
		int done = 0;
		do {
			uint64_t took[KERNELS];
			repetition(took);
			if (done++ > 0) {
				for (int k = 0; k < KERNELS; k++)
					times[k][count] = took[k];
				count++;
			}
			more = count < 2 || (now_ns() - start < ms * 1000000 && count < TIMES_MAX);
		} while (more && done < REPETITIONS);
		check(done);
	}
	report(times, count);
}
