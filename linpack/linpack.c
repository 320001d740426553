/*
 * linpack: solves a dense system of linear equations and reports the rate.
 *
 *	linpack [--n N] [--runs R] [--threads T] [--library FILE]
 *	linpack --seconds S [--n N] [--threads T] [--library FILE]
 *
 * It is the LINPACK benchmark for any N: OpenBLAS (dgetrf_, dgetrs_) solves A x = b in double precision by LU factorisation with
 * partial pivoting. dgesv_ would do both, but dgesv_ of OpenBLAS 0.3.29 uses a single thread for one right side. A fixed generator
 * creates the matrix and the right side, so that each run solves the same system. The rate counts 2/3 n³ + 2 n² operations,
 * independent of the library's real number of operations (Dongarra, Luszczek, Petitet: The LINPACK Benchmark: past, present and
 * future, 2003). A solution counts only if ‖Ax − b‖ / (‖A‖ ‖x‖ n ε) < 16, with infinity norms,
 * like HPL's check.
 *
 * It prints one line of JSON:
 *
 *	{"program":"linpack","version":1,"n":5000,"runs":2,"threads":1,"seconds":[1.912,1.903],
 *	 "flops_per_second":43800000000,"residual":0.0041}
 *
 * flops_per_second is the rate of the fastest run. residual is the highest of all runs, in the units of the check. The exit code
 * is 1 after an error or a failed check, and 2 after wrong arguments.
 *
 * With --seconds it solves the system again and again for S seconds, and prints a line "solved K" after the Kth solution,
 * for a reader that measures the rate over time. The first solution is checked as above. The others must equal the first
 * one up to the check's limit, which takes n operations instead of n²: a full check would leave other CPUs idle meanwhile.
 */
#include <dlfcn.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { max_n = 40000, max_runs = 1000, max_threads = 1024, max_seconds = 86400 };

static const double limit = 16.0;

/* Debian's OpenBLAS uses 32-bit integers. */
typedef void dgetrf(const int *m, const int *n, double *a, const int *lda, int *pivots, int *info);
typedef void dgetrs(const char *trans, const int *n, const int *nrhs, const double *a, const int *lda, const int *pivots,
	double *b, const int *ldb, int *info, size_t trans_length);
typedef void set_threads(int);
typedef int get_threads(void);

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "linpack: %s%s%s\n", what, why ? ": " : "", why ? why : "");
	exit(1);
}

static void misuse(const char *what, const char *value)
{
	fprintf(stderr, "linpack: %s %s\nusage: linpack [--n N] [--runs R | --seconds S] [--threads T] [--library FILE]\n", what, value);
	exit(2);
}

static long number(const char *name, const char *value, long most)
{
	char *end;
	errno = 0;
	long n = value ? strtol(value, &end, 10) : 0;
	if (!value || errno || *end || end == value || n < 1 || n > most) {
		fprintf(stderr, "linpack: %s must be from 1 to %ld\n", name, most);
		exit(2);
	}
	return n;
}

/* The generator is splitmix64 (Steele, Lea, Flood 2014). Elements are in [-0.5, 0.5). */
static double element(uint64_t *state)
{
	uint64_t z = *state += 0x9E3779B97F4A7C15u;
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	z ^= z >> 31;
	return (double)(z >> 11) * 0x1p-53 - 0.5;
}

static void generate(size_t n, double *a, double *b)
{
	uint64_t state = 1;
	for (size_t i = 0; i < n * n; i++)
		a[i] = element(&state);
	for (size_t i = 0; i < n; i++)
		b[i] = element(&state);
}

static double greatest(size_t n, const double *v)
{
	double most = 0;
	for (size_t i = 0; i < n; i++)
		most = fmax(most, fabs(v[i]));
	return most;
}

/*
 * residual returns ‖Ax − b‖ / (‖A‖ ‖x‖ n ε). It generates A and b again, because the solution has overwritten them, by columns,
 * which is Fortran's order. r and sums are buffers for n elements each.
 */
static double residual(size_t n, double *a, const double *x, double *r, double *sums)
{
	generate(n, a, r);
	for (size_t i = 0; i < n; i++) {
		r[i] = -r[i];
		sums[i] = 0;
	}
	for (size_t j = 0; j < n; j++)
		for (size_t i = 0; i < n; i++) {
			r[i] += a[j * n + i] * x[j];
			sums[i] += fabs(a[j * n + i]);
		}
	return greatest(n, r) / (greatest(n, sums) * greatest(n, x) * (double)n * DBL_EPSILON);
}

static double now(void)
{
	struct timespec t;
	if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
		fail("read the clock", strerror(errno));
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double *room(size_t count)
{
	double *p = malloc(count * sizeof *p);
	if (!p)
		fail("allocate memory", strerror(errno));
	return p;
}

static void *symbol(void *library, const char *name)
{
	void *s = dlsym(library, name);
	if (!s)
		fail("look for a function", dlerror());
	return s;
}

/* differs reports whether two solutions differ by more than rounding explains. */
static int differs(size_t n, const double *x, const double *y)
{
	double most = 0;
	for (size_t i = 0; i < n; i++)
		most = fmax(most, fabs(x[i] - y[i]));
	return !(most <= limit * greatest(n, y) * (double)n * (double)n * DBL_EPSILON);
}

/* A system of equations with the buffers for its solution. */
struct system {
	dgetrf *factorise;
	dgetrs *solve;
	size_t n;
	double *a, *b, *r, *sums;
	int *pivots;
};

/* solved solves the system once, and returns the time that this takes. */
static double solved(struct system *s)
{
	generate(s->n, s->a, s->b);
	int order = (int)s->n, one = 1, info = 0;
	double begun = now();
	s->factorise(&order, &order, s->a, &order, s->pivots, &info);
	if (info == 0)
		s->solve("N", &order, &one, s->a, &order, s->pivots, s->b, &order, &info, 1);
	double took = now() - begun;
	if (info != 0)
		fail("solve", "the matrix is singular, or the library refuses it");
	return took;
}

static double checked(struct system *s)
{
	double left = residual(s->n, s->a, s->b, s->r, s->sums);
	if (!(left < limit)) {
		fprintf(stderr, "linpack: the solution is wrong: its residual is %g, and must be below %g\n", left, limit);
		exit(1);
	}
	return left;
}

static void again(struct system *s, double end)
{
	double *first = room(s->n);
	for (long count = 1; count == 1 || now() < end; count++) {
		solved(s);
		if (count == 1) {
			checked(s);
			memcpy(first, s->b, s->n * sizeof *first);
		} else if (differs(s->n, s->b, first)) {
			fail("solve", "a solution differs from the first one");
		}
		printf("solved %ld\n", count);
		if (fflush(stdout) != 0)
			fail("write the progress", strerror(errno));
	}
	free(first);
}

int main(int argc, char **argv)
{
	long n = 1000, runs = 1, threads = 0, repeat = 0;
	const char *file = "libopenblas.so.0";
	for (int i = 1; i < argc; i += 2) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;
		if (!strcmp(argv[i], "--n"))
			n = number("--n", value, max_n);
		else if (!strcmp(argv[i], "--runs"))
			runs = number("--runs", value, max_runs);
		else if (!strcmp(argv[i], "--seconds"))
			repeat = number("--seconds", value, max_seconds);
		else if (!strcmp(argv[i], "--threads"))
			threads = number("--threads", value, max_threads);
		else if (!strcmp(argv[i], "--library") && value)
			file = value;
		else
			misuse("cannot make sense of", argv[i]);
	}

	void *library = dlopen(file, RTLD_NOW);
	if (!library)
		fail("load the library", dlerror());
	dgetrf *factorise = (dgetrf *)symbol(library, "dgetrf_");
	dgetrs *solve = (dgetrs *)symbol(library, "dgetrs_");
	if (threads)
		((set_threads *)symbol(library, "openblas_set_num_threads"))((int)threads);
	threads = ((get_threads *)symbol(library, "openblas_get_num_threads"))();

	size_t size = (size_t)n;
	struct system s = {
		.factorise = factorise, .solve = solve, .n = size, .a = room(size * size), .b = room(size), .r = room(size), .sums = room(size),
		.pivots = malloc(size * sizeof *s.pivots),
	};
	if (!s.pivots)
		fail("allocate memory", strerror(errno));
	if (repeat) {
		again(&s, now() + (double)repeat);
		return 0;
	}

	double *seconds = room((size_t)runs), fastest = INFINITY, worst = 0;
	for (long run = 0; run < runs; run++) {
		seconds[run] = solved(&s);
		worst = fmax(worst, checked(&s));
		fastest = fmin(fastest, seconds[run]);
	}
	if (!(fastest > 0))
		fail("measure", "it took no time; give a greater --n");

	double operations = 2.0 / 3.0 * (double)n * (double)n * (double)n + 2.0 * (double)n * (double)n;
	printf("{\"program\":\"linpack\",\"version\":1,\"n\":%ld,\"runs\":%ld,\"threads\":%ld,\"seconds\":[", n, runs, threads);
	for (long run = 0; run < runs; run++)
		printf("%s%.9f", run ? "," : "", seconds[run]);
	printf("],\"flops_per_second\":%.0f,\"residual\":%.9g}\n", operations / fastest, worst);
	if (fflush(stdout) != 0)
		fail("write the result", strerror(errno));
	return 0;
}
