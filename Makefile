# make test sets up what the tests need and runs them all.
.PHONY: build test race lint fuzz

build:
	go build -o tandem ./cmd/tandem

test: setup
	go test ./...

race: setup
	go test -race ./...

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
