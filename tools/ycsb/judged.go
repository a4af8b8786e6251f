package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/go-redis/redis/v9"
	"github.com/pingcap/go-ycsb/pkg/ycsb"
)

// Microseconds that a read takes at most, in what is told of it.
const longest = 60_000_000

// judged counts what a database is asked and what fails. go-ycsb itself prints errors and goes on, and does not look
// at a record without fields.
type judged struct {
	ycsb.DB
	// Whether a read may find nothing: of a cache that forgets.
	mayMiss              bool
	done, failed, missed atomic.Int64
	once                 sync.Once
	cause                error
	lock                 sync.Mutex
	reads                *hdrhistogram.Histogram
}

// Times of reads are kept in microseconds up to a minute, with three digits.
func newJudged(db ycsb.DB, mayMiss bool) *judged {
	return &judged{DB: db, mayMiss: mayMiss, reads: hdrhistogram.New(1, longest, 3)}
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
	start := time.Now()
	found, err := j.DB.Read(ctx, table, key, fields)
	j.took(time.Since(start))
	if errors.Is(err, redis.Nil) || err == nil && len(found) != len(fields) {
		err = errMissing
	}
	if j.mayMiss && errors.Is(err, errMissing) {
		j.missed.Add(1)
		err = nil
	}
	return found, j.told(err)
}

func (j *judged) took(time time.Duration) {
	j.lock.Lock()
	defer j.lock.Unlock()
	if j.reads.RecordValue(time.Microseconds()) != nil {
		// It took longer than a minute.
		_ = j.reads.RecordValue(longest)
	}
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
