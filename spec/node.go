package spec

import "strconv"

// kind is the shape of a node.
type kind uint8

const (
	scalarKind kind = iota
	mapKind
	seqKind
)

// style is how a scalar was written.
type style uint8

const (
	plainStyle style = iota
	singleStyle
	doubleStyle
	literalStyle
	foldedStyle
)

// The YAML tags that scalars resolve to.
const (
	tagStr   = "!!str"
	tagInt   = "!!int"
	tagFloat = "!!float"
	tagBool  = "!!bool"
	tagNull  = "!!null"
)

// node is one node of a spec: YAML with its aliases and merge keys resolved.
// Aliases share the node that they name, so a node must not be changed.
type node struct {
	kind   kind
	style  style
	flow   bool // written inside { } or [ ]
	tag    string
	text   string // of a scalar, as YAML reads it
	pos    pos
	items  []*node // of a list
	fields []field // of a mapping, in file order, merged ones last
}

// field is one entry of a mapping.
type field struct {
	key    *node
	val    *node
	merged bool // came by a merge key
}

// get returns the value of a key, or nil.
func (n *node) get(key string) *node {
	for i := range n.fields {
		if n.fields[i].key.text == key {
			return n.fields[i].val
		}
	}
	return nil
}

// keyNode returns the node of a key, or nil.
func (n *node) keyNode(key string) *node {
	for i := range n.fields {
		if n.fields[i].key.text == key {
			return n.fields[i].key
		}
	}
	return nil
}

func (n *node) isNull() bool { return n.kind == scalarKind && n.tag == tagNull }

func (n *node) isNumber() bool {
	return n.kind == scalarKind && (n.tag == tagInt || n.tag == tagFloat)
}

// describe says what a node is, for messages: "the number 10".
func (n *node) describe() string {
	switch {
	case n.kind == mapKind && len(n.fields) == 0:
		return "an empty mapping"
	case n.kind == mapKind:
		return "a mapping"
	case n.kind == seqKind && len(n.items) == 0:
		return "an empty list"
	case n.kind == seqKind:
		return "a list"
	case n.tag == tagNull:
		return "nothing"
	case n.isNumber():
		return "the number " + n.text
	case n.tag == tagBool:
		return n.text
	}
	return "text " + quote(n.text)
}

// quote quotes text for a message, shortened where it is long.
func quote(s string) string {
	const most = 60
	r := []rune(s)
	if len(r) > most {
		return strconv.Quote(string(r[:most-3])) + "..."
	}
	return strconv.Quote(s)
}
