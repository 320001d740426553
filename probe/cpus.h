/* Sets of CPUs in the kernel's representation and text format: "0-3,6". */
#pragma once

#include "probe.h"

enum { CPUS_MAX = 8192 };

struct cpus {
	unsigned long words[CPUS_MAX / (8 * sizeof(unsigned long))];
};

bool has_cpu(const struct cpus *set, unsigned cpu);
void add_cpu(struct cpus *set, unsigned cpu);
/* parse_cpus returns false if the list is malformed, empty, or has a number that is too large. */
bool parse_cpus(const char *text, struct cpus *set);
void put_cpus(struct sink *s, const struct cpus *set);
