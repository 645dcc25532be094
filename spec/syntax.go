package spec

import (
	"regexp"
	"strconv"
	"strings"
)

var yamlLine = regexp.MustCompile(`^line ([0-9]+): `)

// syntaxError reports that the file is not YAML.
func (d *decoder) syntaxError(err error) {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = msg[len(m[0]):]
	}
	d.errorAt(pos{line, 1}, 1, kindSyntax, msg, "")
}
