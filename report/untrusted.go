package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"unicode/utf8"
)

// The caps of a result.json that somebody else may have written. A run of
// two thousand rows stays well below each.
const (
	maxResultBytes = 32 << 20
	maxResultRows  = 5000
	maxResultArms  = 16
	maxDepth       = 8
	maxItems       = 10_000 // of one list or object
	maxText        = 16 << 10
	maxLabel       = 512 // of what a table shows: a scenario with its matrix point, an arm, a unit
)

// ReadUntrusted reads a result.json that anybody may have written, the code
// under test included. It takes in data only: a document that is too large,
// too deep, ambiguous (a key twice) or in contradiction with itself is refused
// whole, with the reason. Verdicts, marks and gates are read as claims; a
// caller draws them again from the figures with [Analysis.Regate].
//
// That the figures are those of an honest run cannot be seen from them:
// SECURITY.md says what remains.
func ReadUntrusted(r io.Reader) (*Analysis, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxResultBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading result.json: %w", err)
	}
	if len(data) > maxResultBytes {
		return nil, fmt.Errorf("result.json is longer than %d MiB", maxResultBytes>>20)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("result.json is not UTF-8")
	}
	// The version comes first: of another one, nothing else is known.
	var head struct {
		Version json.Number `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("not a result.json: %w", err)
	}
	if head.Version != json.Number(fmt.Sprint(ResultVersion)) {
		return nil, fmt.Errorf("result.json has version %.20q, expected %d: measure and comment with the same version of tandem", head.Version.String(), ResultVersion)
	}
	if err := scanJSON(data); err != nil {
		return nil, fmt.Errorf("result.json: %w", err)
	}
	var f resultFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("not a result.json: %w", err)
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("result.json contradicts itself: %w", err)
	}
	return fromResult(f), nil
}

// wireKey is a key of our own structs. encoding/json matches keys in any
// case, so that another spelling could overwrite a value that was checked.
var wireKey = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// freeKeys are the keys whose objects have names from the spec as keys.
var freeKeys = []string{"matrix", "metrics", "versions"}

// scanJSON holds a document against the caps before anything is made of it.
func scanJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := scanValue(d, 1, false); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the document")
	}
	return nil
}

// scanValue scans one value. free says that its keys are names from the spec.
func scanValue(d *json.Decoder, depth int, free bool) error {
	tok, err := d.Token()
	if err != nil {
		return err
	}
	if s, ok := tok.(string); ok && len(s) > maxText {
		return fmt.Errorf("a text of %d bytes, at most %d are read", len(s), maxText)
	}
	open, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	if depth > maxDepth {
		return fmt.Errorf("lists and objects are nested more than %d deep", maxDepth)
	}
	seen := map[string]bool{}
	for n := 0; d.More(); n++ {
		if n == maxItems {
			return fmt.Errorf("a list or object has more than %d items", maxItems)
		}
		inner := false
		if open == '{' {
			if inner, err = scanKey(d, seen, free); err != nil {
				return err
			}
		}
		if err := scanValue(d, depth+1, inner); err != nil {
			return err
		}
	}
	_, err = d.Token() // the closing bracket
	return err
}

// scanKey scans a key and says whether the object behind it has free keys.
func scanKey(d *json.Decoder, seen map[string]bool, free bool) (inner bool, err error) {
	tok, err := d.Token()
	if err != nil {
		return false, err
	}
	key, _ := tok.(string)
	switch {
	case len(key) > maxLabel:
		return false, fmt.Errorf("a key of %d bytes, at most %d are read", len(key), maxLabel)
	case seen[key]:
		return false, fmt.Errorf("the key %q stands twice in one object", key)
	case !free && !wireKey.MatchString(key):
		return false, fmt.Errorf("the key %q is none of a result.json", key)
	}
	seen[key] = true
	return !free && slices.Contains(freeKeys, key), nil
}

// check says where the document is in contradiction with itself.
func (f *resultFile) check() error {
	if n := len(f.Arms); n < 2 || n > maxResultArms {
		return fmt.Errorf("it names %d arms, expected 2 to %d", n, maxResultArms)
	}
	if n := len(f.Rows); n > maxResultRows {
		return fmt.Errorf("it has %d rows, at most %d are read", n, maxResultRows)
	}
	arms := map[string]bool{}
	for _, a := range f.Arms {
		if a.Name == "" || arms[a.Name] || len(a.Name) > maxLabel || len(a.Label) > maxLabel {
			return fmt.Errorf("the arm %q is nameless, named too long, or there twice", shorten(plain(a.Name), 40))
		}
		arms[a.Name] = true
	}
	if f.Baseline != f.Arms[0].Name {
		return fmt.Errorf("the baseline is %q, and the first arm %q", shorten(plain(f.Baseline), 40), shorten(plain(f.Arms[0].Name), 40))
	}
	if !(f.Spec.Alpha > 0 && f.Spec.Alpha < 1) || !(f.Spec.Margin >= 0 && f.Spec.Margin < 1) {
		return fmt.Errorf("alpha is %g and the margin %g, expected shares below 1", f.Spec.Alpha, f.Spec.Margin)
	}
	rows := map[rowKey]bool{}
	for i := range f.Rows {
		r := &f.Rows[i]
		key := rowKey{r.Scenario, r.Candidate.Arm, r.Metric}
		if err := r.check(f.Baseline, arms); err != nil {
			return fmt.Errorf("row %d (%s, %s): %w", i+1, shorten(plain(r.Scenario), 60), shorten(plain(r.Metric), 40), err)
		}
		if rows[key] {
			return fmt.Errorf("row %d (%s, %s) stands there twice", i+1, shorten(plain(r.Scenario), 60), shorten(plain(r.Metric), 40))
		}
		rows[key] = true
	}
	return nil
}

// check says where a row is in contradiction with itself or the arms.
func (r *resultRow) check(baseline string, arms map[string]bool) error {
	for what, s := range map[string]string{"scenario": r.Scenario, "name": r.Name, "metric": r.Metric} {
		if s == "" || len(s) > maxLabel {
			return fmt.Errorf("its %s has %d bytes, expected 1 to %d", what, len(s), maxLabel)
		}
	}
	switch {
	case len(r.Unit) > 64:
		return fmt.Errorf("its unit has %d bytes, expected at most 64", len(r.Unit))
	case r.Better != "higher" && r.Better != "lower":
		return fmt.Errorf("better is %.20q, expected higher or lower", r.Better)
	case r.Baseline.Arm != baseline || !arms[r.Candidate.Arm] || r.Candidate.Arm == baseline:
		return fmt.Errorf("it compares %.40q with %.40q, which are not the baseline and a candidate", r.Candidate.Arm, r.Baseline.Arm)
	case r.Blocks < 0 || r.Dropped < 0 || r.MoreBlocks < 0 || r.Baseline.Trials < 0 || r.Candidate.Trials < 0:
		return errors.New("it has fewer than no blocks or trials")
	}
	if r.Verdict != nil && !slices.Contains(verdicts, *r.Verdict) {
		return fmt.Errorf("verdict is %.20q, expected one of %v", *r.Verdict, verdicts)
	}
	for _, v := range []number{r.Baseline.Value, r.Candidate.Value, r.Noise} {
		if v < 0 {
			return fmt.Errorf("it has the figure %g, expected none below zero", v)
		}
	}
	if r.P < 0 || r.P > 1 || r.Confidence < 0 || r.Confidence > 1 {
		return fmt.Errorf("p is %g and the confidence %g, expected 0 to 1", r.P, r.Confidence)
	}
	if math.IsNaN(float64(r.Ratio)) {
		return nil
	}
	return r.checkRatio()
}

var verdicts = []Verdict{Regressed, Improved, Same, Unsure, New, Removed, Failed, Incomparable}

// checkRatio holds the ratio against the blocks and the values it comes from.
func (r *resultRow) checkRatio() error {
	if r.Ratio <= 0 {
		return fmt.Errorf("the ratio is %g, expected one above zero", r.Ratio)
	}
	if r.Blocks == 0 || len(r.PerBlock) != r.Blocks || len(r.BlockIDs) != r.Blocks {
		return fmt.Errorf("it counts %d blocks, with %d ratios of blocks %d", r.Blocks, len(r.PerBlock), len(r.BlockIDs))
	}
	var sum float64
	lowest, highest := math.Inf(1), 0.0
	for _, v := range r.PerBlock {
		if !(v > 0) { // not a number either
			return fmt.Errorf("a block has the ratio %g, expected one above zero", v)
		}
		sum += math.Log(float64(v))
		lowest, highest = math.Min(lowest, float64(v)), math.Max(highest, float64(v))
	}
	mean := math.Exp(sum / float64(r.Blocks))
	if !near(mean, float64(r.Ratio)) {
		return fmt.Errorf("the ratio is %.4g, and that of its blocks %.4g", r.Ratio, mean)
	}
	if !near(lowest, float64(r.Range[0])) || !near(highest, float64(r.Range[1])) {
		return fmt.Errorf("the range is %.4g to %.4g, and that of its blocks %.4g to %.4g", r.Range[0], r.Range[1], lowest, highest)
	}
	if v := float64(r.Candidate.Value / r.Baseline.Value); !math.IsNaN(v) && !near(v, float64(r.Ratio)) {
		return fmt.Errorf("the ratio is %.4g, and that of its values %.4g", r.Ratio, v)
	}
	if r.CI[0] > r.Ratio || r.CI[1] < r.Ratio {
		return fmt.Errorf("the ratio %.4g lies outside its interval of %.4g to %.4g", r.Ratio, r.CI[0], r.CI[1])
	}
	return nil
}

// near allows for the order of a sum, and for nothing that a table shows.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Max(math.Abs(a), math.Abs(b)) }
