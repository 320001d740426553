/* files: a load of many small files, modelled on Blogbench (F. Denis), which wang tab. 2 uses.
 *
 * A blog is a directory with ARTICLES articles and their comments. Four kinds of worker processes run concurrently
 * until the time is over:
 *
 *   writers     replace blogs, one after the other, by new ones
 *   readers     read blogs at random: list the directory, stat and read every article and its comments
 *   rewriters   replace articles at random, PAUSE_MS apart
 *   commenters  append comments to articles at random, PAUSE_MS apart
 *
 * With --blogbench MIB the mixture of files is Blogbench's own instead, in at most so many MiB: see files_blogbench.c. The following
 * describes the other, bounded mixture.
 *
 * WriteScore is the number of completely written blogs per second over all writers. ReadScore is the number of
 * completely read blogs per second over all readers. Blogbench counts the same over its fixed five minutes, but its blogs
 * are larger and of random size: compare ratios with it, not scores. Rewriters and commenters pause, so that they are a
 * similar background load everywhere. The scores do not include them. BlogsWritten and BlogsRead are the numbers themselves.
 *
 * As in Blogbench, a writer writes an article in pieces of WRITE_SIZE to a temporary file and renames it, and a reader
 * reads pieces of READ_SIZE. The default numbers of workers are the paper's. Nothing is synced, so the result depends
 * more on the file system's code than on the disk.
 *
 * Unlike in Blogbench, the number of blogs is constant: each writer owns BLOGS blogs, creates them before the measurement,
 * and replaces the oldest. So the rates do not depend on the duration, and the space is bounded: ARTICLES *
 * (ARTICLE_MAX + COMMENTS_MAX) bytes per blog, 10 MiB per writer, 30 MiB with the default three writers, and half of it on
 * average. If a reader, rewriter or commenter finds a blog that is being replaced, it counts a miss, which is not a
 * failure. Every article begins with its length, so that torn articles are detected. These are failures. */
#include "files.h"

static const char work_dir[] = "touchstone-files";

/* Returns the name of a blog's file: a kind and a number. */
static struct name name_in_blog(struct name blog, char kind, unsigned number)
{
	blog.text[blog.len++] = '/';
	blog.text[blog.len++] = kind;
	return name_number(blog, number);
}

struct name name_number(struct name n, unsigned number)
{
	if (number >= 10)
		n = name_number(n, number / 10);
	n.text[n.len++] = (char)('0' + number % 10);
	n.text[n.len] = 0;
	return n;
}

struct name blog_name(char kind, unsigned number)
{
	struct name n = {.text = {kind}, .len = 1};
	return name_number(n, number);
}

struct name article_name(struct name blog, unsigned article) { return name_in_blog(blog, 'a', article); }

struct name comments_name(struct name blog, unsigned article) { return name_in_blog(blog, 'c', article); }

struct name picture_name(struct name blog, unsigned picture) { return name_in_blog(blog, 'p', picture); }

struct name temporary_name(struct name blog, unsigned worker) { return name_in_blog(blog, 't', worker); }

/* Removes the files of a directory, but not the directory itself. */
static long empty(const char *path)
{
	static char buf[4096];
	long dir = sys_open(path, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return dir;
	long n;
	while ((n = sys_getdents((int)dir, buf, sizeof buf)) > 0)
		for (long at = 0; at < n; at += ((struct dirent64 *)(buf + at))->reclen) {
			const struct dirent64 *entry = (struct dirent64 *)(buf + at);
			if (same(entry->name, ".") || same(entry->name, ".."))
				continue;
			long e = sys_unlinkat((int)dir, entry->name, 0);
			if (e < 0 && e != -ENOENT)
				n = e;
			if (n < 0)
				break;
		}
	sys_close((int)dir);
	return n;
}

long remove_blog(const char *path)
{
	/* A rewriter that found the blog before its removal may still create a file
	 * into it; each has one under way at most. */
	for (int attempt = 0; attempt < TEAM_MAX; attempt++) {
		long e = empty(path);
		if (e == 0)
			e = sys_unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
		if (e != -ENOTEMPTY)
			return e;
	}
	return -ENOTEMPTY;
}

/* Removes all files in the working directory, which is the current directory. */
static long remove_all(unsigned writers, unsigned blogs)
{
	long first = 0;
	for (unsigned i = 0; i < blogs; i++) {
		long e = remove_blog(blog_name('b', i).text);
		if (e < 0 && e != -ENOENT && first == 0)
			first = e;
	}
	for (unsigned w = 0; w < writers; w++) {
		long e = remove_blog(blog_name('x', w).text);
		if (e < 0 && e != -ENOENT && first == 0)
			first = e;
	}
	return first;
}

static uint64_t writers = 3, rewriters = 1, commenters = 5, readers = 10, blogbench_mib;

static long prepare(struct worker *w)
{
	fill_content(w);
	return w->index < writers && blogbench_mib == 0 ? make_blogs(w) : 0;
}

static long work(struct worker *w)
{
	unsigned blogs = (unsigned)writers * BLOGS;
	bool own = blogbench_mib > 0;
	if (w->index < writers)
		return own ? write_blogbench(w) : write_blogs(w);
	if (w->index < writers + rewriters)
		return own ? rewrite_blogbench(w) : rewrite_articles(w, blogs);
	if (w->index < writers + rewriters + commenters)
		return own ? comment_blogbench(w) : append_comments(w, blogs);
	return own ? read_blogbench(w) : read_blogs(w, blogs);
}

_Noreturn static void report(const struct team *t)
{
	static const char *const names[] = {
		[BLOGS_WRITTEN] = "BlogsWritten",
		[ARTICLES_WRITTEN] = "ArticlesWritten",
		[ARTICLES_REWRITTEN] = "ArticlesRewritten",
		[COMMENTS_WRITTEN] = "CommentsWritten",
		[BLOGS_READ] = "BlogsRead",
		[ARTICLES_READ] = "ArticlesRead",
		[COMMENTS_READ] = "CommentsRead",
		[MISSES] = "Misses",
		[PICTURES_WRITTEN] = "PicturesWritten",
		[PICTURES_READ] = "PicturesRead",
	};
	report_metric("ReadScore", team_rate(t, BLOGS_READ), "score");
	report_metric("WriteScore", team_rate(t, BLOGS_WRITTEN), "score");
	for (unsigned i = 0; i < COUNT(names); i++)
		if (names[i])
			report_metric(names[i], (double)team_count(t, i), "count");
	report_metric("BytesRead", (double)team_count(t, BYTES_READ), "B");
	report_metric("BytesWritten", (double)team_count(t, BYTES_WRITTEN), "B");
	report_done();
}

void command_files(char **argv)
{
	char *dir = NULL;
	uint64_t ms = 1000, seed = 1;
	const struct option options[] = {
		{"--dir", OPTION_TEXT, &dir, 0, 0},
		{"--ms", OPTION_NUMBER, &ms, 1, MS_MAX},
		{"--writers", OPTION_NUMBER, &writers, 1, TEAM_MAX / 4},
		{"--rewriters", OPTION_NUMBER, &rewriters, 0, TEAM_MAX / 4},
		{"--commenters", OPTION_NUMBER, &commenters, 0, TEAM_MAX / 4},
		{"--readers", OPTION_NUMBER, &readers, 0, TEAM_MAX / 4},
		{"--seed", OPTION_NUMBER, &seed, 0, UINT64_MAX},
		{"--blogbench", OPTION_NUMBER, &blogbench_mib, 128, 1 << 24},
	};
	parse_all("files", argv, options, COUNT(options));
	if (!dir)
		usage("files", "--dir is missing", NULL);

	long e, parent;
	if ((parent = sys_open(dir, O_RDONLY | O_DIRECTORY, 0)) < 0)
		die(EXIT_FAILED, "files", "open directory", dir, parent);
	if ((e = sys_fchdir((int)parent)) < 0)
		die(EXIT_FAILED, "files", "enter directory", dir, e);
	/* An existing directory belongs to another program. */
	if ((e = sys_mkdir(work_dir, 0755)) < 0)
		die(EXIT_FAILED, "files", "make working directory", work_dir, e);
	if ((e = sys_chdir(work_dir)) < 0)
		die(EXIT_FAILED, "files", "enter working directory", work_dir, e);

	if (blogbench_mib > 0)
		start_blogbench((blogbench_mib << 20) / BLOG_MAX);
	struct team team = {
		.command = "files",
		.size = (unsigned)(writers + rewriters + commenters + readers),
		.ms = ms,
		.seed = seed,
		.prepare = prepare,
		.work = work,
	};
	struct worker *bad = team_run(&team);

	e = remove_all((unsigned)writers, blogbench_mib > 0 ? blogbench_blogs() : (unsigned)writers * BLOGS);
	if (e == 0 && (e = sys_fchdir((int)parent)) == 0)
		e = sys_unlinkat(AT_FDCWD, work_dir, AT_REMOVEDIR);
	if (bad)
		die(EXIT_FAILED, "files", bad->failed, NULL, bad->error);
	if (e < 0)
		die(EXIT_FAILED, "files", "remove working directory", work_dir, e);
	report(&team);
}
