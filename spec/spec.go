// Package spec turns a bench.yaml into a [Spec]: it decodes, fills defaults,
// expands matrices, checks meaning and compiles expressions, and collects a
// [Diagnostic] with line and column for everything that is wrong.
//
// It stands at the head of the flow: bytes come in, a Spec goes out, to
// runner (which plans and runs it) and to report (which judges by it).
// Nothing here starts a process or opens a connection.
package spec

import "time"

// Spec is a bench.yaml, resolved: defaults are filled in, a profile is
// applied, the matrix is expanded, and every arm carries its own complete
// build, server and environment. It marshals to JSON and back without loss,
// which is how a journal carries the spec that it was taken with.
type Spec struct {
	Path    string `json:"path"`              // the file as it was named
	Dir     string `json:"dir"`               // absolute; relative paths of the spec start here
	Digest  string `json:"digest"`            // SHA-256 of the source bytes and the profile, in hex
	Source  string `json:"source"`            // the file's text, for reports
	Profile string `json:"profile,omitempty"` // the profile applied, if any

	Name       string      `json:"name"`
	Baseline   string      `json:"baseline"`        // name of the baseline arm
	Arms       []Arm       `json:"arms"`            // in file order
	Hosts      []Host      `json:"hosts,omitempty"` // other machines, in file order
	Services   []Service   `json:"services,omitempty"`
	Before     Hooks       `json:"before,omitzero"` // commands before the parts of the run
	After      Hooks       `json:"after,omitzero"`
	Pins       Pins        `json:"pins"`
	Generator  Generator   `json:"generator"`
	Plan       Plan        `json:"plan"`
	Scenarios  []Scenario  `json:"scenarios"` // one for each point of each matrix, in file order
	Judge      []string    `json:"judge"`     // metrics that get verdicts
	Alpha      float64     `json:"alpha"`     // chance that a same-code run marks any row
	Margin     float64     `json:"margin"`    // |change| below which a row counts as the same
	Thresholds []Threshold `json:"thresholds,omitempty"`
	Policy     Policy      `json:"policy"`
	Report     []Output    `json:"report,omitempty"`
	Versions   []Probe     `json:"versions,omitempty"` // commands whose first output line is recorded per arm
	Limits     Limits      `json:"limits"`

	Warnings []Diagnostic `json:"-"` // what is allowed but worth saying
}

// Arm is one version under test.
type Arm struct {
	Name     string              `json:"name"`
	Label    string              `json:"label,omitempty"` // shown in place of the name
	Git      *Git                `json:"git,omitempty"`   // exactly one of Git and Path is set
	Path     string              `json:"path,omitempty"`  // absolute folder
	Setup    []Step              `json:"setup,omitempty"` // steps before the build, in the arm's tree
	Build    []Step              `json:"build,omitempty"`
	Server   *Server             `json:"server,omitempty"` // nil where no scenario needs one
	Env      map[string]Template `json:"env,omitempty"`    // for builds, servers and commands of the arm
	Services []Service           `json:"services,omitempty"`
}

// Git names a revision.
type Git struct {
	Ref       string `json:"ref"`
	Repo      string `json:"repo"`       // absolute path of the repository
	MergeBase bool   `json:"merge_base"` // the merge base of HEAD and Ref instead of its tip
}

// Host is another machine, reached by ssh.
type Host struct {
	Name    string `json:"name"`
	SSH     string `json:"ssh"`               // what the ssh client connects to
	Address string `json:"address,omitempty"` // where its servers are reached; "": what ssh's configuration says
	Dir     string `json:"dir"`               // for Tandem's files there; a relative one starts in the home folder
}

// Step is one command of a build or a hook.
type Step struct {
	Run     Command             `json:"run"`
	Dir     string              `json:"dir,omitempty"` // relative to the tree it runs in
	Timeout time.Duration       `json:"timeout"`
	Env     map[string]Template `json:"env,omitempty"`
}

// Hooks are commands around the parts of a run. They run in the spec's
// folder, on any CPU, while nothing is loaded.
type Hooks struct {
	Run      []Step `json:"run,omitempty"`
	Block    []Step `json:"block,omitempty"`
	Scenario []Step `json:"scenario,omitempty"` // in each block
	Window   []Step `json:"window,omitempty"`   // around the warm-up and the measuring of all copies that share a window
}

// Part is a part of a run: a block of it, a scenario in a block, a window.
type Part string

const (
	RunPart      Part = "run"
	BlockPart    Part = "block"
	ScenarioPart Part = "scenario"
	WindowPart   Part = "window"
)

// Server says how one copy of an arm is started, known to be ready, and stopped.
type Server struct {
	Command Command             `json:"command"`
	Dir     string              `json:"dir,omitempty"` // relative to the copy's tree
	Env     map[string]Template `json:"env,omitempty"`
	Ready   Ready               `json:"ready"`
	Stop    Stop                `json:"stop"`
	Host    string              `json:"host,omitempty"` // "": this machine
}

// Ready is a readiness probe: exactly one of HTTP, TCP, Log and Exec is set.
type Ready struct {
	HTTP    Template      `json:"http,omitempty"` // a path on the server's port, or a URL; 2xx or 3xx is ready
	TCP     Template      `json:"tcp,omitempty"`  // a port or host:port that accepts a connection
	Log     string        `json:"log,omitempty"`  // a regular expression that a line of output matches
	Exec    *Command      `json:"exec,omitempty"` // exit status 0 is ready
	Timeout time.Duration `json:"timeout"`
}

// Stop is how a process is asked to end before it is killed.
type Stop struct {
	Signal  string        `json:"signal"` // TERM, INT, QUIT, HUP, KILL, USR1 or USR2
	Timeout time.Duration `json:"timeout"`
}

// Service is a helper process, such as a database.
type Service struct {
	Name    string              `json:"name"`
	Setup   []Step              `json:"setup,omitempty"` // before its start
	Command Command             `json:"command"`
	User    string              `json:"user,omitempty"` // who runs it where tandem is root's
	Dir     string              `json:"dir,omitempty"`
	Env     map[string]Template `json:"env,omitempty"`
	Ready   Ready               `json:"ready"`
	Stop    Stop                `json:"stop"`
	Host    string              `json:"host,omitempty"` // "": this machine
	Reset   *Reset              `json:"reset,omitempty"`
	Port    int                 `json:"port,omitempty"` // 0: a free one, as ${port}
	CPUs    string              `json:"cpus,omitempty"`
}

// Reset puts a service back into its first state.
type Reset struct {
	Steps  []Step `json:"steps"`
	Before Part   `json:"before"` // each part of this kind; RunPart: once, when the service is ready
}

// Pins says on which CPUs servers and the generator run: "auto", "none" or
// a CPU list such as "0,2-3".
type Pins struct {
	Server  string `json:"server"`
	Load    string `json:"load"`
	Require bool   `json:"require"` // false lets a run go on, with a warning, where pinning cannot be had
}

// Generator sizes the load generator.
type Generator struct {
	CPUs int `json:"cpus"`
}

// Interleave is how the copies share the measuring time (METHOD: section 1).
type Interleave string

const (
	Turns    Interleave = "turns"    // one copy at a time, a millisecond or two each
	Together Interleave = "together" // all copies loaded at once
	Windows  Interleave = "windows"  // one copy at a time, a whole slice each
)

// Plan sizes the measurement.
type Plan struct {
	Blocks     Blocks        `json:"blocks"`
	Window     time.Duration `json:"window"` // measuring time of each copy, block and scenario
	Warmup     time.Duration `json:"warmup"` // before each window
	Turn       time.Duration `json:"turn"`   // length of a turn
	Interleave Interleave    `json:"interleave"`
	Copies     int           `json:"copies"`
	Budget     time.Duration `json:"budget"` // 0: none
	Seed       uint64        `json:"seed"`
	SeedFixed  bool          `json:"seed_fixed"` // false: the spec leaves the seed to the run
}

// Blocks bounds the number of blocks; Min == Max fixes it.
type Blocks struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// Axis is one coordinate of a matrix point.
type Axis struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Scenario is one kind of load at one point of its matrix. Exactly one of
// HTTP, WS, Exec and Command is set.
type Scenario struct {
	Name    string   `json:"name"` // the map key
	Matrix  []Axis   `json:"matrix,omitempty"`
	HTTP    *HTTP    `json:"http,omitempty"`
	WS      *WS      `json:"ws,omitempty"`
	Exec    *Exec    `json:"exec,omitempty"`
	Command *Process `json:"command,omitempty"`

	Expect     *Expect       `json:"expect,omitempty"` // what a valid response satisfies
	Verify     []Verify      `json:"verify,omitempty"` // what every copy must pass before it is first loaded
	Before     []Step        `json:"before,omitempty"` // commands before this scenario in each block
	After      []Step        `json:"after,omitempty"`
	Prime      *Prime        `json:"prime,omitempty"` // load before the first warm-up of the scenario in a block
	Control    bool          `json:"control,omitempty"`
	Judge      []string      `json:"judge,omitempty"`  // nil: the spec's
	Errors     float64       `json:"errors,omitempty"` // share of requests that may fail before a trial is invalid
	Window     time.Duration `json:"window"`           // the plan's unless overridden
	Warmup     time.Duration `json:"warmup"`
	Interleave Interleave    `json:"interleave"`
	Arms       []string      `json:"arms,omitempty"` // the arms that have it; nil: all
}

// ID is the scenario's name and its matrix point, "db[c=16]", unique in a spec.
func (s Scenario) ID() string {
	id := s.Name
	for i, a := range s.Matrix {
		if i == 0 {
			id += "["
		} else {
			id += ","
		}
		id += a.Name + "=" + a.Value
		if i == len(s.Matrix)-1 {
			id += "]"
		}
	}
	return id
}

// Verify is a check of every copy: a command, which ends with status 0 where
// the copy is right, or a request. What a request leaves open is as in the
// scenario's own.
type Verify struct {
	Run     *Step         `json:"run,omitempty"`
	Method  string        `json:"method,omitempty"`
	Path    Template      `json:"path,omitempty"`
	Headers []Header      `json:"headers,omitempty"`
	Body    Template      `json:"body,omitempty"`
	Expect  *Expect       `json:"expect,omitempty"`  // nil: any status from 200 to 399
	Changes []string      `json:"changes,omitempty"` // headers that get another value in time, such as date
	Timeout time.Duration `json:"timeout,omitempty"` // of a request, with its repetitions
}

// Prime is load that is not measured, by fewer connections than the warm-up.
type Prime struct {
	Time        time.Duration `json:"time"`
	Connections int           `json:"connections"`
}

// HTTP is an HTTP scenario: closed loop over Connections, or open loop at
// Rate where that is above zero.
type HTTP struct {
	URL          Template            `json:"url,omitempty"` // set only where the target is not the arm's own ${url}
	Method       string              `json:"method"`
	Path         Template            `json:"path"`
	Headers      []Header            `json:"headers,omitempty"` // in file order
	Body         Template            `json:"body,omitempty"`
	BodyFile     string              `json:"body_file,omitempty"` // absolute
	Connections  int                 `json:"connections"`
	Pipeline     int                 `json:"pipeline"`
	PipelineMode string              `json:"pipeline_mode,omitempty"` // sliding or batch
	KeepAlive    bool                `json:"keepalive"`
	Timeout      time.Duration       `json:"timeout"` // of one request
	Think        time.Duration       `json:"think,omitempty"`
	Rate         float64             `json:"rate,omitempty"`  // requests per second
	Pacer        *Pacer              `json:"pacer,omitempty"` // a rate that varies
	Version      string              `json:"version,omitempty"`
	TLS          *TLS                `json:"tls,omitempty"`
	Sign         *Sign               `json:"sign,omitempty"`
	Data         string              `json:"data,omitempty"`     // absolute path of a CSV or JSON-lines file
	Requests     []WeightedRequest   `json:"requests,omitempty"` // a rotation in place of the single request
	Vars         map[string]Template `json:"vars,omitempty"`
}

// Header is one header field of a request.
type Header struct {
	Name  string   `json:"name"`
	Value Template `json:"value"`
}

// WeightedRequest is one request of a rotation.
type WeightedRequest struct {
	Method  string   `json:"method"`
	Path    Template `json:"path"`
	Headers []Header `json:"headers,omitempty"`
	Body    Template `json:"body,omitempty"`
	Weight  int      `json:"weight"`
}

// Pacer is a rate that varies over a window, as vegeta's pacers do.
type Pacer struct {
	Kind   string        `json:"kind"` // ramp or sine
	From   float64       `json:"from,omitempty"`
	To     float64       `json:"to,omitempty"`
	Mean   float64       `json:"mean,omitempty"`
	Swing  float64       `json:"swing,omitempty"`
	Period time.Duration `json:"period,omitempty"`
}

// TLS configures https targets.
type TLS struct {
	CA         string `json:"ca,omitempty"` // absolute path of a PEM file
	Insecure   bool   `json:"insecure,omitempty"`
	ServerName string `json:"server_name,omitempty"`
}

// Sign computes a header from the body of each request.
type Sign struct {
	Header string   `json:"header"`
	HMAC   string   `json:"hmac"` // sha1, sha256 or sha512
	Key    Template `json:"key"`
	Prefix string   `json:"prefix,omitempty"`
}

// WS is a websocket echo scenario.
type WS struct {
	URL         Template      `json:"url,omitempty"`
	Path        Template      `json:"path"`
	Headers     []Header      `json:"headers,omitempty"`
	Size        int           `json:"size"` // bytes of a message
	Message     Template      `json:"message,omitempty"`
	Reply       Template      `json:"reply,omitempty"` // expected; empty: an echo
	Binary      bool          `json:"binary,omitempty"`
	Connections int           `json:"connections"`
	Pipeline    int           `json:"pipeline"`
	Deflate     bool          `json:"deflate,omitempty"`
	Timeout     time.Duration `json:"timeout"`
	TLS         *TLS          `json:"tls,omitempty"`
}

// Exec is another load tool.
type Exec struct {
	Command     Command             `json:"command"`
	Env         map[string]Template `json:"env,omitempty"`
	Connections int                 `json:"connections,omitempty"` // ${connections}
	Preset      string              `json:"preset,omitempty"`
	Metrics     []Extract           `json:"metrics,omitempty"`
	Counter     *Counter            `json:"counter,omitempty"`
	Errors      []string            `json:"errors,omitempty"` // regular expressions that mean failure
	Endless     bool                `json:"endless,omitempty"`
	Timeout     time.Duration       `json:"timeout"`
	Request     *Request            `json:"request,omitempty"` // ${request} in Command
}

// Request is the one request that another load tool sends. It is checked
// like that of an HTTP scenario, and handed to the tool as arguments.
type Request struct {
	Method   string   `json:"method"`
	Path     Template `json:"path"`
	Headers  []Header `json:"headers,omitempty"` // in file order
	Body     Template `json:"body,omitempty"`
	BodyFile string   `json:"body_file,omitempty"` // absolute
	Sign     *Sign    `json:"sign,omitempty"`
}

// Counter is where a server tells how many requests it has answered so far.
// Without Regex and JSON the answer is the number alone.
type Counter struct {
	HTTP  Template `json:"http"` // a path of the copy's server, or a URL
	Regex string   `json:"regex,omitempty"`
	JSON  string   `json:"json,omitempty"` // a dotted path
}

// Extract reads one metric from a tool's output.
type Extract struct {
	Metric string `json:"metric"`
	Regex  string `json:"regex,omitempty"`
	JSON   string `json:"json,omitempty"` // a dotted path
	Better string `json:"better"`         // higher or lower
	Unit   string `json:"unit"`
}

// Process is a scenario whose every sample is one process.
type Process struct {
	Run     Command             `json:"run"`
	Dir     string              `json:"dir,omitempty"`
	Env     map[string]Template `json:"env,omitempty"`
	Prepare *Step               `json:"prepare,omitempty"`
	Cleanup *Step               `json:"cleanup,omitempty"`
	Stdin   string              `json:"stdin,omitempty"` // absolute path
	Exit    int                 `json:"exit"`            // the exit status that counts as success
	Compare bool                `json:"compare"`         // output must agree between arms
	Timeout time.Duration       `json:"timeout"`
}

// Threshold gates the rows whose metric and scenario its globs select.
type Threshold struct {
	Metric   string `json:"metric"`   // glob
	Scenario string `json:"scenario"` // glob over Scenario.ID and Scenario.Name; "*" by default, which also spans "/"
	Mark     *Gate  `json:"mark,omitempty"`
	Warn     *Gate  `json:"warn,omitempty"`
	Fail     *Gate  `json:"fail,omitempty"`
	Message  string `json:"message,omitempty"`
	Line     int    `json:"line"`
}

// Action is what a policy does with a row that has no passing verdict.
type Action string

const (
	Pass Action = "pass"
	Warn Action = "warn"
	Fail Action = "fail"
)

// Policy says what the verdicts that are not verdicts mean for the exit code.
type Policy struct {
	Unsure       Action `json:"unsure"`
	New          Action `json:"new"`
	Removed      Action `json:"removed"`
	Failed       Action `json:"failed"`
	Incomparable Action `json:"incomparable"`

	// What it means that a change under test changes the spec or files that
	// it names, and the label of a pull request that makes a failure a
	// warning.
	SpecChanged      Action `json:"spec_changed,omitempty"`
	SpecChangedLabel string `json:"spec_changed_label,omitempty"`
}

// Output is one report to write after a run.
type Output struct {
	Format string `json:"format"` // markdown, json, html, junit, csv, benchfmt or text
	Path   string `json:"path"`   // relative to the spec's folder
}

// Probe is a command whose first line of output is recorded as a version.
type Probe struct {
	Name string  `json:"name"`
	Run  Command `json:"run"`
}

// Limits bounds what a server process may use; zero means no bound.
type Limits struct {
	Memory    int64 `json:"memory,omitempty"` // bytes
	NoFile    int   `json:"nofile,omitempty"`
	Processes int   `json:"processes,omitempty"`
}
