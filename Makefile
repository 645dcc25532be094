# make test sets up what the tests need and runs them all.
.PHONY: build test race lint fuzz

# Where .ci/setup puts the load tools that the tests drive.
export PATH := $(CURDIR)/.ci/tools/bin:$(CURDIR)/.ci/tools/node_modules/.bin:$(PATH)

build:
	go build -o tandem ./cmd/tandem

# One package at a time: the end-to-end tests measure, and share two CPUs.
test: setup
	go test -p 1 ./...

# The examples are left to make test: they measure, and the detector makes everything ten times slower.
race: setup
	go test -p 1 -race -skip "TestScripts/quickstart|TestExamplesRun" ./...

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'run gofmt -w on these files'; exit 1; }
	go vet ./...
	GOOS=darwin go vet ./...
	GOOS=windows go vet ./...
	go tool staticcheck ./...

.PHONY: setup
setup:
	.ci/setup

# Each fuzz target for a minute.
fuzz:
	.ci/fuzz 60s
