package web

import _ "embed"

// Site is the surroundings of a page on a server: the links above it. A page in a file has none.
type Site struct {
	// Pages are the pages of the site, and Formats the page in other formats.
	Pages, Formats []Link
	// Refresh is the number of seconds until the browser loads the page again; 0 for never.
	Refresh int
}

// Link is a link of a site. Here is set for the page itself.
type Link struct {
	Name, Address string
	Here          bool
}

// SiteTemplate defines the template "site", for a *Site.
//
//go:embed site.html
var SiteTemplate string

// SiteStyle is the style sheet of the template. A page of a site appends it.
//
//go:embed site.css
var SiteStyle string
