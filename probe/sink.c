/* Buffered output of text and numbers. */
#include "probe.h"

struct sink out = {.fd = 1}, err = {.fd = 2};

void flush(struct sink *s)
{
	size_t done = 0;
	while (done < s->len) {
		long n = sys_write(s->fd, s->buf + done, s->len - done);
		if (n == -EINTR)
			continue;
		if (n < 0 && s == &out)
			die(EXIT_FAILED, "probe", "write output", NULL, n);
		if (n < 0)
			break;
		done += (size_t)n;
	}
	s->len = 0;
}

static void put_char(struct sink *s, char c)
{
	if (s->len == sizeof s->buf)
		flush(s);
	s->buf[s->len++] = c;
}

void put(struct sink *s, const char *text)
{
	while (*text)
		put_char(s, *text++);
}

void put_hex(struct sink *s, uint64_t value, unsigned digits)
{
	while (digits--)
		put_char(s, "0123456789abcdef"[value >> (4 * digits) & 15]);
}

void put_escaped(struct sink *s, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const unsigned char c = (unsigned char)text[i];
		if (c >= ' ' && c < 0x7f && c != '"' && c != '\\') {
			put_char(s, (char)c);
			continue;
		}
		put(s, "\\u00");
		put_hex(s, c, 2);
	}
}

void put_number(struct sink *s, uint64_t n)
{
	char digits[21];
	size_t at = sizeof digits - 1;
	digits[at] = 0;
	do
		digits[--at] = (char)('0' + n % 10);
	while (n /= 10);
	put(s, digits + at);
}

void put_fixed(struct sink *s, double value)
{
	uint64_t whole = (uint64_t)value;
	unsigned thousandths = (unsigned)((value - (double)whole) * 1000 + 0.5);
	if (thousandths == 1000) {
		whole++;
		thousandths = 0;
	}
	put_number(s, whole);
	put_char(s, '.');
	put_char(s, (char)('0' + thousandths / 100));
	put_char(s, (char)('0' + thousandths / 10 % 10));
	put_char(s, (char)('0' + thousandths % 10));
}
