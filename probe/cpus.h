/* Sets of CPUs, as the kernel has them and spells them: "0-3,6". */
#pragma once

#include "probe.h"

enum { CPUS_MAX = 8192 };

struct cpus {
	unsigned long words[CPUS_MAX / (8 * sizeof(unsigned long))];
};

bool has_cpu(const struct cpus *set, unsigned cpu);
void add_cpu(struct cpus *set, unsigned cpu);
/* parse_cpus gives false for what is no list, or an empty one, or has too large a number. */
bool parse_cpus(const char *text, struct cpus *set);
void put_cpus(struct sink *s, const struct cpus *set);
