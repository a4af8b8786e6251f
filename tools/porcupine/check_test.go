package main

import (
	"bytes"
	"strings"
	"testing"
)

// says runs the command on a history, and gives its exit code and what it printed.
func says(history string, arguments ...string) (int, string) {
	var output, complaints bytes.Buffer
	code := run(arguments, strings.NewReader(history), &output, &complaints)
	return code, output.String() + complaints.String()
}

func TestHistories(t *testing.T) {
	cases := map[string]struct {
		history string
		code    int
		message string
	}{
		"nothing happened": {"", 0, "linearizable: 0 operations"},
		"a read after a write finds it": {`
{"client":1,"operation":"put","key":"a","value":"1","expected":null,"result":null,"start":0,"end":10}
{"client":2,"operation":"get","key":"a","value":null,"expected":null,"result":"1","start":11,"end":20}`, 0, "linearizable: 2 operations"},
		"a stale read": {`
{"client":1,"operation":"put","key":"a","value":"1","start":0,"end":10}
{"client":2,"operation":"get","key":"a","result":null,"start":11,"end":20}`, 1, `illegal: key "a"`},
		"operations that touch overlap": {`
{"client":1,"operation":"put","key":"a","value":"1","start":0,"end":10}
{"client":2,"operation":"get","key":"a","result":null,"start":10,"end":20}`, 0, "linearizable"},
		"new, then old": {`
{"client":1,"operation":"put","key":"a","value":"1","start":0,"end":100}
{"client":2,"operation":"get","key":"a","result":"1","start":10,"end":20}
{"client":3,"operation":"get","key":"a","result":null,"start":21,"end":30}`, 1, `illegal: key "a"`},
		"a write without an answer may come late": {`
{"client":1,"operation":"put","key":"a","value":"1","start":0,"end":null}
{"client":2,"operation":"get","key":"a","result":null,"start":10,"end":20}
{"client":2,"operation":"get","key":"a","result":"1","start":21,"end":30}`, 0, "linearizable"},
		"and never goes again": {`
{"client":1,"operation":"put","key":"a","value":"1","start":0,"end":null}
{"client":2,"operation":"get","key":"a","result":"1","start":10,"end":20}
{"client":2,"operation":"get","key":"a","result":null,"start":21,"end":30}`, 1, `illegal: key "a"`},
		"a read without an answer says nothing": {`
{"client":2,"operation":"get","key":"a","result":null,"start":10,"end":null}`, 0, "linearizable"},
		"a delete says whether there was anything": {`
{"client":1,"operation":"put","key":"a","value":"1","start":0,"end":10}
{"client":1,"operation":"delete","key":"a","result":true,"start":11,"end":20}
{"client":1,"operation":"delete","key":"a","result":false,"start":21,"end":30}`, 0, "linearizable"},
		"twice is a lie": {`
{"client":1,"operation":"put","key":"a","value":"1","start":0,"end":10}
{"client":1,"operation":"delete","key":"a","result":true,"start":11,"end":20}
{"client":1,"operation":"delete","key":"a","result":true,"start":21,"end":30}`, 1, `illegal: key "a"`},
		"one of two swaps wins": {`
{"client":1,"operation":"cas","key":"a","expected":null,"value":"1","result":true,"start":0,"end":30}
{"client":2,"operation":"cas","key":"a","expected":null,"value":"2","result":false,"start":0,"end":30}
{"client":2,"operation":"get","key":"a","result":"1","start":31,"end":40}`, 0, "linearizable"},
		"both do not": {`
{"client":1,"operation":"cas","key":"a","expected":null,"value":"1","result":true,"start":0,"end":30}
{"client":2,"operation":"cas","key":"a","expected":null,"value":"2","result":true,"start":0,"end":30}`, 1, `illegal: key "a"`},
		"a swap may remove": {`
{"client":1,"operation":"put","key":"a","value":"1","start":0,"end":10}
{"client":1,"operation":"cas","key":"a","expected":"1","value":null,"result":true,"start":11,"end":20}
{"client":2,"operation":"get","key":"a","result":null,"start":21,"end":30}`, 0, "linearizable"},
		"keys are judged apart, the first is named": {`
{"client":2,"operation":"get","key":"8","result":null,"start":0,"end":1}
{"client":2,"operation":"get","key":"9","result":"9","start":0,"end":1}
{"client":2,"operation":"get","key":"10","result":"9","start":0,"end":1}`, 1, `illegal: key "9"`},
		"no operation of ours": {`{"client":1,"operation":"incr","key":"a","start":0,"end":1}`, 3, `line 1: operation "incr" is none of get, put, delete, cas`},
		"time runs back":       {`{"client":1,"operation":"get","key":"a","start":2,"end":1}`, 3, "line 1: it ends at 1, before it starts at 2"},
		"a put of nothing":     {`{"client":1,"operation":"put","key":"a","start":0,"end":1}`, 3, "line 1: a put without a value"},
		"a swap without word":  {`{"client":1,"operation":"cas","key":"a","value":"1","start":0,"end":1}`, 3, "line 1: result of an answered cas: true or false"},
		"a misspelt field":     {`{"client":1,"operation":"get","kee":"a","start":0,"end":1}`, 3, `line 1: json: unknown field "kee"`},
		"half a line":          {"\n" + `{"client":1,"operation":"get"`, 3, "line 2: unexpected EOF"},
		"two in a line":        {`{"client":1,"operation":"get","key":"a","start":0,"end":1} {}`, 3, "line 1: more than one object"},
	}
	for name, it := range cases {
		t.Run(name, func(t *testing.T) {
			code, message := says(it.history)
			if code != it.code || !strings.Contains(message, it.message) {
				t.Errorf("got %d %q, want %d %q", code, message, it.code, it.message)
			}
		})
	}
}

func TestNoTimeLeftIsUnknown(t *testing.T) {
	var history strings.Builder
	// Forty writes at once, and a read of what nobody wrote: every order must be tried.
	for client := 0; client < 40; client++ {
		history.WriteString(`{"client":1,"operation":"put","key":"a","value":"` + strings.Repeat("x", client+1) + `","start":0,"end":100}` + "\n")
	}
	history.WriteString(`{"client":2,"operation":"get","key":"a","result":"y","start":0,"end":100}` + "\n")
	code, message := says(history.String(), "-timeout", "50ms")
	if code != 2 || !strings.HasPrefix(message, `unknown: key "a"`) {
		t.Errorf("got %d %q", code, message)
	}
}

func TestArgumentsThatMakeNoSense(t *testing.T) {
	for _, arguments := range [][]string{{"-wrong"}, {"one", "two"}, {"/nowhere/history.jsonl"}} {
		if code, message := says("", arguments...); code != 3 || message == "" {
			t.Errorf("%v: got %d %q", arguments, code, message)
		}
	}
}
