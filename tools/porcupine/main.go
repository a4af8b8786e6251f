// Command porcupine judges a history of a key-value store, written as JSON lines, with the linearizability checker Porcupine
// (https://github.com/anishathalye/porcupine): an opinion from outside on what crates/history says.
//
//	porcupine [-timeout 60s] [history.jsonl]
//
// Without a file it reads the standard input. It prints one line, and ends with 0 (linearizable), 1 (illegal: the line names a key), 2 (unknown: no time was
// left) or 3 (the history cannot be read).
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(arguments []string, input io.Reader, output, complaints io.Writer) int {
	flags := flag.NewFlagSet("porcupine", flag.ContinueOnError)
	flags.SetOutput(complaints)
	timeout := flags.Duration("timeout", 60*time.Second, "how long to think about each key; 0: without end")
	if err := flags.Parse(arguments); err != nil {
		return int(Unreadable)
	}
	if flags.NArg() > 1 {
		fmt.Fprintf(complaints, "porcupine: one file at most, got %d\n", flags.NArg())
		return int(Unreadable)
	}
	if flags.NArg() == 1 {
		file, err := os.Open(flags.Arg(0))
		if err != nil {
			fmt.Fprintf(complaints, "porcupine: %v\n", err)
			return int(Unreadable)
		}
		defer file.Close()
		input = file
	}
	return judge(input, *timeout, output, complaints)
}

func judge(input io.Reader, timeout time.Duration, output, complaints io.Writer) int {
	history, err := ReadHistory(input)
	if err != nil {
		fmt.Fprintf(complaints, "porcupine: %v\n", err)
		return int(Unreadable)
	}
	verdict, key := Check(history, timeout)
	switch verdict {
	case Linearizable:
		fmt.Fprintf(output, "linearizable: %d operations\n", len(history))
	case Illegal:
		fmt.Fprintf(output, "illegal: key %q\n", key)
	default:
		fmt.Fprintf(output, "unknown: key %q took longer than %v\n", key, timeout)
	}
	return int(verdict)
}
