// YCSB against a server that speaks Redis: its core workloads A, B, C, D and F by the Redis binding
// of go-ycsb, which is not changed, with values that are checked. Workload E scans, and the binding
// does not. Memcached has a binding here, to compare with.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/magiconair/properties"
	_ "github.com/pingcap/go-ycsb/db/redis"
	"github.com/pingcap/go-ycsb/pkg/client"
	"github.com/pingcap/go-ycsb/pkg/measurement"
	"github.com/pingcap/go-ycsb/pkg/prop"
	_ "github.com/pingcap/go-ycsb/pkg/workload"
	"github.com/pingcap/go-ycsb/pkg/ycsb"
)

// A workload of the YCSB paper (SoCC '10, Table 2): shares of operations, and which records they ask for.
type workload struct {
	name, distribution                        string
	reads, updates, inserts, readModifyWrites float64
}

var workloads = []workload{
	{"A", "zipfian", 0.5, 0.5, 0, 0},
	{"B", "zipfian", 0.95, 0.05, 0, 0},
	{"C", "zipfian", 1, 0, 0, 0},
	{"D", "latest", 0.95, 0, 0.05, 0},
	{"F", "zipfian", 0.5, 0, 0, 0.5},
}

type options struct {
	database, address, datatype  string
	records, operations, threads int
	fields, fieldBytes           int
	mayMiss, load                bool
}

func main() {
	var o options
	names := flag.String("workloads", "ABCDF", "letters of workloads, in their order")
	flag.StringVar(&o.address, "address", "127.0.0.1:6379", "host and port of the server")
	flag.StringVar(&o.database, "database", "redis", "what the server speaks: redis or memcached")
	flag.StringVar(&o.datatype, "datatype", "string", "what the binding of Redis makes of a record: string or hash")
	flag.IntVar(&o.records, "records", 1000, "records that are loaded")
	flag.IntVar(&o.fields, "fields", 10, "fields of a record")
	flag.IntVar(&o.fieldBytes, "field-bytes", 100, "bytes of a field; a string has four thirds of them")
	flag.BoolVar(&o.mayMiss, "misses", false, "count reads that find nothing, of a cache that forgets")
	flag.IntVar(&o.operations, "operations", 1000, "operations of each workload")
	flag.IntVar(&o.threads, "threads", 8, "connections at once")
	flag.BoolVar(&o.load, "load", true, "store all records first")
	flag.Parse()
	if err := run(o, *names); err != nil {
		fmt.Fprintln(os.Stderr, "ycsb:", err)
		os.Exit(1)
	}
}

func run(o options, names string) error {
	// A misspelt letter runs nothing, and says so before anything is stored.
	for _, letter := range names {
		if !strings.ContainsRune("ABCDF", letter) {
			return fmt.Errorf("no workload %q: there are A, B, C, D and F", letter)
		}
	}
	if o.load {
		if err := o.play(workload{name: "load", distribution: "uniform", inserts: 1}, false); err != nil {
			return err
		}
	}
	for _, w := range workloads {
		if !strings.Contains(names, w.name) {
			continue
		}
		if err := o.play(w, true); err != nil {
			return err
		}
	}
	return nil
}

// Plays one workload and prints its rate. An operation that fails, or a read that finds nothing, is an error.
func (o options) play(w workload, transactions bool) error {
	p := o.properties(w, transactions)
	measurement.InitMeasure(p)
	core, err := ycsb.GetWorkloadCreator("core").Create(p)
	if err != nil {
		return err
	}
	creator := ycsb.GetDBCreator(o.database)
	if creator == nil {
		return fmt.Errorf("no database %q: there are redis and memcached", o.database)
	}
	db, err := creator.Create(p)
	if err != nil {
		return err
	}
	defer db.Close()
	judge := newJudged(db, o.mayMiss)
	start := time.Now()
	client.NewClient(p, core, client.DbWrapper{DB: judge}).Run(context.Background())
	took := time.Since(start).Seconds()
	done := judge.done.Load()
	fmt.Printf("%s: %d operations in %.2f s, %.0f a second, %d failed, %d missed, P99 of reads %d us\n",
		w.name, done, took, float64(done)/took, judge.failed.Load(), judge.missed.Load(), judge.reads.ValueAtQuantile(99))
	if failed := judge.failed.Load(); failed > 0 {
		return fmt.Errorf("workload %s: %d of %d operations failed, the first one: %w", w.name, failed, done, judge.first())
	}
	return nil
}

func (o options) properties(w workload, transactions bool) *properties.Properties {
	share := func(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }
	records := o.records
	if !transactions {
		// The keys of go-ycsb's zipfian distribution have one too many: it asks for this one as well.
		records++
	}
	p := properties.NewProperties()
	for name, value := range map[string]string{
		prop.RecordCount:               strconv.Itoa(records),
		prop.OperationCount:            strconv.Itoa(o.operations),
		prop.ThreadCount:               strconv.Itoa(o.threads),
		prop.DoTransactions:            strconv.FormatBool(transactions),
		prop.DataIntegrity:             "true",
		prop.Silence:                   "true",
		prop.RequestDistribution:       w.distribution,
		prop.ReadProportion:            share(w.reads),
		prop.UpdateProportion:          share(w.updates),
		prop.InsertProportion:          share(w.inserts),
		prop.ScanProportion:            "0",
		prop.ReadModifyWriteProportion: share(w.readModifyWrites),
		prop.FieldCount:                strconv.Itoa(o.fields),
		prop.FieldLength:               strconv.Itoa(o.fieldBytes),
		"memcached.addr":               o.address,
		"redis.addr":                   o.address,
		"redis.datatype":               o.datatype,
	} {
		p.MustSet(name, value)
	}
	return p
}

var errMissing = errors.New("a record that was stored is not there")
