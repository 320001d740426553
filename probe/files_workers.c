/* The workers of files, see files.c. */
#include "files.h"

/* Random bytes: a file is a prefix of them. All but the comments of the bounded mixture begin with their length. Each worker process has
 * its own copy. */
static union {
	uint64_t words[PICTURE_MAX / 8];
	char bytes[PICTURE_MAX];
} content;

void fill_content(struct worker *w)
{
	for (size_t i = 0; i < COUNT(content.words); i++)
		content.words[i] = random_next(&w->seed);
}

static long fail(struct worker *w, const char *what, long error)
{
	w->failed = what;
	return error;
}

/* A file of a blog that is being replaced may be missing. Returns -ENOENT then, and the caller counts a miss. */
static long fail_unless_gone(struct worker *w, const char *what, long error)
{
	return error == -ENOENT ? error : fail(w, what, error);
}

bool missed(struct worker *w, long error)
{
	if (error != -ENOENT || w->failed)
		return false;
	w->counts[MISSES]++;
	return true;
}

void pause(void)
{
	const struct __kernel_timespec time = {.tv_nsec = PAUSE_MS * 1000000};
	sys_poll(NULL, 0, &time);
}

static unsigned between(struct worker *w, unsigned min, unsigned max)
{
	return min + random_below(&w->seed, max - min + 1);
}

/* Writes n bytes of content in pieces. */
static long write_all(struct worker *w, int fd, size_t n)
{
	for (size_t done = 0; done < n;) {
		size_t piece = n - done < WRITE_SIZE ? n - done : WRITE_SIZE;
		long e = sys_write(fd, content.bytes + done, piece);
		if (e < 0)
			return e;
		done += (size_t)e;
	}
	w->counts[BYTES_WRITTEN] += n;
	return 0;
}

long put_file(struct worker *w, struct name blog, struct name file, unsigned size)
{
	struct name temporary = temporary_name(blog, w->index);
	long fd = sys_open(temporary.text, O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (fd < 0)
		return fd;
	content.words[0] = size;
	long e = write_all(w, (int)fd, size);
	long closed = sys_close((int)fd);
	if (e == 0)
		e = closed;
	if (e == 0)
		e = sys_rename(temporary.text, file.text);
	return e;
}

static long put_article(struct worker *w, struct name blog, unsigned article)
{
	return put_file(w, blog, article_name(blog, article), between(w, ARTICLE_MIN, ARTICLE_MAX));
}

static long make_blog(struct worker *w, struct name blog)
{
	long e = sys_mkdir(blog.text, 0755);
	if (e < 0)
		return fail(w, "make a blog", e);
	for (unsigned i = 0; i < ARTICLES; i++) {
		e = put_article(w, blog, i);
		if (e < 0)
			return fail(w, "write an article", e);
		w->counts[ARTICLES_WRITTEN]++;
	}
	w->counts[BLOGS_WRITTEN]++;
	return 0;
}

long make_blogs(struct worker *w)
{
	for (unsigned i = 0; i < BLOGS; i++) {
		long e = make_blog(w, blog_name('b', w->index * BLOGS + i));
		if (e < 0)
			return e;
	}
	for (size_t i = 0; i < TEAM_COUNTERS; i++)
		w->counts[i] = 0;
	return 0;
}

long write_blogs(struct worker *w)
{
	struct name old = blog_name('x', w->index);
	for (unsigned i = 0; !over(); i = (i + 1) % BLOGS) {
		struct name blog = blog_name('b', w->index * BLOGS + i);
		long e = sys_rename(blog.text, old.text);
		if (e < 0)
			return fail(w, "take a blog away", e);
		if ((e = remove_blog(old.text)) < 0)
			return fail(w, "remove a blog", e);
		if ((e = make_blog(w, blog)) < 0)
			return e;
	}
	return 0;
}

long rewrite_articles(struct worker *w, unsigned blogs)
{
	while (!over()) {
		struct name blog = blog_name('b', random_below(&w->seed, blogs));
		long e = put_article(w, blog, random_below(&w->seed, ARTICLES));
		if (e == 0)
			w->counts[ARTICLES_REWRITTEN]++;
		else if (!missed(w, e))
			return fail(w, "rewrite an article", e);
		pause();
	}
	return 0;
}

static long append_to(struct worker *w, int fd)
{
	struct stat st;
	long e = sys_fstat(fd, &st);
	if (e < 0)
		return e;
	if (st.st_size > COMMENTS_MAX - COMMENT_MAX && (e = sys_truncate(fd, 0)) < 0)
		return e;
	return write_all(w, fd, between(w, COMMENT_MIN, COMMENT_MAX));
}

static long append_comment(struct worker *w, struct name comments)
{
	long fd = sys_open(comments.text, O_WRONLY | O_CREAT | O_APPEND, 0644);
	if (fd < 0)
		return fail_unless_gone(w, "open comments to append", fd);
	long e = append_to(w, (int)fd);
	long closed = sys_close((int)fd);
	if (e < 0 || (e = closed) < 0)
		return fail(w, "append a comment", e);
	w->counts[COMMENTS_WRITTEN]++;
	return 0;
}

long append_comments(struct worker *w, unsigned blogs)
{
	while (!over()) {
		struct name blog = blog_name('b', random_below(&w->seed, blogs));
		long e = append_comment(w, comments_name(blog, random_below(&w->seed, ARTICLES)));
		if (e < 0 && !missed(w, e))
			return e;
		pause();
	}
	return 0;
}

static union {
	uint64_t length; /* the first word of an article */
	char bytes[READ_SIZE];
} buffer;

/* Reads a file to its end, returns its length, and sets length to the value of the first word. */
static long read_all(struct worker *w, int fd, uint64_t *length)
{
	long total = 0;
	for (;;) {
		long n = sys_read(fd, buffer.bytes, READ_SIZE);
		if (n < 0)
			return n;
		if (n == 0)
			break;
		if (total == 0)
			*length = buffer.length;
		total += n;
	}
	w->counts[BYTES_READ] += (uint64_t)total;
	return total;
}

static long list(struct worker *w, struct name blog)
{
	long dir = sys_open(blog.text, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return fail_unless_gone(w, "open a blog to list it", dir);
	long n;
	while ((n = sys_getdents((int)dir, buffer.bytes, READ_SIZE)) > 0)
		;
	sys_close((int)dir);
	/* getdents returns -ENOENT for a removed directory. */
	return n < 0 ? fail_unless_gone(w, "list a blog", n) : 0;
}

long read_file(struct worker *w, struct name file)
{
	long fd = sys_open(file.text, O_RDONLY, 0);
	if (fd < 0)
		return fail_unless_gone(w, "open a file of a blog", fd);
	uint64_t length = 0;
	long n = read_all(w, (int)fd, &length);
	sys_close((int)fd);
	if (n < 0)
		return fail(w, "read a file of a blog", n);
	if (n < ARTICLE_MIN || (uint64_t)n != length)
		return fail(w, "a file is torn: its length is not the one it was written with", -EIO);
	return 0;
}

static long read_article(struct worker *w, struct name article)
{
	struct stat st;
	long e = sys_stat(article.text, &st);
	if (e < 0)
		return fail_unless_gone(w, "stat an article", e);
	if ((e = read_file(w, article)) == 0)
		w->counts[ARTICLES_READ]++;
	return e;
}

/* Not every article has comments. */
static long read_comments(struct worker *w, struct name comments)
{
	long fd = sys_open(comments.text, O_RDONLY, 0);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fail(w, "open comments", fd);
	uint64_t ignored;
	long n = read_all(w, (int)fd, &ignored);
	sys_close((int)fd);
	if (n < 0)
		return fail(w, "read comments", n);
	w->counts[COMMENTS_READ]++;
	return 0;
}

static long read_blog(struct worker *w, struct name blog)
{
	long e = list(w, blog);
	for (unsigned i = 0; e == 0 && i < ARTICLES; i++) {
		e = read_article(w, article_name(blog, i));
		if (e == 0)
			e = read_comments(w, comments_name(blog, i));
	}
	return e;
}

long read_blogs(struct worker *w, unsigned blogs)
{
	while (!over()) {
		long e = read_blog(w, blog_name('b', random_below(&w->seed, blogs)));
		if (e == 0)
			w->counts[BLOGS_READ]++;
		else if (!missed(w, e))
			return e;
	}
	return 0;
}
