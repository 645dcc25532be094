package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"
)

// Limits of what is read. They are far above what people write, and keep a
// hostile file from costing more than a second or 100 MB.
const (
	maxBytes   = 1 << 20 // of a file
	maxTokens  = 200_000 // characters that can open a node
	maxDepth   = 64      // of nesting
	maxMerged  = 100_000 // entries that merge keys bring in
	maxVisited = 500_000 // entries that are read, those of aliases, matrices and profiles again each time
)

// parseYAML reads one YAML document into nodes, reporting what is wrong
// with it. It returns nil where nothing can be made of the file.
// This is the only file that knows yaml.v3.
func (d *decoder) parseYAML() *node {
	if !d.checkText() {
		return nil
	}
	dec := yaml.NewDecoder(strings.NewReader(d.src.text))
	var doc yaml.Node
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		d.errorAt(pos{1, 1}, 1, kindEmpty, "the file is empty", "run tandem init to write a first bench.yaml")
		return nil
	case err != nil:
		d.syntaxError(err)
		return nil
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		d.syntaxError(err)
		return nil
	default:
		d.errorAt(d.secondDocument(&second), 3, kindSyntax, "found a second document after ---; a spec is one document", "remove the line, or put the second spec into a file of its own")
		return nil
	}
	c := converter{d: d, done: map[*yaml.Node]*node{}}
	root := c.node(doc.Content[0], 0)
	if c.failed {
		return nil
	}
	return root
}

// secondDocument is where the --- before a second document stands.
func (d *decoder) secondDocument(doc *yaml.Node) pos {
	p := pos{doc.Line, doc.Column}
	for n := p.line; n > 1; n-- {
		if strings.HasPrefix(d.src.line(n), "---") {
			return pos{n, 1}
		}
	}
	return p
}

// converter turns yaml.v3's nodes into ours.
type converter struct {
	d      *decoder
	done   map[*yaml.Node]*node // anchored nodes; nil while in work
	merged int
	failed bool
}

func (c *converter) fail(n *yaml.Node, kind, msg, hint string) *node {
	c.failed = true
	c.d.errorAt(pos{n.Line, n.Column}, 1, kind, msg, hint)
	return &node{kind: scalarKind, tag: tagNull, pos: pos{n.Line, n.Column}}
}

func (c *converter) node(n *yaml.Node, depth int) *node {
	if depth > maxDepth {
		if c.failed {
			return &node{kind: scalarKind, tag: tagNull}
		}
		return c.fail(n, kindLimit, fmt.Sprintf("nested deeper than %d levels", maxDepth), "")
	}
	if n.Kind == yaml.AliasNode {
		return c.alias(n)
	}
	if n.Anchor != "" {
		c.done[n] = nil
	}
	out := c.plain(n, depth)
	if n.Anchor != "" {
		c.done[n] = out
	}
	return out
}

func (c *converter) alias(n *yaml.Node) *node {
	out, ok := c.done[n.Alias]
	if !ok || out == nil {
		return c.fail(n, kindSyntax, fmt.Sprintf("the anchor &%s contains itself", n.Value), "")
	}
	return out
}

func (c *converter) plain(n *yaml.Node, depth int) *node {
	out := &node{tag: n.ShortTag(), text: n.Value, pos: pos{n.Line, n.Column}, flow: n.Style&yaml.FlowStyle != 0}
	if n.Style&yaml.TaggedStyle != 0 {
		c.d.tagError(out, n.Tag)
		c.failed = true
	}
	switch n.Kind {
	case yaml.MappingNode:
		out.kind = mapKind
		c.mapping(out, n, depth)
	case yaml.SequenceNode:
		out.kind = seqKind
		out.items = make([]*node, 0, len(n.Content))
		for _, item := range n.Content {
			out.items = append(out.items, c.node(item, depth+1))
		}
	default:
		out.style = scalarStyle(n.Style)
		out.tag = scalarTag(n)
	}
	return out
}

// scalarTag narrows yaml.v3's tags to the five that a spec knows: dates,
// binaries and a "<<" that is a value are text.
func scalarTag(n *yaml.Node) string {
	switch tag := n.ShortTag(); tag {
	case tagInt, tagFloat, tagBool, tagNull:
		return tag
	}
	return tagStr
}

func scalarStyle(s yaml.Style) style {
	switch {
	case s&yaml.SingleQuotedStyle != 0:
		return singleStyle
	case s&yaml.DoubleQuotedStyle != 0:
		return doubleStyle
	case s&yaml.LiteralStyle != 0:
		return literalStyle
	case s&yaml.FoldedStyle != 0:
		return foldedStyle
	}
	return plainStyle
}

func (c *converter) mapping(out *node, n *yaml.Node, depth int) {
	out.fields = make([]field, 0, len(n.Content)/2)
	index := make(map[string]int, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind == yaml.ScalarNode && k.ShortTag() == "!!merge" {
			merges = append(merges, v)
			continue
		}
		key := c.node(k, depth+1)
		val := c.node(v, depth+1)
		if key.kind != scalarKind {
			c.d.errorAt(key.pos, 1, kindSyntax, fmt.Sprintf("expected a key that is text, found %s", key.describe()), keyHint(key))
			c.failed = true
			continue
		}
		if at, dup := index[key.text]; dup {
			c.d.errorOn(key, kindDuplicate, fmt.Sprintf("key %s is here twice; it is first defined at line %d", quote(key.text), out.fields[at].key.pos.line), "keep one of the two")
			continue
		}
		index[key.text] = len(out.fields)
		out.fields = append(out.fields, field{key: key, val: val})
	}
	for _, m := range merges {
		c.merge(out, index, m, depth)
	}
}

func keyHint(key *node) string {
	if key.kind == mapKind && key.flow {
		return "quote a value that starts with {"
	}
	return ""
}

// merge brings in the entries of a merge key: one mapping or a list of them.
// What the mapping says itself wins, then the earlier source.
func (c *converter) merge(out *node, index map[string]int, m *yaml.Node, depth int) {
	src := c.node(m, depth+1)
	sources := []*node{src}
	if src.kind == seqKind {
		sources = src.items
	}
	for _, s := range sources {
		if s.kind != mapKind {
			if !c.failed {
				c.fail(m, kindSyntax, fmt.Sprintf("expected a mapping to merge after <<, found %s", s.describe()), "write <<: *NAME, with &NAME on a mapping")
			}
			return
		}
		for _, f := range s.fields {
			if c.merged++; c.merged > maxMerged {
				if !c.failed {
					c.fail(m, kindLimit, fmt.Sprintf("merge keys bring in more than %d entries", maxMerged), "")
				}
				return
			}
			if _, ok := index[f.key.text]; ok {
				continue
			}
			index[f.key.text] = len(out.fields)
			out.fields = append(out.fields, field{key: f.key, val: f.val, merged: true})
		}
	}
}

// parsesYAML reports whether a text is YAML, and if not, why.
func parsesYAML(text string) error {
	dec := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	for {
		var n yaml.Node
		if err := dec.Decode(&n); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// writeYAML writes a printed value as a YAML document.
func writeYAML(w io.Writer, p printed) error {
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(yamlNode(p)); err != nil {
		return err
	}
	return enc.Close()
}

func yamlNode(p printed) *yaml.Node {
	n := &yaml.Node{}
	switch p.kind {
	case mapKind:
		n.Kind = yaml.MappingNode
		for i, key := range p.keys {
			k := &yaml.Node{}
			k.SetString(key)
			n.Content = append(n.Content, k, yamlNode(p.values[i]))
		}
	case seqKind:
		n.Kind = yaml.SequenceNode
		for _, v := range p.values {
			n.Content = append(n.Content, yamlNode(v))
		}
	default:
		n.SetString(p.text)
		if p.plain {
			n.Tag = ""
		}
	}
	return n
}
