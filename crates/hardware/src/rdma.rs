//! An RDMA adapter: verbs that read, write and swap words of a host's memory without its cores.
//!
//! An adapter has three stages: an engine with a message rate, a unit that swaps words (far slower,
//! since it locks each word over PCIe), and a port. Messages are booked in the order of the calls;
//! engine, unit and port each delay only later messages. An answer takes its place at the port when
//! its request is served, so a slow answer does not delay answers that are ready earlier.

use crate::link::Link;
use base::{Bytes, Rate, Serialization, Span, Time};

/// An adapter and what is between it and another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdmaConfig {
    /// Line rate of the port.
    pub rate: Rate,
    /// Messages that the engine begins a second.
    pub messages_per_second: u64,
    /// Swaps of a word a second.
    pub swaps_per_second: u64,
    /// From a thread's call until the adapter has the work request.
    pub post: Span,
    /// One pass of a message through an adapter.
    pub processing: Span,
    /// One way between two adapters: cables and switch.
    pub wire: Span,
    /// From the adapter's request for its host's memory to the data.
    pub memory_read: Span,
    /// From the adapter into its host's memory, until a thread that polls there sees it.
    pub memory_write: Span,
    /// What a message has on the wire beside its data.
    pub header: Bytes,
}

/// What a message does at the host that it reaches, and what comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Brings back what lies in memory.
    Read,
    /// Puts its data into memory; brings back an acknowledgement.
    Write,
    /// Puts a word where another one is, and brings back the one that it found.
    Swap,
}

impl Verb {
    fn reads_memory(self) -> bool {
        self != Verb::Write
    }
}

impl RdmaConfig {
    /// The time of a lone verb, from the call to its completion.
    pub fn unloaded(&self, verb: Verb, request: Bytes, answer: Bytes) -> Span {
        let memory = if verb.reads_memory() { self.memory_read } else { Span::ZERO };
        let wires = self.on_wire(request) + self.on_wire(answer);
        self.post + wires + memory + self.processing * 3 + self.memory_write
    }

    /// The time of a lone message, from the call until a thread on the other side sees it.
    pub fn unloaded_message(&self, data: Bytes) -> Span {
        self.post + self.on_wire(data) + self.processing * 2 + self.memory_write
    }

    fn on_wire(&self, data: Bytes) -> Span {
        self.rate.span_of(self.header + data) + self.wire
    }
}

/// One host's adapter.
#[derive(Clone, Debug)]
pub struct RdmaAdapter {
    config: RdmaConfig,
    engine_free: Time,
    engine_step: Span,
    swaps_free: Time,
    swap_step: Span,
    port: Link,
    serialization: Serialization,
    messages: u64,
    swaps: u64,
}

impl RdmaAdapter {
    /// An idle adapter. No rate of `config` may be zero.
    pub fn new(config: RdmaConfig) -> RdmaAdapter {
        RdmaAdapter {
            config,
            engine_free: Time::ZERO,
            engine_step: step(config.messages_per_second),
            swaps_free: Time::ZERO,
            swap_step: step(config.swaps_per_second),
            port: Link::new(config.rate),
            serialization: Serialization::new(config.rate),
            messages: 0,
            swaps: 0,
        }
    }

    /// A thread posts a message with `data`; when all of it is at the other adapter.
    pub fn post(&mut self, now: Time, data: Bytes) -> Time {
        let begun = self.engine(now + self.config.post);
        self.depart(now, begun + self.config.processing, data)
    }

    /// A whole request has arrived at `now`; returns the time at which its whole answer is at the
    /// requesting adapter.
    pub fn serve(&mut self, now: Time, verb: Verb, answer: Bytes) -> Time {
        let mut ready = self.engine(now) + self.config.processing;
        if verb == Verb::Swap {
            self.swaps += 1;
            self.swaps_free = self.swaps_free.max(ready) + self.swap_step;
            ready = self.swaps_free;
        }
        let memory = if verb.reads_memory() { self.config.memory_read } else { Span::ZERO };
        self.depart(now, ready + memory, answer)
    }

    /// All of a message or of an answer is here at `now`; when a thread of this host sees it.
    pub fn take(&mut self, now: Time) -> Time {
        self.engine(now) + self.config.processing + self.config.memory_write
    }

    /// The adapter itself sends `data`, which it has at `now`; when all of them are at the other
    /// adapter.
    pub fn forward(&mut self, now: Time, data: Bytes) -> Time {
        self.depart(now, now, data)
    }

    /// What has been booked for the port.
    pub fn port_busy(&self) -> Span {
        self.port.busy()
    }

    /// Messages that the engine began.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Words that were swapped.
    pub fn swaps(&self) -> u64 {
        self.swaps
    }

    fn engine(&mut self, now: Time) -> Time {
        self.messages += 1;
        let begun = self.engine_free.max(now);
        self.engine_free = begun + self.engine_step;
        begun
    }

    fn depart(&mut self, now: Time, ready: Time, data: Bytes) -> Time {
        let serialization = self.serialization.of(self.config.header + data);
        let (start, _) = self.port.occupy(now, serialization);
        start.max(ready) + serialization + self.config.wire
    }
}

fn step(per_second: u64) -> Span {
    Span::ps(1_000_000_000_000 / per_second.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: RdmaConfig = RdmaConfig {
        rate: Rate::gbps(200),
        messages_per_second: 200_000_000,
        swaps_per_second: 20_000_000,
        post: Span::ns(200),
        processing: Span::ns(150),
        wire: Span::ns(350),
        memory_read: Span::ns(450),
        memory_write: Span::ns(250),
        header: Bytes::new(66),
    };

    fn round_trip(verb: Verb, request: Bytes, answer: Bytes) -> Time {
        let (mut client, mut server) = (RdmaAdapter::new(CONFIG), RdmaAdapter::new(CONFIG));
        let arrived = client.post(Time::ZERO, request);
        let answered = server.serve(arrived, verb, answer);
        client.take(answered)
    }

    /// A swap holds its word for a step of the unit on top of what a read takes.
    #[test]
    fn a_lone_verb_takes_the_sum_of_its_parts() {
        let (small, block) = (Bytes::new(16), Bytes::new(1_024));
        let read = CONFIG.unloaded(Verb::Read, small, block);
        assert_eq!(round_trip(Verb::Read, small, block), Time::ZERO + read);
        assert_eq!(
            read,
            Span::ps(200_000 + 3 * 150_000 + 450_000 + 250_000 + 2 * 350_000 + 8 * 5 * (66 + 16 + 66 + 1_024))
        );
        let write = CONFIG.unloaded(Verb::Write, block, Bytes::ZERO);
        assert_eq!(round_trip(Verb::Write, block, Bytes::ZERO), Time::ZERO + write);
        let swap = CONFIG.unloaded(Verb::Swap, small, small);
        assert_eq!(round_trip(Verb::Swap, small, small), Time::ZERO + swap + Span::ns(50));
    }

    #[test]
    fn a_message_takes_the_sum_of_its_parts() {
        let (mut client, mut server) = (RdmaAdapter::new(CONFIG), RdmaAdapter::new(CONFIG));
        let arrived = client.post(Time::us(3), Bytes::new(100));
        assert_eq!(server.take(arrived), Time::us(3) + CONFIG.unloaded_message(Bytes::new(100)));
    }

    /// What `count` verbs that arrive at once take, less what the first takes.
    fn spread(verb: Verb, count: u64, answer: Bytes) -> Span {
        let mut server = RdmaAdapter::new(CONFIG);
        let ends: Vec<Time> = (0..count).map(|_| server.serve(Time::us(1), verb, answer)).collect();
        ends[ends.len() - 1] - ends[0]
    }

    #[test]
    fn reads_are_begun_at_the_rate_of_the_engine_and_swaps_at_a_tenth_of_it() {
        assert_eq!(spread(Verb::Write, 1_001, Bytes::ZERO), Span::us(5));
        assert_eq!(spread(Verb::Swap, 1_001, Bytes::new(8)), Span::us(50));
    }

    #[test]
    fn large_answers_leave_at_the_rate_of_the_port() {
        let serialization = CONFIG.rate.span_of(Bytes::new(66 + 4_096));
        assert_eq!(
            spread(Verb::Read, 101, Bytes::new(4_096)),
            serialization * 100 - (CONFIG.processing + CONFIG.memory_read)
        );
    }

    #[test]
    fn an_answer_that_is_long_in_coming_holds_up_nothing_that_is_ready() {
        let mut server = RdmaAdapter::new(CONFIG);
        server.serve(Time::ZERO, Verb::Read, Bytes::new(64));
        let serialization = CONFIG.rate.span_of(Bytes::new(66 + 64));
        let sent = server.forward(Time::ns(100), Bytes::new(64));
        assert_eq!(sent, Time::ns(100) + serialization + CONFIG.wire);
    }

    #[test]
    fn what_was_done_is_counted() {
        let mut server = RdmaAdapter::new(CONFIG);
        server.serve(Time::ZERO, Verb::Swap, Bytes::new(8));
        server.take(Time::ZERO);
        server.forward(Time::ZERO, Bytes::new(934));
        assert_eq!((server.messages(), server.swaps()), (2, 1));
        assert_eq!(server.port_busy(), Span::ps(40 * (66 + 8 + 66 + 934)));
    }
}
