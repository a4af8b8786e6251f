package main

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// Verdict is what comes out; its number is the exit code.
type Verdict int

const (
	// Linearizable: some order of the operations explains every answer.
	Linearizable Verdict = iota
	// Illegal: no order does.
	Illegal
	// Unknown: there was no time left.
	Unknown
	// Unreadable: there was no history.
	Unreadable
)

// store is a key-value store of one key.
var store = porcupine.Model{
	Init: func() any { return Value{} },
	Step: func(state, input, output any) (bool, any) {
		return step(state.(Value), input.(Request), output.(Response))
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// step says whether a store that holds this value may answer so, and what it holds then.
func step(held Value, request Request, response Response) (bool, Value) {
	switch request.Kind {
	case Get:
		return !response.IsKnown || response.Found == held, held
	case Put:
		return true, request.Value
	case Delete:
		return !response.IsKnown || response.DidIt == held.IsThere, Value{}
	default:
		isSwapped := held == request.Expected
		next := held
		if isSwapped {
			next = request.Value
		}
		return !response.IsKnown || response.DidIt == isSwapped, next
	}
}

// Check judges each key alone (linearizability is local), in the order in which they appear, and names the first that is not linearizable, or
// else the first that took too long.
func Check(history []Entry, timeout time.Duration) (Verdict, string) {
	byKey := map[string][]porcupine.Operation{}
	var keys []string
	for _, entry := range history {
		if operation, says := operationOf(entry); says {
			key := entry.Request.Key
			if byKey[key] == nil {
				keys = append(keys, key)
			}
			byKey[key] = append(byKey[key], operation)
		}
	}
	verdict, where := Linearizable, ""
	for _, key := range keys {
		switch porcupine.CheckOperationsTimeout(store, byKey[key], timeout) {
		case porcupine.Illegal:
			return Illegal, key
		case porcupine.Unknown:
			if verdict == Linearizable {
				verdict, where = Unknown, key
			}
		}
	}
	return verdict, where
}

// operationOf translates an entry. A read without an answer says nothing. Anything else without one may take effect at any time from its start on, or never, which is the
// same as after everything that was seen.
//
// Porcupine counts operations that touch in an instant as overlapping, as we do.
func operationOf(entry Entry) (porcupine.Operation, bool) {
	if !entry.Response.IsKnown && entry.Request.Kind == Get {
		return porcupine.Operation{}, false
	}
	end := int64(math.MaxInt64)
	if entry.Response.IsKnown {
		end = clamp(entry.End)
	}
	return porcupine.Operation{ClientId: 0, Input: entry.Request, Output: entry.Response, Call: clamp(entry.Start), Return: end}, true
}

// clamp keeps a time below what stands for never: picoseconds in 63 bits are 106 days.
func clamp(time uint64) int64 {
	if time >= math.MaxInt64 {
		return math.MaxInt64 - 1
	}
	return int64(time)
}
