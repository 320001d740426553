/* latency: measures the distribution of the duration of single system calls.
 *
 * Method. The clock is itself a system call here (no C library, no vDSO), and some sandboxes trap or distort the CPU's
 * counters. So a cheap call cannot be timed alone. Calls are timed in batches of k, with one read of the clock between two
 * batches. k is the smallest power of two with which a batch lasts at least BATCH_NS and BATCH_CLOCKS reads of the clock. So
 * the clock contributes less than 1/32 = 3 % to the result, equally on every runtime. Nothing is subtracted. A value is a
 * batch's time divided by k. With k = 1 (part of the output) the values are single calls, with larger k they are means over
 * k calls.
 *
 * Every call gets the same share of the time, and at least one batch. Percentiles are exact (nearest rank). They do not
 * come from the histogram, which has buckets of 1/16 octave.
 *
 * With --call, only that call is measured, one by one: --samples times, after UNRECORDED calls that do not count. Each value
 * includes one read of the clock. The largest TAIL values follow the histogram, each with its number from 0, in order. They are for the
 * worst case, where a read of the clock is small. */
#include "latency.h"

enum {
	BATCH_NS = 20000,
	BATCH_CLOCKS = 32,
	BATCHES_MAX = 1 << 18, /* 2 MiB; enough for more than 5 s per call with batches of 20 µs */
	SAMPLES_MAX = 1000000, /* of single calls: 8 MiB, and as much for the order */
	UNRECORDED = 1000,
	TAIL = 4000,
	SUB_BITS = 4,
	SUBS = 1 << SUB_BITS,
	BUCKETS = (64 - SUB_BITS + 1) * SUBS,
};

static void open_subject(struct subject *s, const char *path)
{
	struct {
		const char *path;
		int flags, *fd;
	} files[] = {
		{path, O_RDONLY, &s->file},
		{"/dev/zero", O_RDONLY, &s->zero},
		{"/dev/null", O_WRONLY, &s->null},
	};
	s->path = path;
	for (size_t i = 0; i < COUNT(files); i++) {
		long fd = sys_open(files[i].path, files[i].flags, 0);
		if (fd < 0)
			die(EXIT_FAILED, "latency", "open", files[i].path, fd);
		*files[i].fd = (int)fd;
	}
	long e = sys_pipe(s->pipe);
	if (e < 0)
		die(EXIT_FAILED, "latency", "make a pipe", NULL, e);
}

static void batch(const struct call *c, struct subject *s, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		long e = c->run(s);
		if (e < 0)
			die(EXIT_FAILED, "latency", "call", c->name, e);
	}
}

/* The duration of one read of the clock: the shortest of a few, because a disturbed one would make all batches too
 * long. */
static uint64_t clock_cost(void)
{
	uint64_t best = UINT64_MAX;
	for (int i = 0; i < 64; i++) {
		uint64_t start = now_ns();
		uint64_t took = now_ns() - start;
		if (took < best)
			best = took;
	}
	return best;
}

/* Returns whether the fastest batch of k lasts long enough. The first calls are slow. */
static bool lasts(const struct call *c, struct subject *s, uint64_t k, uint64_t batch_ns)
{
	for (int i = 0; i < 4; i++) {
		uint64_t start = now_ns();
		batch(c, s, k);
		if (now_ns() - start < batch_ns)
			return false;
	}
	return true;
}

static uint64_t calibrate(const struct call *c, struct subject *s, uint64_t batch_ns)
{
	uint64_t k = 1;
	while (!lasts(c, s, k, batch_ns))
		k *= 2;
	return k;
}

/* Fills times with the durations of batches and returns their number. */
static size_t measure(const struct call *c, struct subject *s, uint64_t k, uint64_t share_ns, uint64_t *times)
{
	uint64_t start = now_ns(), end, last = start;
	size_t n = 0;
	do {
		batch(c, s, k);
		end = now_ns();
		times[n++] = end - last;
		last = end;
	} while (end - start < share_ns && n < BATCHES_MAX);
	return n;
}

/* Sifts the value at root down in a heap of n values. */
static void sift(uint64_t *v, size_t root, size_t n)
{
	for (size_t child; (child = 2 * root + 1) < n; root = child) {
		if (child + 1 < n && v[child + 1] > v[child])
			child++;
		if (v[root] >= v[child])
			return;
		uint64_t swap = v[root];
		v[root] = v[child];
		v[child] = swap;
	}
}

static void heap_sort(uint64_t *v, size_t n)
{
	for (size_t root = n / 2; root-- > 0;)
		sift(v, root, n);
	for (size_t end = n; end-- > 1;) {
		uint64_t swap = v[0];
		v[0] = v[end];
		v[end] = swap;
		sift(v, 0, end);
	}
}

/* The nearest rank: the smallest value that is not exceeded by p per cent of all values. */
static uint64_t percentile(const uint64_t *sorted, size_t n, size_t p)
{
	size_t rank = (n * p + 99) / 100;
	return sorted[rank > 0 ? rank - 1 : 0];
}

static unsigned bucket(uint64_t ns)
{
	unsigned octave = 0;
	for (; ns >= 2 * SUBS; ns >>= 1)
		octave++;
	return octave * SUBS + (unsigned)ns;
}

static uint64_t bucket_low(unsigned b)
{
	if (b < SUBS)
		return b;
	return (uint64_t)(SUBS + b % SUBS) << (b / SUBS - 1);
}

static void put_field(const char *name, double value)
{
	put(&out, ",\"");
	put(&out, name);
	put(&out, "\":");
	put_fixed(&out, value);
}

static void put_histogram(const uint64_t *times, size_t n, uint64_t k)
{
	static unsigned counts[BUCKETS];
	for (size_t b = 0; b < BUCKETS; b++)
		counts[b] = 0;
	for (size_t i = 0; i < n; i++)
		counts[bucket(times[i] / k)]++;
	const char *separator = "";
	put(&out, ",\"hist\":[");
	for (unsigned b = 0; b < BUCKETS; b++) {
		if (!counts[b])
			continue;
		put(&out, separator);
		put(&out, "[");
		put_number(&out, bucket_low(b));
		put(&out, ",");
		put_number(&out, counts[b]);
		put(&out, "]");
		separator = ",";
	}
	put(&out, "]");
}

/* Writes the largest of n values in the order of their measurement. Of equal values at the end of the tail the first ones count. */
static void put_tail(const uint64_t *order, const uint64_t *sorted, size_t n)
{
	size_t kept = n < TAIL ? n : TAIL;
	uint64_t least = sorted[n - kept];
	size_t equal = kept;
	for (size_t i = n; i-- > n - kept && sorted[i] > least;)
		equal--;
	const char *separator = "";
	put(&out, ",\"tail\":[");
	for (size_t i = 0; i < n; i++) {
		if (order[i] < least || (order[i] == least && !equal))
			continue;
		if (order[i] == least)
			equal--;
		put(&out, separator);
		put(&out, "[");
		put_number(&out, i);
		put(&out, ",");
		put_number(&out, order[i]);
		put(&out, "]");
		separator = ",";
	}
	put(&out, "]");
}

/* Sorts times. order is a copy of them for the tail, or NULL. */
static void report(const struct call *c, uint64_t k, uint64_t *times, size_t n, const uint64_t *order)
{
	double per = 1 / (double)k;
	heap_sort(times, n);
	put(&out, "{\"call\":\"");
	put(&out, c->name);
	put(&out, "\",\"unit\":\"ns\",\"count\":");
	put_number(&out, n * k);
	put(&out, ",\"k\":");
	put_number(&out, k);
	put_field("min", (double)times[0] * per);
	put_field("p50", (double)percentile(times, n, 50) * per);
	put_field("p90", (double)percentile(times, n, 90) * per);
	put_field("p99", (double)percentile(times, n, 99) * per);
	put_field("max", (double)times[n - 1] * per);
	put_histogram(times, n, k);
	if (order)
		put_tail(order, times, n);
	put(&out, "}\n");
	report_line();
}

static _Noreturn void single(const char *name, size_t samples, struct subject *s)
{
	const struct call *c = NULL;
	for (unsigned i = 0; i < call_count; i++)
		if (same(calls[i].name, name))
			c = &calls[i];
	if (!c)
		usage("latency", "unknown call", name);
	uint64_t *times = shared_memory("latency", 2 * samples * sizeof *times), *order = times + samples;
	for (size_t i = 0; i < 2 * samples; i++)
		times[i] = 1; /* as below */
	batch(c, s, UNRECORDED);
	uint64_t last = now_ns();
	for (size_t i = 0; i < samples; i++) {
		batch(c, s, 1);
		uint64_t end = now_ns();
		times[i] = end - last;
		last = end;
	}
	for (size_t i = 0; i < samples; i++)
		order[i] = times[i];
	report(c, 1, times, samples, order);
	report_done();
}

void command_latency(char **argv, const char *self)
{
	uint64_t ms = 1000, samples = 10000;
	char *only = NULL;
	const struct option options[] = {
		{"--ms", OPTION_NUMBER, &ms, 1, MS_MAX},
		{"--call", OPTION_TEXT, &only, 0, 0},
		{"--samples", OPTION_NUMBER, &samples, 10, SAMPLES_MAX},
	};
	parse_all("latency", argv, options, COUNT(options));

	struct subject subject = {0};
	open_subject(&subject, self);
	if (only)
		single(only, samples, &subject);
	uint64_t *times = shared_memory("latency", BATCHES_MAX * sizeof *times);
	/* Touch the memory now, because a page fault must not happen in a batch. */
	for (size_t i = 0; i < BATCHES_MAX; i++)
		times[i] = 1;
	uint64_t batch_ns = clock_cost() * BATCH_CLOCKS;
	if (batch_ns < BATCH_NS)
		batch_ns = BATCH_NS;
	uint64_t share_ns = ms * 1000000 / call_count;
	for (unsigned i = 0; i < call_count; i++) {
		uint64_t start = now_ns();
		uint64_t k = calibrate(&calls[i], &subject, batch_ns);
		uint64_t spent = now_ns() - start;
		size_t n = measure(&calls[i], &subject, k, spent < share_ns ? share_ns - spent : 0, times);
		report(&calls[i], k, times, n, NULL);
	}
	report_done();
}
