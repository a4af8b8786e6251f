#!/usr/bin/env python3
"""Reads a trace of `rackweave timeline` with Perfetto's own message definitions, and compares it with the records of its run.

    tests/timeline/check.py TRACE RUN/seed-N

Every kept span of a shown request is a slice of its request and one of its place, to the picosecond; slices of a track nest; arrows follow a request from place to
place in time; counters start from and come back to zero. Prints a line of numbers. Exit status: 0 fine, 1 defects.
"""

import collections
import pathlib
import sys

import pyarrow.parquet as parquet
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

BEGIN, END, COUNTER = (protos.TrackEvent.Type.Value(f"TYPE_{name}") for name in ("SLICE_BEGIN", "SLICE_END", "COUNTER"))
REQUESTS = "requests"


def rows(folder):
    return [row for part in sorted(folder.glob("*.parquet")) for row in parquet.ParquetFile(part).read().to_pylist()]


def unknown(message):
    """The fields of a message, and of those in it, that the definitions do not have."""
    found = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type:
            found += sum(map(unknown, value if field.is_repeated else [value]))
    return found


def read(trace):
    """Tracks by their number, and events by track in their order."""
    tracks, events = {}, collections.defaultdict(list)
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id, packet
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            assert descriptor.name and descriptor.uuid not in tracks, descriptor
            assert not descriptor.parent_uuid or descriptor.parent_uuid in tracks, descriptor
            tracks[descriptor.uuid] = descriptor
        else:
            event = packet.track_event
            assert event.track_uuid in tracks, event
            events[event.track_uuid].append((packet.timestamp, event))
    return tracks, events


def slices_of(events):
    """Slices of a track with their ends; they must nest, and time must not go back."""
    found, opened, last = [], [], 0
    for at, event in events:
        assert at >= last, f"time goes back to {at} ns"
        last = at
        if event.type == BEGIN:
            opened.append((at, event))
        else:
            assert event.type == END and opened, event
            found.append((*opened.pop(), at))
    assert not opened, "a slice does not end"
    return found


def values(event):
    """The debug annotations of a slice."""
    return {one.name: getattr(one, one.WhichOneof("value")) for one in event.debug_annotations}


def check_counter(events):
    counts = [event.counter_value for _, event in events]
    assert counts[-1] == 0 and min(counts) >= 0 and [at for at, _ in events] == sorted(at for at, _ in events), counts


def main():
    path, run = map(pathlib.Path, sys.argv[1:])
    trace = protos.Trace()
    trace.ParseFromString(path.read_bytes())
    assert unknown(trace) == 0, "a field that the format does not have"
    tracks, events = read(trace)
    whole, of_requests, of_places, arrows, counters = {}, {}, {}, collections.defaultdict(list), 0
    for uuid, found in events.items():
        if tracks[uuid].HasField("counter"):
            check_counter(found)
            counters += 1
            continue
        is_request = tracks[tracks[uuid].parent_uuid].name == REQUESTS
        for begin, event, end in slices_of(found):
            about = values(event)
            assert (begin, end) == (about["begin_ps"] // 1000, (about["begin_ps"] + about["duration_ps"]) // 1000), event
            if "outcome" in about:
                whole[about["request"]] = about
                continue
            place = of_requests if is_request else of_places
            key = (about["request"], about["number"])
            assert key not in place, f"span {key} is there twice"
            place[key] = (event.categories[0], about)
            if not is_request and (event.flow_ids or event.terminating_flow_ids):
                arrows[about["request"]].append((about["begin_ps"], about["number"], bool(event.terminating_flow_ids), [*event.flow_ids, *event.terminating_flow_ids]))
    kept = {(span["request"], span["number"]): span for span in rows(run / "spans") if span["request"] in whole and span["end_ps"] > span["begin_ps"]}
    assert of_requests.keys() == kept.keys(), "slices of requests are the kept spans"
    assert of_places.keys() == {key for key, span in kept.items() if span["place"] != "nowhere"}, "and those with a place are there too"
    for found in (of_requests, of_places):
        for key, (category, about) in found.items():
            span = kept[key]
            expected = (span["span"], span["begin_ps"], span["end_ps"] - span["begin_ps"], span["counted_ps"])
            assert (category, about["begin_ps"], about["duration_ps"], about["counted_ps"]) == expected, (key, about, span)
    stops = collections.Counter(request for request, _ in of_places)
    for request, count in stops.items():
        steps = sorted(arrows[request])
        assert len(steps) == (count if count > 1 else 0), f"{len(steps)} of {count} stops of request {request} have an arrow"
        assert [last for _, _, last, _ in steps] == [False] * (len(steps) - 1) + [True] * bool(steps)
        assert all(flows == [request + 1] for *_, flows in steps), steps
    for row in rows(run / "records"):
        if about := whole.get(row["request"]):
            assert (about["begin_ps"], about["duration_ps"]) == (row["intended_ps"], row["end_ps"] - row["intended_ps"]), row
    print(f"{len(whole)} requests, {len(kept)} spans, {len(of_places)} at places, {counters} counters, {sum(map(len, arrows.values()))} arrows")


if __name__ == "__main__":
    main()
