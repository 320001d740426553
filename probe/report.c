/* The JSON lines of a measuring command.
 *
 * The last line has the number of the others, so that a reader detects truncated output. */
#include "probe.h"

static unsigned lines;

void report_metric(const char *name, double value, const char *unit)
{
	/* Also false for NaN. */
	if (!(value >= 0 && value < 9e18))
		die(EXIT_FAILED, "probe", "result is not a number that can be reported", name, 0);
	put(&out, "{\"metric\":\"");
	put(&out, name);
	put(&out, "\",\"value\":");
	put_fixed(&out, value);
	put(&out, ",\"unit\":\"");
	put(&out, unit);
	put(&out, "\"}\n");
	report_line();
}

void begin_fact(const char *name)
{
	put(&out, "{\"fact\":\"");
	put(&out, name);
	put(&out, "\",\"text\":\"");
}

void end_fact(void)
{
	put(&out, "\"}\n");
	report_line();
}

void report_text(const char *name, const char *text, size_t n)
{
	begin_fact(name);
	put_escaped(&out, text, n);
	end_fact();
}

void report_number(const char *name, long value)
{
	begin_fact(name);
	if (value < 0)
		put_error(&out, value);
	else
		put_number(&out, (uint64_t)value);
	end_fact();
}

void report_line(void) { lines++; }

void report_done(void)
{
	put(&out, "{\"done\":true,\"metrics\":");
	put_number(&out, lines);
	put(&out, "}\n");
	flush(&out);
	sys_exit(EXIT_OK);
}
