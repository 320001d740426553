/* The interface between the layout of the blogs (files.c) and the workers (files_workers.c). */
#pragma once

#include "probe.h"

enum {
	BLOGS = 32, /* per writer */
	ARTICLES = 8, /* per blog */
	ARTICLE_MIN = 1 << 10,
	ARTICLE_MAX = 32 << 10,
	COMMENT_MIN = 64,
	COMMENT_MAX = 512,
	COMMENTS_MAX = 8 << 10, /* a file of comments is truncated at this size */
	WRITE_SIZE = 8 << 10,
	READ_SIZE = 64 << 10,
	PAUSE_MS = 10,
};

/* The counters of a worker. */
enum {
	BLOGS_WRITTEN,
	ARTICLES_WRITTEN,
	ARTICLES_REWRITTEN,
	COMMENTS_WRITTEN,
	BLOGS_READ,
	ARTICLES_READ,
	COMMENTS_READ,
	MISSES,
	BYTES_READ,
	BYTES_WRITTEN,
};

/* A path in the working directory, which is the current directory. */
struct name {
	char text[40];
	unsigned len;
};

struct name name_number(struct name n, unsigned number);
struct name blog_name(char kind, unsigned number); /* kind b: a blog; x: one being removed, by writer */
struct name article_name(struct name blog, unsigned article);
struct name comments_name(struct name blog, unsigned article);
struct name temporary_name(struct name blog, unsigned worker);

/* Removes a blog with its files. */
long remove_blog(const char *path);

/* The preparations of the workers before the start. */
void fill_content(struct worker *w);
long make_blogs(struct worker *w);

/* The work until the time is over; blogs is the number of all blogs. */
long write_blogs(struct worker *w);
long rewrite_articles(struct worker *w, unsigned blogs);
long append_comments(struct worker *w, unsigned blogs);
long read_blogs(struct worker *w, unsigned blogs);
