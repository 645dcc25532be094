//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tandem-bench/tandem/runner/load"
	"github.com/tandem-bench/tandem/spec"
)

// tool is another load tool: its command without and with a rate. The presets
// of the exec driver read what it measures.
type tool struct {
	name         string
	closed, open string
}

var tools = []tool{
	{"wrk", "wrk -t1 -c${connections} -d${window} --latency", ""},
	{"h2load", "h2load --h1 -t1 -c${connections} -D${window} -m${env.PIPELINE}", ""},
	{"ab", "ab -q -k -t ${window} -n 100000000 -c ${connections}", ""},
	{"bombardier", "bombardier -l -p r -o json -c ${connections} -d ${window}", "bombardier -l -p r -o json -c ${connections} -d ${window} -r ${env.RATE}"},
	{"hey", "hey -cpus 1 -c ${connections} -z ${window}", "hey -cpus 1 -c ${connections} -z ${window} -q ${env.RATE_EACH}"},
	{"autocannon", "autocannon -j -n -c ${connections} -d ${window} -p ${env.PIPELINE}", "autocannon -j -n -c ${connections} -d ${window} -R ${env.RATE}"},
	{
		"vegeta", "echo GET ${env.TARGET} | vegeta -cpus 1 attack -rate 0 -max-workers ${connections} -duration ${window} | vegeta report -type json",
		"echo GET ${env.TARGET} | vegeta -cpus 1 attack -rate ${env.RATE} -workers ${connections} -duration ${window} | vegeta report -type json",
	},
}

// findTool finds a tool by its name.
func findTool(name string) (tool, error) {
	var names []string
	for _, t := range tools {
		if t.name == name {
			return t, nil
		}
		names = append(names, t.name)
	}
	return tool{}, fmt.Errorf("peer %q: expected one of %s", name, strings.Join(names, ", "))
}

// run runs the tool once on a server, on the generator's CPU: at a rate, or
// as fast as it can where that is zero.
func (t tool) run(ctx context.Context, c config, s *server, rate float64) (outcome, error) {
	url := "http://" + s.addr + "/"
	line := t.closed
	if rate > 0 {
		line = t.open
	}
	if t.name != "vegeta" {
		line += " ${env.TARGET}"
	}
	if t.name == "wrk" && c.pipeline > 1 {
		script, err := c.pipelineScript()
		if err != nil {
			return outcome{}, err
		}
		line = strings.Replace(line, "wrk", "wrk -s "+script, 1)
	}
	env := map[string]string{
		"TARGET": url, "PIPELINE": fmt.Sprint(c.pipeline), "RATE": fmt.Sprint(rate), "RATE_EACH": fmt.Sprint(rate / float64(c.connections)),
	}
	d, err := load.New(spec.Scenario{Name: t.name, Exec: &spec.Exec{
		Command: spec.Command{Shell: spec.Template(line)}, Preset: t.name, Connections: c.connections, Timeout: time.Minute,
	}}, load.Options{
		CPUs: []int{c.loadCPU},
		Env:  func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	})
	if err != nil {
		return outcome{}, err
	}
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return outcome{}, err
	}
	target := load.Target{Name: t.name, Addr: s.addr, Env: os.Environ(), Vars: spec.Vars{"url": url, "host": host, "port": port}}
	l, err := d.Open(ctx, []load.Target{target})
	if err != nil {
		return outcome{}, err
	}
	defer func() { _ = l.Close() }()
	before := s.cpu()
	samples, err := l.Run(ctx, load.Schedule{Mode: spec.Windows, Window: c.window, Order: identity})
	if err != nil {
		return outcome{}, err
	}
	r := samples[0]
	if r.OK == 0 {
		return outcome{}, fmt.Errorf("%s: no valid response: %v", t.name, r.Errors)
	}
	o := outcomeOf(r)
	o.server = (s.cpu() - before) / time.Duration(r.OK)
	o.client = o.work
	return o, nil
}

// outcomeOf takes from a sample what the tables show.
func outcomeOf(r load.Sample) outcome {
	v := r.Values()
	seconds := func(name string) time.Duration { return time.Duration(v[name] * 1e9) }
	o := outcome{rps: v["rps"], mean: seconds("latency.mean"), p50: seconds("latency.p50"), p90: seconds("latency.p90"), p99: seconds("latency.p99")}
	if r.OK > 0 {
		o.work = r.Generator.CPU / time.Duration(r.OK)
	}
	return o
}

// pipelineScript writes the script by which wrk pipelines requests.
func (c config) pipelineScript() (string, error) {
	script := filepath.Join(c.dir, "pipeline.lua")
	text := fmt.Sprintf("init = function(args)\n local r = {}\n for i=1,%d do r[i] = wrk.format(nil, '/') end\n req = table.concat(r)\nend\nrequest = function() return req end\n", c.pipeline)
	return script, os.WriteFile(script, []byte(text), 0o644)
}
