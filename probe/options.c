/* Options of the command line: "--name VALUE", or "--name" for a flag. */
#include "probe.h"

bool parse_number(const char *text, uint64_t *value)
{
	uint64_t n = 0;
	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (unsigned)(*text - '0'), &n))
			return false;
	}
	*value = n;
	return true;
}

static void set_number(const char *command, const struct option *o, const char *text)
{
	uint64_t n;
	if (parse_number(text, &n) && n >= o->min && n <= o->max) {
		*(uint64_t *)o->value = n;
		return;
	}
	put(&err, command);
	put(&err, ": ");
	put(&err, o->name);
	put(&err, " must be a whole number from ");
	put_number(&err, o->min);
	put(&err, " to ");
	put_number(&err, o->max);
	put(&err, ", not ");
	put(&err, text);
	put(&err, "\n");
	flush(&err);
	sys_exit(EXIT_USAGE);
}

static void set(const char *command, const struct option *o, char *text)
{
	struct list *list = o->value;
	switch (o->kind) {
	case OPTION_NUMBER:
		set_number(command, o, text);
		break;
	case OPTION_TEXT:
		*(char **)o->value = text;
		break;
	case OPTION_LIST:
		if (list->n == LIST_MAX)
			usage(command, "too many of", o->name);
		list->names[list->n] = o->name;
		list->items[list->n++] = text;
		break;
	case OPTION_FLAG:
		*(bool *)o->value = true;
		break;
	}
}

char **parse_options(const char *command, char **argv, const struct option *options, size_t n)
{
	for (; *argv && argv[0][0] == '-'; argv++) {
		if (same(*argv, "--"))
			return argv + 1;
		const struct option *o = options;
		while (o < options + n && !same(o->name, *argv))
			o++;
		if (o == options + n)
			usage(command, "unknown option", *argv);
		if (o->kind != OPTION_FLAG && !*++argv)
			usage(command, "a value is missing after", o->name);
		set(command, o, *argv);
	}
	return argv;
}

void parse_all(const char *command, char **argv, const struct option *options, size_t n)
{
	char **rest = parse_options(command, argv, options, n);
	if (*rest)
		usage(command, "unexpected argument", *rest);
}
