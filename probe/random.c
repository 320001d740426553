/* Random numbers from a seed: splitmix64 (Steele, Lea, Flood 2014). It has no bad seeds, so workers can use consecutive
 * seeds. */
#include "probe.h"

uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* All ranges are far below 2^32, so the bias of the modulo is below 1 in 2^32. */
unsigned random_below(uint64_t *state, unsigned n) { return (unsigned)(random_next(state) % n); }
