package proc

import (
	"maps"
	"slices"
	"strings"
)

// allowed are the variables that children get from our own environment: what
// programs need to find themselves, their tools, caches and certificates.
// Everything else stays here, the tokens of a CI job first of all: the code
// under test may be anybody's.
var allowed = [...]string{
	// the user and the system
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "LANG", "LANGUAGE",
	"TMPDIR", "TMP", "TEMP", "HOSTNAME", "CI",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
	// finding libraries
	"LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "PKG_CONFIG_PATH", "DYLD_LIBRARY_PATH", "MANPATH",
	// certificates
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
	"GIT_SSL_CAINFO", "AWS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "NIX_SSL_CERT_FILE",
	// proxies, unless they hold a password
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
	"http_proxy", "https_proxy", "no_proxy", "all_proxy",
	// compilers and build tools
	"CC", "CXX", "AR", "LD", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "MAKEFLAGS",
	"CCACHE_DIR", "SCCACHE_DIR",
	// languages
	"GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GONOPROXY", "GONOSUMDB",
	"GOPRIVATE", "GOSUMDB", "GONOSUMCHECK", "GOTOOLCHAIN", "GOBIN", "GOENV", "GOEXPERIMENT",
	"NODE_PATH", "NVM_DIR", "NVM_BIN", "NPM_CONFIG_REGISTRY", "npm_config_registry",
	"NPM_CONFIG_CACHE", "npm_config_cache", "NPM_CONFIG_CAFILE", "npm_config_cafile",
	"NPM_CONFIG_PREFIX", "npm_config_prefix", "COREPACK_HOME", "PNPM_HOME", "BUN_INSTALL", "DENO_DIR", "VOLTA_HOME",
	"PYENV_ROOT", "PYENV_VERSION", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "CONDA_PREFIX",
	"PIP_INDEX_URL", "PIP_CACHE_DIR", "PIP_FIND_LINKS", "UV_CACHE_DIR",
	"CARGO_HOME", "CARGO_TARGET_DIR", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "RUSTFLAGS",
	"JAVA_HOME", "MAVEN_HOME", "M2_HOME", "GRADLE_HOME", "GRADLE_USER_HOME",
	"DOTNET_ROOT", "NUGET_PACKAGES", "GEM_HOME", "GEM_PATH", "RBENV_ROOT", "BUNDLE_PATH",
	"ERLANG_HOME", "MIX_HOME", "HEX_HOME", "COMPOSER_HOME", "ANDROID_HOME",
	// Windows
	"SYSTEMROOT", "SystemRoot", "COMSPEC", "ComSpec", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMFILES",
}

// Environ makes a child's whole environment: of environ (as os.Environ gives
// it) only what is on a list of names that programs need and that hold no
// secrets, then extra on top. A listed variable whose value is a URL with a
// password in it does not pass. The result is sorted.
func Environ(environ []string, extra map[string]string) []string {
	env := map[string]string{}
	for _, e := range environ {
		name, value, ok := strings.Cut(e, "=")
		if ok && passes(name) && !hasPassword(value) {
			env[name] = value
		}
	}
	maps.Copy(env, extra)
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// passes reports whether a variable is on the list.
func passes(name string) bool {
	return strings.HasPrefix(name, "LC_") || slices.Contains(allowed[:], name)
}

// hasPassword reports whether a value holds a URL (or a list of them) with
// user information in it.
func hasPassword(value string) bool {
	for {
		_, rest, ok := strings.Cut(value, "://")
		if !ok {
			return false
		}
		host := rest
		if i := strings.IndexAny(host, "/?#, |"); i >= 0 {
			host = host[:i]
		}
		if strings.Contains(host, "@") {
			return true
		}
		value = rest
	}
}
