// Reads a compose file as docker compose does (its own loader) and prints the resolved project as JSON.
//
//	composefile FILE [PROFILE...]
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	options, err := cli.NewProjectOptions(
		os.Args[1:2],
		cli.WithOsEnv,
		cli.WithProfiles(os.Args[2:]),
		cli.WithName("checked"),
	)
	if err == nil {
		var text []byte
		project, failure := options.LoadProject(context.Background())
		if err = failure; err == nil {
			if text, err = project.MarshalJSON(); err == nil {
				fmt.Println(string(text))
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
