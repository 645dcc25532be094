// Sweep answers the six tests of the TechEmpower benchmarks, on net/http or
// on fasthttp: the same queries, the same answers, another engine.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	s, err := openStore(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer s.pool.Close()
	addr := "127.0.0.1:" + os.Getenv("PORT")
	switch engine := os.Getenv("ENGINE"); engine {
	case "nethttp":
		return serveNetHTTP(addr, s)
	case "fasthttp":
		return serveFastHTTP(addr, s)
	default:
		return fmt.Errorf("ENGINE is %q: expected nethttp or fasthttp", engine)
	}
}
