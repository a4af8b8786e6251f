package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/magiconair/properties"
	"github.com/pingcap/go-ycsb/pkg/prop"
	"github.com/pingcap/go-ycsb/pkg/ycsb"
)

// memcached stores a record as the Redis binding does with datatype `string`: its fields as JSON, in one value.
type memcached struct {
	*memcache.Client
	fields int
}

func init() { ycsb.RegisterDBCreator("memcached", memcachedCreator{}) }

type memcachedCreator struct{}

func (memcachedCreator) Create(p *properties.Properties) (ycsb.DB, error) {
	client := memcache.New(p.MustGetString("memcached.addr"))
	client.MaxIdleConns = p.GetInt(prop.ThreadCount, 1)
	// Its own half a second is too short for a server that waits for its disk.
	client.Timeout = 10 * time.Second
	return memcached{client, p.GetInt(prop.FieldCount, int(prop.FieldCountDefault))}, client.Ping()
}

func key(table, key string) string { return table + "/" + key }

func (m memcached) InitThread(ctx context.Context, _, _ int) context.Context { return ctx }

func (m memcached) CleanupThread(context.Context) {}

func (m memcached) Read(_ context.Context, table, name string, _ []string) (map[string][]byte, error) {
	item, err := m.Get(key(table, name))
	if errors.Is(err, memcache.ErrCacheMiss) {
		return nil, errMissing
	}
	if err != nil {
		return nil, err
	}
	found := map[string][]byte{}
	return found, json.Unmarshal(item.Value, &found)
}

func (m memcached) Scan(context.Context, string, string, int, []string) ([]map[string][]byte, error) {
	return nil, errors.New("memcached has no scans")
}

// Update needs all fields: what a record had is not asked for.
func (m memcached) Update(ctx context.Context, table, name string, values map[string][]byte) error {
	if len(values) != m.fields {
		return fmt.Errorf("an update of %d fields of %d", len(values), m.fields)
	}
	return m.Insert(ctx, table, name, values)
}

func (m memcached) Insert(_ context.Context, table, name string, values map[string][]byte) error {
	value, err := json.Marshal(values)
	if err != nil {
		return err
	}
	return m.Set(&memcache.Item{Key: key(table, name), Value: value})
}

func (m memcached) Delete(_ context.Context, table, name string) error {
	return m.Client.Delete(key(table, name))
}
