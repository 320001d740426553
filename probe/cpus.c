/* cpus: writes the list of its allowed CPUs. */
#include "cpus.h"

enum { WORD_BITS = 8 * sizeof(unsigned long) };

bool has_cpu(const struct cpus *set, unsigned cpu)
{
	return cpu < CPUS_MAX && set->words[cpu / WORD_BITS] >> cpu % WORD_BITS & 1;
}

void add_cpu(struct cpus *set, unsigned cpu) { set->words[cpu / WORD_BITS] |= 1UL << cpu % WORD_BITS; }

/* Reads a number below CPUS_MAX and moves past it. */
static bool read_cpu(const char **text, unsigned *cpu)
{
	const char *p = *text;
	for (*cpu = 0; *p >= '0' && *p <= '9' && *cpu < CPUS_MAX; p++)
		*cpu = *cpu * 10 + (unsigned)(*p - '0');
	bool read = p > *text && *cpu < CPUS_MAX;
	*text = p;
	return read;
}

bool parse_cpus(const char *text, struct cpus *set)
{
	for (;;) {
		unsigned first, last;
		if (!read_cpu(&text, &first))
			return false;
		last = first;
		if (*text == '-') {
			text++;
			if (!read_cpu(&text, &last) || last < first)
				return false;
		}
		for (unsigned cpu = first; cpu <= last; cpu++)
			add_cpu(set, cpu);
		if (!*text)
			return true;
		if (*text++ != ',')
			return false;
	}
}

void put_cpus(struct sink *s, const struct cpus *set)
{
	const char *separator = "";
	for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (!has_cpu(set, cpu))
			continue;
		put(s, separator);
		separator = ",";
		put_number(s, cpu);
		unsigned last = cpu;
		while (has_cpu(set, last + 1))
			last++;
		if (last > cpu) {
			put(s, "-");
			put_number(s, last);
		}
		cpu = last;
	}
}

void command_cpus(char **argv)
{
	static struct cpus set;
	parse_all("cpus", argv, NULL, 0);
	long e = sys_sched_getaffinity(&set, sizeof set);
	if (e < 0)
		die(EXIT_FAILED, "cpus", "ask on which CPUs it may run", NULL, e);
	put_cpus(&out, &set);
	put(&out, "\n");
	flush(&out);
	sys_exit(EXIT_OK);
}
