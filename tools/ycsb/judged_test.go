package main

import (
	"context"
	"errors"
	"testing"

	"github.com/go-redis/redis/v9"
	"github.com/pingcap/go-ycsb/pkg/ycsb"
)

// A database whose answers are known. What is not asked for here is not there.
type known struct {
	ycsb.DB
	found map[string][]byte
	err   error
}

func (k known) Read(context.Context, string, string, []string) (map[string][]byte, error) {
	return k.found, k.err
}

func TestAReadCountsOnlyWithAllItsFields(t *testing.T) {
	both := map[string][]byte{"a": nil, "b": nil}
	broken := errors.New("broken")
	for _, c := range []struct {
		db      known
		mayMiss bool
		want    error
		missed  int64
	}{
		{known{found: both}, false, nil, 0},
		{known{found: map[string][]byte{"a": nil}}, false, errMissing, 0},
		{known{found: map[string][]byte{}}, false, errMissing, 0},
		{known{err: redis.Nil}, false, errMissing, 0},
		{known{err: redis.Nil}, true, nil, 1},
		{known{err: broken}, false, broken, 0},
		{known{err: broken}, true, broken, 0},
	} {
		judge := newJudged(c.db, c.mayMiss)
		_, err := judge.Read(context.Background(), "table", "key", []string{"a", "b"})
		failed := int64(0)
		if c.want != nil {
			failed = 1
		}
		if !errors.Is(err, c.want) || judge.done.Load() != 1 || judge.failed.Load() != failed || !errors.Is(judge.first(), c.want) ||
			judge.missed.Load() != c.missed || judge.reads.TotalCount() != 1 {
			t.Errorf("%v: %v, %d of %d failed", c.db, err, judge.failed.Load(), judge.done.Load())
		}
	}
}
