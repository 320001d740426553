// Package html writes a document as one HTML file without a network or a font: see [web]. The page is complete without its script, which page.ts has.
//
// The page has the answer at the top, and a table of contents if it has many sections. Folded sections open on a click, and are open in print. Text of the document
// reaches the page only through html/template, and drawings have only coordinates of this package.
package html

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/render/web"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

//go:embed document.css
var ownStyle string

var style = web.Style + ownStyle

// script is page.ts as esbuild writes it: see make gen.
//
//go:embed page.js
var script string

//go:embed document.html
var templateText string

// pageTemplate is parsed for the first page. Most runs write none of these.
var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("document").Funcs(template.FuncMap{"tied": web.Tie}).Parse(templateText + web.SiteTemplate))
})

// leastContents is the smallest number of titled sections for a table of contents.
const leastContents = 6

// Write writes d to w as one HTML file, the same bytes for the same document.
func Write(w io.Writer, d *document.Document) error { return WriteOn(w, d, nil) }

// WriteOn writes d as a page of a site. Without a site it is Write.
func WriteOn(w io.Writer, d *document.Document, site *web.Site) error {
	style := style
	if site != nil {
		style += web.SiteStyle
	}
	blocks := document.Drawn(d.Blocks)
	b := newBuilder(blocks)
	p := page{
		Policy: web.Policy(style, script), Style: template.CSS(style), Script: template.JS(script), Kind: d.Kind, Title: d.Title, Main: mainAnchor, Site: site,
		Notes: b.paragraphs(d.Notes), Answer: b.paragraphs(d.Answer), Blocks: b.blocks(blocks, 2),
	}
	p.Title = strings.TrimPrefix(p.Title, "Touchstone, ") // the program is above the title
	if p.Contents = contents(p.Blocks); count(p.Contents) < leastContents {
		p.Contents = nil
	}
	return web.Write(w, pageTemplate(), "document", p)
}

// page is the input of the template: strings and coordinates, with nothing to compute.
type page struct {
	Policy, Kind, Title, Main string
	// Site is nil for a page in a file.
	Site *web.Site
	// Style is the embedded style sheet. It has no text of a document.
	Style template.CSS
	// Script is the embedded script. It has no text of a document either.
	Script        template.JS
	Contents      []entry
	Notes, Answer []span
	Blocks        []block
}

// entry is a line of the table of contents.
type entry struct {
	Address, Title string
	Alarm          bool
	Entries        []entry
}

// block is one of its fields.
type block struct {
	Section  *section
	Facts    []fact
	Text     *span
	Verbatim string
	List     *list
	Table    *table
	Matrix   *matrix
	Figures  []figure // figures beside each other
	Plot     *plot    // a plot of several panels
	Bars     *bars
	Course   *course
	Timeline *timeline
}

// figure is one of its fields.
type figure struct {
	Lanes *lanes
	Plot  *plot
}

type section struct {
	// Anchor is empty for a section that nothing refers to.
	Anchor, Title, Short, Note string
	// Level is the level of its heading.
	Level  int
	Folded bool
	Blocks []block
	// Alarms is the number of the alarms in it, in words. It is empty without one.
	Alarms string
}

type fact struct {
	Name    span
	Text    string
	Notes   []span
	Details []item
}

type list struct {
	Title   string
	Ordered bool
	Items   []item
}

type item struct {
	span
	Lines []string
}

// mostLines is the largest number of lines of a fact's detail that a page shows at first.
const mostLines = 3

// Many reports whether the lines show on request.
func (i item) Many() bool { return len(i.Lines) > mostLines }

func (b *builder) items(sources []document.Item) []item {
	var out []item
	for _, i := range sources {
		out = append(out, item{b.span(i.Span), i.Lines})
	}
	return out
}

// span is a piece of text. Word is read aloud before it, because a border alone marks it.
type span struct{ Text, Class, Address, Word string }

// classes are the classes of the tones in the style sheet.
var classes = map[document.Tone]string{
	document.Strong: "strong", document.Faint: "faint", document.Good: "good", document.Bad: "bad", document.Alarm: "alarm", document.Advice: "advice",
}

var words = map[document.Tone]string{document.Alarm: "Warning: ", document.Advice: "Advice: "}

func (b *builder) span(s document.Span) span {
	return span{Text: s.Text, Class: classes[s.Tone], Address: b.address(s.Link), Word: words[s.Tone]}
}

func (b *builder) spans(parts []document.Span) []span {
	var out []span
	for _, s := range parts {
		out = append(out, b.span(s))
	}
	return out
}

func (b *builder) paragraphs(texts []document.Text) []span {
	var out []span
	for _, t := range texts {
		out = append(out, b.span(document.Span(t)))
	}
	return out
}

// address is the address of a section, or of a page beside this one.
func (b *builder) address(link string) string {
	if id, found := strings.CutPrefix(link, "#"); found && b.sections[id] != "" {
		return "#" + b.sections[id]
	}
	return relative(link)
}

// relative returns an address of a page beside this one or below it, and nothing for any other address.
func relative(link string) string {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || strings.HasPrefix(link, "/") || strings.ContainsAny(link, `:\`) ||
		strings.ContainsFunc(link, unicode.IsControl) || slices.Contains(strings.Split(u.Path, "/"), "..") {
		return ""
	}
	return link
}

// mainAnchor is the anchor of the content.
const mainAnchor = "main"

// builder knows the anchors of the page, and its room for points.
type builder struct {
	// anchors are in use. sections are the anchors of the sections by ID.
	anchors  map[string]bool
	sections map[string]string
	room     room
	palette  palette
	// regions is the number of regions so far. Each has a name of its own.
	regions int
}

// region names the next region.
func (b *builder) region() string {
	b.regions++
	return fmt.Sprintf("Table %d", b.regions)
}

func newBuilder(blocks []document.Block) *builder {
	b := &builder{anchors: map[string]bool{mainAnchor: true}, sections: map[string]string{}, room: newRoom(blocks), palette: newPalette(blocks)}
	b.find(blocks)
	return b
}

// find finds the anchors of the sections.
func (b *builder) find(blocks []document.Block) {
	for _, block := range blocks {
		if s, is := block.(document.Section); is {
			if s.ID != "" && b.sections[s.ID] == "" {
				b.sections[s.ID] = b.anchor(s.ID)
			}
			b.find(s.Blocks)
		}
	}
}

// anchor makes an anchor of the ID of a section. An ID may have blanks, which an anchor must not have.
func (b *builder) anchor(id string) string {
	if id == "" {
		return ""
	}
	anchor := strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./", r) {
			return '-'
		}
		return r
	}, id)
	for b.anchors[anchor] {
		anchor += "-"
	}
	b.anchors[anchor] = true
	return anchor
}

// blocks converts blocks. Headings in them have a level.
func (b *builder) blocks(blocks []document.Block, level int) []block {
	var out []block
	for _, source := range blocks {
		switch source := source.(type) {
		case document.Section:
			inner := level
			if source.Title != "" {
				inner++
			}
			s := &section{Anchor: b.sections[source.ID], Title: source.Title, Short: cmp.Or(source.Short, source.Title), Note: source.Note, Level: level, Folded: source.Folded && source.Title != ""}
			s.Blocks = b.blocks(source.Blocks, inner)
			if n := alarms(s.Blocks); n > 0 {
				s.Alarms = wording.Counted(n, "alarm")
			}
			out = append(out, block{Section: s})
		case document.Facts:
			var facts []fact
			for _, f := range source.Items {
				facts = append(facts, fact{Name: span{Text: f.Name, Class: classes[f.Tone]}, Text: f.Text, Notes: b.spans(f.Notes), Details: b.items(f.Details)})
			}
			out = append(out, block{Facts: facts})
		case document.Text:
			s := b.span(document.Span(source))
			out = append(out, block{Text: &s})
		case document.Verbatim:
			out = append(out, block{Verbatim: source.Text})
		case document.List:
			out = append(out, block{List: &list{Title: source.Title, Ordered: source.Ordered, Items: b.items(source.Items)}})
		case document.Table:
			if t := b.table(&source); t != nil {
				out = append(out, block{Table: t})
			}
		case document.Matrix:
			if m := b.matrix(&source); m != nil {
				out = append(out, block{Matrix: m})
			}
		case document.Course:
			out = append(out, block{Course: b.course(&source)})
		case document.Timeline:
			out = append(out, block{Timeline: b.timeline(&source)})
		case document.Lanes:
			out = beside(out, figure{Lanes: newLanes(&source, b.room, b.palette)})
		case document.Plot:
			if p := newPlot(&source, b.room, b.palette); len(p.Panels) == 1 {
				out = beside(out, figure{Plot: p})
			} else {
				out = append(out, block{Plot: p})
			}
		case document.Bars:
			out = append(out, block{Bars: newBars(&source, b.palette)})
		}
	}
	return out
}

// beside adds a figure beside the figures before it.
func beside(blocks []block, f figure) []block {
	if last := len(blocks) - 1; last >= 0 && blocks[last].Figures != nil {
		blocks[last].Figures = append(blocks[last].Figures, f)
		return blocks
	}
	return append(blocks, block{Figures: []figure{f}})
}

// alarms counts the paragraphs and items with an alarm.
func alarms(blocks []block) int {
	n := 0
	for _, b := range blocks {
		switch {
		case b.Section != nil:
			n += alarms(b.Section.Blocks)
		case b.Text != nil && b.Text.Class == classes[document.Alarm]:
			n++
		case b.List != nil:
			for _, i := range b.List.Items {
				if i.Class == classes[document.Alarm] {
					n++
				}
			}
		}
	}
	return n
}

// contents lists the sections that have a title and an anchor.
func contents(blocks []block) []entry {
	var entries []entry
	for _, b := range blocks {
		s := b.Section
		switch {
		case s == nil:
		case s.Anchor != "" && s.Title != "":
			entries = append(entries, entry{Address: "#" + s.Anchor, Title: s.Short, Alarm: s.Alarms != "", Entries: contents(s.Blocks)})
		default:
			entries = append(entries, contents(s.Blocks)...)
		}
	}
	return entries
}

func count(entries []entry) int {
	n := len(entries)
	for _, e := range entries {
		n += count(e.Entries)
	}
	return n
}
