package runner

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/tandem-bench/tandem/runner/proc"
	"github.com/tandem-bench/tandem/runner/source"
)

// planThere gives a service its folders on its host: a copy of the folder that
// it is to start in, or an empty one where it names none, and, where it asks
// for one, a folder for its data.
func (e *execution) planThere(ctx context.Context, s *service) error {
	h := e.hosts[s.Host]
	s.there = "service-" + s.key()
	var err error
	if s.Dir != "" {
		err = h.Send(ctx, filepath.Join(e.Spec.Dir, s.Dir), s.there)
	} else {
		err = h.MakeDir(ctx, s.there)
	}
	if err != nil || !usesData(s.Service) {
		return err
	}
	data := "data-" + s.key()
	s.vars["data"] = h.Path(data)
	return h.MakeDir(ctx, data)
}

// commandThere runs one command of a service on its host, as command does here.
func (e *execution) commandThere(ctx context.Context, h *there, c source.Command) (tail string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("it did not end within its timeout of %v", c.Timeout))
	defer cancel()
	res, err := h.Run(ctx, proc.Cmd{Name: c.Name, Argv: c.Argv, Dir: c.Dir, Env: proc.Environ(h.Environ(), c.Env), Log: c.Log})
	return ending(ctx, res, err)
}
