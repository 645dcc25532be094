package journal

import (
	"encoding/json"
	"iter"
	"maps"
	"math"
	"slices"
)

// Metrics are the values of a trial by metric, in base units. The trials of a
// scenario mostly hold the same metrics, so the names are kept once for all
// of them: a long run has hundreds of thousands of trials.
type Metrics struct {
	names  []string // ascending; shared, so never changed in place
	values []float64
}

// NewMetrics keeps the values of m.
func NewMetrics(m map[string]float64) Metrics {
	k := Metrics{names: slices.Sorted(maps.Keys(m)), values: make([]float64, len(m))}
	for i, name := range k.names {
		k.values[i] = m[name]
	}
	return k
}

// Get returns the value of a metric, and whether there is one.
func (m Metrics) Get(name string) (float64, bool) {
	if i, ok := slices.BinarySearch(m.names, name); ok {
		return m.values[i], true
	}
	return 0, false
}

// Value is the value of a metric, or 0 where there is none.
func (m Metrics) Value(name string) float64 {
	v, _ := m.Get(name)
	return v
}

// Names are the metrics in ascending order. The slice must not be changed.
func (m Metrics) Names() []string { return m.names }

// All yields the metrics in the order of their names.
func (m Metrics) All() iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for i, name := range m.names {
			if !yield(name, m.values[i]) {
				return
			}
		}
	}
}

// Equal reports whether both hold the same names and values.
func (m Metrics) Equal(o Metrics) bool {
	return slices.Equal(m.names, o.names) && slices.Equal(m.values, o.values)
}

// finite leaves out what is not a finite number.
func (m Metrics) finite() Metrics {
	odd := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	if !slices.ContainsFunc(m.values, odd) {
		return m
	}
	all := maps.Collect(m.All())
	maps.DeleteFunc(all, func(_ string, v float64) bool { return odd(v) })
	return NewMetrics(all)
}

// MarshalJSON writes an object whose keys ascend.
func (m Metrics) MarshalJSON() ([]byte, error) { return json.Marshal(maps.Collect(m.All())) }

// UnmarshalJSON reads an object of numbers.
func (m *Metrics) UnmarshalJSON(data []byte) error {
	var all map[string]float64
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*m = NewMetrics(all)
	return nil
}
