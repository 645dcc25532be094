package spec

import "encoding/json"

// MarshalJSON writes the expression's source.
func (g Gate) MarshalJSON() ([]byte, error) { return json.Marshal(g.Source) }

// UnmarshalJSON reads the source and compiles it again.
func (g *Gate) UnmarshalJSON(b []byte) error {
	var src string
	if err := json.Unmarshal(b, &src); err != nil {
		return err
	}
	out, err := CompileGate(src)
	if err != nil {
		return err
	}
	*g = *out
	return nil
}

// MarshalJSON writes the expression's source.
func (e Expect) MarshalJSON() ([]byte, error) { return json.Marshal(e.Source) }

// UnmarshalJSON reads the source and compiles it again.
func (e *Expect) UnmarshalJSON(b []byte) error {
	var src string
	if err := json.Unmarshal(b, &src); err != nil {
		return err
	}
	out, err := CompileExpect(src)
	if err != nil {
		return err
	}
	*e = *out
	return nil
}
