package spec

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Print writes a spec in its resolved form, as YAML for people: defaults
// filled in, the profile applied, the matrix expanded, every arm complete.
// References that only a run can resolve stay as they were written, so no
// secret is shown.
func Print(w io.Writer, s *Spec) error {
	out := *s
	out.Source = ""
	tree := printable(reflect.ValueOf(out))
	return writeYAML(w, tree)
}

// printed is a value as it is written: a scalar, a list or a mapping.
type printed struct {
	text   string
	plain  bool // a number or a boolean, which needs no quotes
	kind   kind
	keys   []string
	values []printed
}

func printable(v reflect.Value) printed {
	switch x := v.Interface().(type) {
	case time.Duration:
		return printed{text: shortDuration(x)}
	case Gate:
		return printed{text: x.Source}
	case Expect:
		return printed{text: x.Source}
	case Command:
		return printableCommand(x)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return printable(v.Elem())
	case reflect.Struct:
		return printableStruct(v)
	case reflect.Map:
		return printableMap(v)
	case reflect.Slice:
		p := printed{kind: seqKind}
		for i := range v.Len() {
			p.values = append(p.values, printable(v.Index(i)))
		}
		return p
	case reflect.String:
		return printed{text: v.String()}
	}
	return printed{text: fmt.Sprint(v.Interface()), plain: true}
}

func printableCommand(c Command) printed {
	if c.Shell != "" {
		return printed{text: string(c.Shell)}
	}
	return printable(reflect.ValueOf(c.Argv))
}

// printableStruct writes the fields that JSON would write, in order.
func printableStruct(v reflect.Value) printed {
	p := printed{kind: mapKind}
	for i := range v.NumField() {
		tag, opts, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		f := v.Field(i)
		if tag == "-" || tag == "" || opts == "omitempty" && emptyValue(f) || tag == "source" {
			continue
		}
		if f.Kind() == reflect.Pointer && f.IsNil() {
			continue
		}
		out := printable(f)
		if out.kind == mapKind && len(out.keys) == 0 {
			continue
		}
		p.keys = append(p.keys, tag)
		p.values = append(p.values, out)
	}
	return p
}

func emptyValue(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	}
	return v.IsZero()
}

func printableMap(v reflect.Value) printed {
	p := printed{kind: mapKind}
	for _, k := range v.MapKeys() {
		p.keys = append(p.keys, k.String())
	}
	slices.Sort(p.keys)
	for _, k := range p.keys {
		p.values = append(p.values, printable(v.MapIndex(reflect.ValueOf(k))))
	}
	return p
}
