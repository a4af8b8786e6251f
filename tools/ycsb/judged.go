package main

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/pingcap/go-ycsb/pkg/ycsb"
)

// judged counts what a database is asked and what fails. go-ycsb itself prints errors and goes on, and does not look
// at a record without fields.
type judged struct {
	ycsb.DB
	done, failed atomic.Int64
	once         sync.Once
	cause        error
}

func (j *judged) told(err error) error {
	j.done.Add(1)
	if err != nil {
		j.failed.Add(1)
		j.once.Do(func() { j.cause = err })
	}
	return err
}

// The first error. Only after all operations have ended.
func (j *judged) first() error { return j.cause }

func (j *judged) Read(ctx context.Context, table, key string, fields []string) (map[string][]byte, error) {
	found, err := j.DB.Read(ctx, table, key, fields)
	if err == nil && len(found) != len(fields) {
		err = errMissing
	}
	return found, j.told(err)
}

func (j *judged) Update(ctx context.Context, table, key string, values map[string][]byte) error {
	return j.told(j.DB.Update(ctx, table, key, values))
}

func (j *judged) Insert(ctx context.Context, table, key string, values map[string][]byte) error {
	return j.told(j.DB.Insert(ctx, table, key, values))
}

func (j *judged) Delete(ctx context.Context, table, key string) error {
	return j.told(j.DB.Delete(ctx, table, key))
}
