package main

import (
	"github.com/spf13/cobra"

	tandem "github.com/tandem-bench/tandem"
)

func (a *app) schemaCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of bench.yaml, for editors",
		Example: `  tandem schema > schema.json
  # and as the first line of bench.yaml:
  # yaml-language-server: $schema=./schema.json`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.stdout.Write(tandem.Schema)
			return err
		},
	}
}
