//! Streams and their pieces: request, forward, fail, end.

use super::{End, Engine, EngineOut, Use};
use crate::{CommandId, DeviceId, DeviceOperation, Extent, Outcome, Payload};
use base::Time;
use std::collections::VecDeque;

/// A command that moves data from one end to others.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(super) id: CommandId,
    source: End,
    /// First byte at the source.
    address: u64,
    bytes: u64,
    /// Bytes requested so far.
    asked: u64,
    /// Pieces that were requested and have not ended.
    open: u32,
    has_failed: bool,
    targets: Vec<Target>,
}

#[derive(Clone, Copy, Debug)]
struct Target {
    end: End,
    address: u64,
    /// Whose FIFO.
    pair: u32,
    has_failed: bool,
}

/// A part of a stream, moved by one command of each device.
#[derive(Clone, Debug)]
pub(crate) struct Piece<P> {
    pub(super) stream: u32,
    /// Its place in the stream.
    pub(super) offset: u64,
    bytes: u32,
    /// How much of it has come.
    arrived: u32,
    /// What is still here, and the place in the piece of the first byte of each.
    data: VecDeque<(u32, P)>,
    /// Whether nothing more will come: all is here, or its source has failed.
    is_over: bool,
    /// By target of the stream.
    takers: Vec<Taker>,
    /// Time at which a client has to have sent it.
    deadline: Option<Time>,
    grants: u32,
}

/// How far a target has got with a piece.
#[derive(Clone, Copy, Debug)]
struct Taker {
    state: Taking,
    /// How much it has taken.
    taken: u32,
    /// Bytes requested and not received.
    wanted: u32,
}

/// What a target does with a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taking {
    /// Nothing has come for it yet.
    Idle,
    /// It waits for a slot, or for the port.
    Queued,
    /// Its device has the write.
    Submitted(u16),
    /// Its device has the write and will not get all data.
    Aborted,
    /// It has all, or will take no more.
    Over,
}

impl Taking {
    /// Returns whether its part of the FIFO is set aside for it.
    fn has_room(self) -> bool {
        matches!(self, Taking::Idle | Taking::Queued | Taking::Submitted(_))
    }
}

impl<P: Payload> Engine<P> {
    pub(super) fn begin_stream(&mut self, id: CommandId, source: (End, u64), targets: &[(End, u64)], bytes: u64) {
        let (source, address) = source;
        let target = |(end, address): &(End, u64)| Target {
            end: *end,
            address: *address,
            pair: self.pair(source, *end),
            has_failed: false,
        };
        let targets: Vec<_> = targets.iter().map(target).collect();
        let pair = targets[0].pair;
        let stream = Stream { id, source, address, bytes, asked: 0, open: 0, has_failed: false, targets };
        let stream = self.streams.insert(stream) as u32;
        match source {
            End::Device(device) => self.device(device).reads.push(pair, stream),
            End::Client(client) => {
                self.running.insert(id, stream);
                self.clients.entry(client).or_default().push(pair, stream);
            }
        }
    }

    /// Reads the next pieces of those streams that have room for them, the pairs in turn.
    pub(super) fn submit_reads(&mut self, device: DeviceId, out: &mut Vec<EngineOut<P>>) {
        let mut blocked = 0;
        while self.device(device).slots.has_free() && blocked < self.device(device).reads.len() {
            let Some(stream) = self.device(device).reads.front().copied() else { return };
            if !self.has_room(stream) {
                self.device(device).reads.turn(false);
                blocked += 1;
                continue;
            }
            blocked = 0;
            let Stream { id, address, asked, .. } = self.streams[stream as usize];
            let address = address + asked;
            let piece = self.ask(stream);
            let bytes = self.pieces[piece as usize].bytes;
            self.submit(id, Extent { device, address }, DeviceOperation::Read, bytes, Use::Read(piece), out);
            let all = self.is_all_asked(stream);
            self.device(device).reads.turn(all);
        }
    }

    /// Grants clients the next pieces of their data.
    pub(super) fn grant(&mut self, now: Time, out: &mut Vec<EngineOut<P>>) {
        let clients: Vec<_> = self.clients.keys().copied().collect();
        for client in clients {
            let mut blocked = 0;
            while let Some(stream) = self.waiting_stream(client, blocked) {
                if !self.has_room(stream) {
                    self.turn_client(client, false);
                    blocked += 1;
                    continue;
                }
                blocked = 0;
                let piece = self.ask(stream);
                self.grant_piece(now, piece, out);
                let all = self.is_all_asked(stream);
                self.turn_client(client, all);
            }
            if self.clients.get(&client).is_some_and(|ring| ring.len() == 0) {
                self.clients.remove(&client);
            }
        }
    }

    fn waiting_stream(&self, client: crate::ClientId, blocked: usize) -> Option<u32> {
        let ring = self.clients.get(&client).filter(|ring| blocked < ring.len())?;
        ring.front().copied()
    }

    fn turn_client(&mut self, client: crate::ClientId, done: bool) {
        if let Some(ring) = self.clients.get_mut(&client) {
            ring.turn(done);
        }
    }

    fn grant_piece(&mut self, now: Time, number: u32, out: &mut Vec<EngineOut<P>>) {
        let at = now + self.config.grant_timeout;
        let piece = &mut self.pieces[number as usize];
        piece.grants += 1;
        piece.deadline = Some(at);
        let (offset, bytes) = (piece.offset + u64::from(piece.arrived), piece.bytes - piece.arrived);
        let id = self.streams[piece.stream as usize].id;
        self.deadlines.insert((at, number));
        out.push(EngineOut::Grant { id, offset, bytes });
    }

    /// What was granted has not come: it is granted again, until its client counts as gone.
    pub(super) fn grant_again(&mut self, now: Time, number: u32, out: &mut Vec<EngineOut<P>>) {
        if self.pieces[number as usize].grants >= self.config.grants_max {
            self.pieces[number as usize].deadline = None;
            return self.source_over(number, false, out);
        }
        self.counters.granted_again += 1;
        self.grant_piece(now, number, out);
    }

    /// Returns whether the FIFOs of all targets that go on have room for the next piece.
    fn has_room(&self, stream: u32) -> bool {
        let stream = &self.streams[stream as usize];
        let bytes = self.next_bytes(stream);
        let mut live = stream.targets.iter().filter(|target| !target.has_failed);
        live.all(|target| self.fifos[target.pair as usize].has_room(bytes))
    }

    fn next_bytes(&self, stream: &Stream) -> u64 {
        (stream.bytes - stream.asked).min(u64::from(self.config.piece))
    }

    fn is_all_asked(&self, stream: u32) -> bool {
        let stream = &self.streams[stream as usize];
        stream.asked == stream.bytes
    }

    /// Sets room aside for the next piece.
    fn ask(&mut self, number: u32) -> u32 {
        let bytes = self.next_bytes(&self.streams[number as usize]);
        let stream = &mut self.streams[number as usize];
        let offset = stream.asked;
        stream.asked += bytes;
        stream.open += 1;
        let taker = |target: &Target| match target.has_failed {
            true => Taker { state: Taking::Over, taken: 0, wanted: 0 },
            false => {
                self.fifos[target.pair as usize].reserve(bytes);
                Taker { state: Taking::Idle, taken: 0, wanted: 0 }
            }
        };
        let takers = stream.targets.iter().map(taker).collect();
        let piece = Piece {
            stream: number,
            offset,
            bytes: bytes as u32,
            arrived: 0,
            data: VecDeque::new(),
            is_over: false,
            takers,
            deadline: None,
            grants: 0,
        };
        self.pieces.insert(piece) as u32
    }

    /// Data of a client.
    pub(super) fn data(&mut self, id: CommandId, offset: u64, data: P, out: &mut Vec<EngineOut<P>>) {
        let Some(stream) = self.running.get(&id).copied() else { return self.counters.strays += 1 };
        // What comes out of order follows something that was lost: it will be granted again.
        let expected = |piece: &Piece<P>| {
            piece.stream == stream && !piece.is_over && piece.offset + u64::from(piece.arrived) == offset
        };
        let Some(number) = self.pieces.iter().find(|(_, piece)| expected(piece)).map(|(number, _)| number) else {
            return self.counters.strays += 1;
        };
        self.fill(number as u32, data, out);
        if self.pieces.get(number).is_some_and(|piece| piece.arrived == piece.bytes && !piece.is_over) {
            self.source_over(number as u32, true, out);
        }
    }

    /// More of a piece is here. What is beyond its end is the sender's fault, and is not taken.
    pub(super) fn fill(&mut self, number: u32, data: P, out: &mut Vec<EngineOut<P>>) {
        let piece = &mut self.pieces[number as usize];
        let size = data.size();
        if piece.is_over || size == 0 || size > piece.bytes - piece.arrived {
            return self.counters.strays += 1;
        }
        let targets = &self.streams[piece.stream as usize].targets;
        let live = targets.iter().zip(&piece.takers).filter(|(_, taker)| taker.state.has_room());
        live.for_each(|(target, _)| self.fifos[target.pair as usize].fill(u64::from(size)));
        piece.data.push_back((piece.arrived, data));
        piece.arrived += size;
        self.hold(u64::from(size));
        for target in 0..self.pieces[number as usize].takers.len() {
            self.pass_on(number, target, out);
        }
        self.release(number);
    }

    pub(super) fn hold(&mut self, bytes: u64) {
        self.counters.held += bytes;
        self.counters.held_highest = self.counters.held_highest.max(self.counters.held);
    }

    /// There is something for a target: the first time it gets in line, later it gets what it waits
    /// for.
    fn pass_on(&mut self, number: u32, target: usize, out: &mut Vec<EngineOut<P>>) {
        let piece = &mut self.pieces[number as usize];
        match piece.takers[target].state {
            Taking::Idle => {
                piece.takers[target].state = Taking::Queued;
                let Target { end, pair, .. } = self.streams[piece.stream as usize].targets[target];
                match end {
                    End::Device(device) => self.device(device).writes.push(pair, (number, target)),
                    End::Client(_) => self.outgoing.push(pair, (number, target)),
                }
            }
            Taking::Submitted(slot) => self.supply(number, target, slot, out),
            Taking::Queued | Taking::Aborted | Taking::Over => {}
        }
    }

    /// Writes pieces of which something is here, the pairs in turn.
    pub(super) fn submit_writes(&mut self, device: DeviceId, out: &mut Vec<EngineOut<P>>) {
        while self.device(device).slots.has_free() {
            let Some((number, target)) = self.device(device).writes.front().copied() else { return };
            self.device(device).writes.turn(true);
            let piece = &self.pieces[number as usize];
            let (bytes, offset) = (piece.bytes, piece.offset);
            let Stream { id, targets, .. } = &self.streams[piece.stream as usize];
            let (id, address) = (*id, targets[target].address + offset);
            let place = Extent { device, address };
            if let Some(slot) = self.submit(id, place, DeviceOperation::Write, bytes, Use::Write(number, target), out) {
                self.pieces[number as usize].takers[target].state = Taking::Submitted(slot);
            }
        }
    }

    /// A device requests more of a piece.
    pub(super) fn want(&mut self, number: u32, target: usize, bytes: u32, out: &mut Vec<EngineOut<P>>) {
        let piece = &mut self.pieces[number as usize];
        let taker = &mut piece.takers[target];
        let Taking::Submitted(slot) = taker.state else { return };
        if bytes > piece.bytes - taker.taken - taker.wanted {
            return self.counters.strays += 1;
        }
        taker.wanted += bytes;
        self.supply(number, target, slot, out);
        self.release(number);
    }

    /// Gives a device what it waits for, as far as it is here.
    fn supply(&mut self, number: u32, target: usize, slot: u16, out: &mut Vec<EngineOut<P>>) {
        let stream = self.pieces[number as usize].stream;
        let Target { end: End::Device(device), .. } = self.streams[stream as usize].targets[target] else { return };
        while self.pieces[number as usize].takers[target].wanted > 0 {
            let wanted = self.pieces[number as usize].takers[target].wanted;
            let Some(data) = self.take(number, target, wanted) else { return };
            self.pieces[number as usize].takers[target].wanted -= data.size();
            out.push(EngineOut::Supply { device, slot, data });
        }
    }

    /// Takes up to `most` bytes of a piece for a target, if there are any.
    pub(super) fn take(&mut self, number: u32, target: usize, most: u32) -> Option<P> {
        let piece = &mut self.pieces[number as usize];
        let taken = piece.takers[target].taken;
        let (start, data) = piece.data.iter().find(|(start, data)| taken < start + data.size())?;
        let from = taken - start;
        let bytes = most.min(data.size() - from);
        let part = data.part(from, bytes);
        piece.takers[target].taken += bytes;
        let pair = self.streams[piece.stream as usize].targets[target].pair;
        self.fifos[pair as usize].drain(u64::from(bytes));
        Some(part)
    }

    /// Releases data that all targets have received.
    pub(super) fn release(&mut self, number: u32) {
        let piece = &mut self.pieces[number as usize];
        let live = piece.takers.iter().filter(|taker| taker.state.has_room());
        let taken = live.map(|taker| taker.taken).min().unwrap_or(piece.arrived);
        while let Some((start, data)) = piece.data.front()
            && start + data.size() <= taken
        {
            self.counters.held -= u64::from(data.size());
            piece.data.pop_front();
        }
    }

    /// Returns the stream, the offset and the remaining length of a piece for a client.
    pub(super) fn outgoing_place(&self, number: u32, target: usize) -> (CommandId, u64, u32) {
        let piece = &self.pieces[number as usize];
        let taken = piece.takers[target].taken;
        (self.streams[piece.stream as usize].id, piece.offset + u64::from(taken), piece.bytes - taken)
    }

    /// A device has completed the read of a piece.
    pub(super) fn source_completed(&mut self, number: u32, is_success: bool, out: &mut Vec<EngineOut<P>>) {
        let piece = &self.pieces[number as usize];
        let is_whole = is_success && piece.arrived == piece.bytes;
        self.source_over(number, is_whole, out);
    }

    /// Nothing more will come of a piece. If it is not whole, its stream has failed.
    fn source_over(&mut self, number: u32, is_whole: bool, out: &mut Vec<EngineOut<P>>) {
        let piece = &mut self.pieces[number as usize];
        piece.is_over = true;
        if let Some(at) = piece.deadline.take() {
            self.deadlines.remove(&(at, number));
        }
        if !is_whole {
            let stream = self.pieces[number as usize].stream;
            self.streams[stream as usize].has_failed = true;
            self.stop(stream);
            for target in 0..self.pieces[number as usize].takers.len() {
                self.abort(number, target, out);
            }
        }
        self.end_piece(number, out);
    }

    /// Requests no more of a stream.
    fn stop(&mut self, number: u32) {
        let stream = &mut self.streams[number as usize];
        stream.bytes = stream.asked;
        match stream.source {
            End::Device(device) => self.device(device).reads.retain(|waiting| *waiting != number),
            End::Client(client) => {
                if let Some(ring) = self.clients.get_mut(&client) {
                    ring.retain(|waiting| *waiting != number);
                }
            }
        }
    }

    /// A target will not get the rest of a piece.
    fn abort(&mut self, number: u32, target: usize, out: &mut Vec<EngineOut<P>>) {
        let stream = self.pieces[number as usize].stream;
        let end = self.streams[stream as usize].targets[target].end;
        let state = self.pieces[number as usize].takers[target].state;
        match (state, end) {
            (Taking::Submitted(slot), End::Device(device)) => {
                // A device that is gone fetches nothing any more.
                if !self.device(device).is_gone {
                    out.push(EngineOut::Abort { device, slot });
                }
                self.leave(number, target, Taking::Aborted);
            }
            (Taking::Queued, End::Device(device)) => {
                self.device(device).writes.retain(|waiting| *waiting != (number, target));
                self.leave(number, target, Taking::Over);
            }
            (Taking::Queued, End::Client(_)) => {
                self.outgoing.retain(|waiting| *waiting != (number, target));
                self.leave(number, target, Taking::Over);
            }
            (Taking::Idle, _) => self.leave(number, target, Taking::Over),
            (Taking::Submitted(_) | Taking::Aborted | Taking::Over, _) => {}
        }
    }

    /// A target takes no more of a piece: its part of the FIFO is free.
    fn leave(&mut self, number: u32, target: usize, state: Taking) {
        let piece = &mut self.pieces[number as usize];
        let taker = &mut piece.takers[target];
        if taker.state.has_room() {
            let fifo = &mut self.fifos[self.streams[piece.stream as usize].targets[target].pair as usize];
            fifo.cancel(u64::from(piece.bytes - piece.arrived));
            fifo.drain(u64::from(piece.arrived - taker.taken));
        }
        taker.state = state;
        taker.wanted = 0;
        self.release(number);
    }

    /// A device has completed the write of a piece.
    pub(super) fn target_completed(
        &mut self,
        number: u32,
        target: usize,
        is_success: bool,
        out: &mut Vec<EngineOut<P>>,
    ) {
        let piece = &self.pieces[number as usize];
        let is_whole = is_success && piece.takers[target].taken == piece.bytes;
        self.leave(number, target, Taking::Over);
        if !is_whole {
            self.fail_target(self.pieces[number as usize].stream, target);
        }
        self.end_piece(number, out);
    }

    /// A client has all of a piece.
    pub(super) fn sent(&mut self, number: u32, target: usize, out: &mut Vec<EngineOut<P>>) {
        self.leave(number, target, Taking::Over);
        self.end_piece(number, out);
    }

    /// A target gets no further pieces. If it was the last, the engine requests nothing more.
    fn fail_target(&mut self, number: u32, target: usize) {
        let stream = &mut self.streams[number as usize];
        stream.targets[target].has_failed = true;
        if stream.targets.iter().all(|target| target.has_failed) {
            self.stop(number);
        }
    }

    /// Ends a piece with which source and targets are done, and its stream with its last piece.
    fn end_piece(&mut self, number: u32, out: &mut Vec<EngineOut<P>>) {
        let piece = &self.pieces[number as usize];
        if !piece.is_over || piece.takers.iter().any(|taker| taker.state != Taking::Over) {
            return;
        }
        let stream = self.pieces.remove(number as usize).stream;
        self.streams[stream as usize].open -= 1;
        self.end_stream(stream, out);
    }

    fn end_stream(&mut self, number: u32, out: &mut Vec<EngineOut<P>>) {
        let stream = &self.streams[number as usize];
        if stream.open > 0 || stream.asked < stream.bytes {
            return;
        }
        let stream = self.streams.remove(number as usize);
        self.running.remove(&stream.id);
        let outcome = stream.outcome();
        self.answer(stream.id, outcome, out);
    }

    /// Everything that waits for a removed device fails.
    pub(super) fn drop_streams(&mut self, device: DeviceId, out: &mut Vec<EngineOut<P>>) {
        while let Some((number, target)) = self.device(device).writes.front().copied() {
            self.device(device).writes.turn(true);
            self.leave(number, target, Taking::Over);
            self.fail_target(self.pieces[number as usize].stream, target);
            self.end_piece(number, out);
        }
        let waiting: Vec<_> = self.streams.iter().map(|(number, _)| number as u32).collect();
        for number in waiting {
            self.drop_stream(number, device, out);
        }
    }

    /// Cancels everything that a stream has still to request from a removed device or to deliver to
    /// it.
    fn drop_stream(&mut self, number: u32, device: DeviceId, out: &mut Vec<EngineOut<P>>) {
        let Some(stream) = self.streams.get(number as usize) else { return };
        let is_target = |target: &Target| target.end == End::Device(device);
        let targets: Vec<_> = (0..stream.targets.len()).filter(|place| is_target(&stream.targets[*place])).collect();
        let was_complete = stream.asked == stream.bytes;
        if stream.source == End::Device(device) && !was_complete {
            self.streams[number as usize].has_failed = true;
            self.stop(number);
        }
        let pieces: Vec<_> =
            self.pieces.iter().filter(|(_, piece)| piece.stream == number).map(|(piece, _)| piece as u32).collect();
        for target in targets {
            self.fail_target(number, target);
            for piece in &pieces {
                // Those with a slot or in line have failed already; what has not come yet need not
                // come for this target.
                if self.pieces.get(*piece as usize).is_some_and(|piece| piece.takers[target].state == Taking::Idle) {
                    self.leave(*piece, target, Taking::Over);
                    self.end_piece(*piece, out);
                }
            }
        }
        if self.streams.contains(number as usize) {
            self.end_stream(number, out);
        }
    }
}

impl Stream {
    fn outcome(&self) -> Outcome {
        let failed = self.targets.iter().filter(|target| target.has_failed);
        let failed: Vec<_> = failed
            .filter_map(|target| match target.end {
                End::Device(device) => Some(device),
                End::Client(_) => None,
            })
            .collect();
        match () {
            () if self.has_failed => Outcome::SourceFailed,
            () if failed.is_empty() => Outcome::Done,
            () => Outcome::TargetsFailed(failed),
        }
    }
}
