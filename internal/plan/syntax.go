package plan

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/touchstone-bench/touchstone/internal/textfile"
)

// parseTree reads the single document of a YAML file, and returns its text and its tree; nil for an empty file.
func parseTree(file string, data []byte, want ...textfile.Kind) (text []byte, root ast.Node, err error) {
	location := Location{File: file}
	text, err = textfile.Read(bytes.NewReader(data), MaxSize, want...)
	if fileErr := (*textfile.Error)(nil); errors.As(err, &fileErr) {
		return nil, nil, location.error("", problem{fileErr.Problem, fileErr.Advice})
	}
	switch {
	case err != nil: // no reader of bytes has another error
		return nil, nil, location.error("", problem{printable(err.Error()), ""})
	case len(data) > MaxSize || len(text) > MaxSize:
		return nil, nil, location.error("", problem{fmt.Sprintf("the file is longer than %d bytes", MaxSize), "give a smaller file"})
	case !utf8.Valid(text):
		return nil, nil, invalidUTF8(file, text)
	}
	root, err = parseText(file, text)
	return text, root, err
}

func parseText(file string, data []byte) (root ast.Node, err error) {
	location := Location{File: file}
	// The library expects trusted input. A panic is reported as an error of the file.
	defer func() {
		if v := recover(); v != nil {
			root, err = nil, location.error("", problem{printable(fmt.Sprintf("the file cannot be read as YAML: %v", v)), "write it more simply"})
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if err := refuse(file, tokens); err != nil {
		return nil, err
	}
	tree, err := parser.Parse(tokens, 0)
	if err != nil {
		if found := blemishes(file, data); len(found.errs) > 0 {
			return nil, found.err() // they are the cause
		}
		return nil, syntaxError(file, err)
	}
	for _, doc := range tree.Docs {
		switch {
		case doc.Body == nil:
		case root != nil:
			return nil, position(file, doc.Body).error("", problem{"a second document begins here", "write one document per file"})
		default:
			root = doc.Body
		}
	}
	return root, nil
}

// refuse rejects tokens that a plan must not have, before the parser reads them.
func refuse(file string, tokens token.Tokens) error {
	reasons := map[token.Type]string{
		token.AnchorType:    "an anchor (&)",
		token.AliasType:     "an alias (*)",
		token.MergeKeyType:  "a merge key (<<)",
		token.TagType:       "a tag (!)",
		token.DirectiveType: "a directive (%)",
	}
	count := 0
	for _, t := range tokens {
		if t.Type == token.CommentType {
			continue
		}
		location := start(file, t)
		if what, ok := reasons[t.Type]; ok {
			return location.error(t.Value, problem{what + " is not allowed", "write the value itself; put quotes around it if it begins with that character"})
		}
		if count++; count > MaxTokens {
			return location.error("", problem{fmt.Sprintf("the file has more than %d tokens", MaxTokens), "split it"})
		}
	}
	return nil
}

// blemishes returns the errors for characters that look like others.
func blemishes(file string, data []byte) (p problems) {
	for _, b := range textfile.Blemishes(string(data)) {
		p.add(Location{File: file, Line: b.Line, Column: b.Column}, "", problem{b.Problem, b.Advice})
	}
	return p
}

// syntaxError adds the location to the library's error. The library's own Error method would also print the source, in time
// quadratic in the length of a line.
func syntaxError(file string, err error) error {
	var detail yaml.Error
	if !errors.As(err, &detail) {
		return Location{File: file}.error("", problem{message: printable(err.Error())})
	}
	value := ""
	t := detail.GetToken()
	if t != nil {
		value = t.Value
	}
	location := start(file, t)
	return location.error(value, problem{message: printable(detail.GetMessage())})
}

// invalidUTF8 finds the first byte that is not UTF-8.
func invalidUTF8(file string, data []byte) error {
	location := Location{File: file, Line: 1, Column: 1}
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			break
		}
		if location.Column++; r == '\n' {
			location.Line, location.Column = location.Line+1, 1
		}
		data = data[size:]
	}
	return location.error("", problem{"the file is not UTF-8", "save it as UTF-8, for example with iconv -f WINDOWS-1252 -t UTF-8 FILE"})
}

// position returns the start of a node.
func position(file string, n ast.Node) Location {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		n = m.Values[0].Key // the mapping's own token is its first colon
	}
	return start(file, n.GetToken())
}

// start returns the start of a token; the whole file for nil.
func start(file string, t *token.Token) Location {
	if t == nil || t.Position == nil {
		return Location{File: file}
	}
	return Location{File: file, Line: t.Position.Line, Column: t.Position.Column}
}

// pairs returns the entries of a mapping.
func pairs(n ast.Node) ([]*ast.MappingValueNode, bool) {
	if m, ok := n.(*ast.MappingNode); ok {
		return m.Values, true
	}
	return nil, false
}

// text returns a string, plain or quoted.
func text(n ast.Node) (string, bool) {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value, true
	}
	return "", false
}

// scalar returns any value except null as written, without quotes.
func scalar(n ast.Node) (string, bool) {
	switch n.(type) {
	case *ast.StringNode:
		return text(n)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// shown returns the form of a node for messages.
func shown(n ast.Node) string {
	if s, ok := scalar(n); ok {
		return quote(s)
	}
	switch n.(type) {
	case *ast.NullNode:
		return "nothing"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode:
		return "a mapping"
	case *ast.LiteralNode:
		return "a block of text"
	}
	return "something else"
}
