package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Record is a line of a history. Times are in picoseconds; End is nil if the client was never answered.
type Record struct {
	Client    uint64          `json:"client"`
	Operation string          `json:"operation"`
	Key       string          `json:"key"`
	Value     *string         `json:"value"`
	Expected  *string         `json:"expected"`
	Result    json.RawMessage `json:"result"`
	Start     uint64          `json:"start"`
	End       *uint64         `json:"end"`
}

// Kind is what an operation does.
type Kind int

const (
	// Get finds the key's value, or nothing.
	Get Kind = iota
	// Put stores a value.
	Put
	// Delete removes the key, and says whether it was there.
	Delete
	// CompareAndSwap stores a value (nothing: removes the key) if the key holds the expected one (nothing: if it is not there), and says whether it did.
	CompareAndSwap
)

// Value is a string, or nothing.
type Value struct {
	IsThere bool
	Text    string
}

// Request is what a client asked for.
type Request struct {
	Kind     Kind
	Key      string
	Value    Value
	Expected Value
}

// Response is what a client was told. IsKnown is false if it was told nothing.
type Response struct {
	IsKnown bool
	// Found is for Get.
	Found Value
	// DidIt is for Delete and CompareAndSwap.
	DidIt bool
}

// Entry is an operation as its client saw it.
type Entry struct {
	Client   uint64
	Request  Request
	Response Response
	Start    uint64
	// End is not set if Response is not known.
	End uint64
}

// lineMax bounds a line, in bytes: a value has at most a few kilobytes.
const lineMax = 16 << 20

// ReadHistory reads JSON lines. An error names the line.
func ReadHistory(input io.Reader) ([]Entry, error) {
	lines := bufio.NewScanner(input)
	lines.Buffer(nil, lineMax)
	var history []Entry
	number := 0
	for lines.Scan() {
		number++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		entry, err := readLine(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		history = append(history, entry)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("after line %d: %w", number, err)
	}
	return history, nil
}

func readLine(line []byte) (Entry, error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	var record Record
	if err := decoder.Decode(&record); err != nil {
		return Entry{}, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return Entry{}, errors.New("more than one object in the line")
	}
	request, err := record.request()
	if err != nil {
		return Entry{}, err
	}
	entry := Entry{Client: record.Client, Request: request, Start: record.Start}
	if record.End == nil {
		return entry, nil
	}
	if *record.End < record.Start {
		return Entry{}, fmt.Errorf("it ends at %d, before it starts at %d", *record.End, record.Start)
	}
	entry.End = *record.End
	entry.Response, err = record.response(request.Kind)
	return entry, err
}

func (record *Record) request() (Request, error) {
	request := Request{Key: record.Key, Value: valueOf(record.Value), Expected: valueOf(record.Expected)}
	switch record.Operation {
	case "get":
		request.Kind = Get
	case "put":
		request.Kind = Put
		if record.Value == nil {
			return Request{}, errors.New("a put without a value")
		}
	case "delete":
		request.Kind = Delete
	case "cas":
		request.Kind = CompareAndSwap
	default:
		return Request{}, fmt.Errorf("operation %q is none of get, put, delete, cas", record.Operation)
	}
	return request, nil
}

func (record *Record) response(kind Kind) (Response, error) {
	response := Response{IsKnown: true}
	switch kind {
	case Get:
		var found *string
		if err := record.result(&found); err != nil {
			return Response{}, err
		}
		response.Found = valueOf(found)
	case Delete, CompareAndSwap:
		var didIt *bool
		if err := record.result(&didIt); err != nil {
			return Response{}, err
		}
		if didIt == nil {
			return Response{}, fmt.Errorf("result of an answered %s: true or false", record.Operation)
		}
		response.DidIt = *didIt
	}
	return response, nil
}

// result decodes the result; one that is left out is null.
func (record *Record) result(into any) error {
	if len(record.Result) == 0 {
		return nil
	}
	if err := json.Unmarshal(record.Result, into); err != nil {
		return fmt.Errorf("result of a %s: %w", record.Operation, err)
	}
	return nil
}

func valueOf(text *string) Value {
	if text == nil {
		return Value{}
	}
	return Value{IsThere: true, Text: *text}
}
