package proc

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnviron(t *testing.T) {
	in := []string{
		"PATH=/bin", "HOME=/home/me", "LC_ALL=C", "GITHUB_TOKEN=x", "ACTIONS_RUNTIME_TOKEN=x", "CI_JOB_TOKEN=x",
		"AWS_SECRET_ACCESS_KEY=x", "NPM_TOKEN=x", "NODE_AUTH_TOKEN=x", "npm_config__authToken=x", "SSH_AUTH_SOCK=/x",
		"GITHUB_ENV=/x", "GITHUB_OUTPUT=/x", "GITHUB_PATH=/x", "BASH_ENV=/x", "LD_PRELOAD=/x", "NODE_OPTIONS=-r x",
		"http_proxy=http://proxy:3128", "https_proxy=http://me:secret@proxy:3128",
		"GOPROXY=https://me:secret@go.example,direct", "no_proxy=a@b", "broken", "=C:=x", "CI=true",
	}
	want := []string{"CI=true", "HOME=/home/me", "LC_ALL=C", "LOG_LEVEL=error", "PATH=/opt/bin", "http_proxy=http://proxy:3128", "no_proxy=a@b"}
	got := Environ(in, map[string]string{"LOG_LEVEL": "error", "PATH": "/opt/bin"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-expected +found):\n%s", diff)
	}
	if got := Environ(nil, map[string]string{"GITHUB_TOKEN": "asked for"}); len(got) != 1 {
		t.Errorf("found %q: what the spec sets by itself must pass", got)
	}
}
