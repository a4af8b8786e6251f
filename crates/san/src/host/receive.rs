//! Packets that a host receives.

use super::{Attempt, Host, HostOut, IoPlace, Outcome, Packet, PacketKind, Uplinks};
use crate::id::{DriveId, Port};
use base::{Operation, Time};

impl Host {
    /// Prefetches the session with a drive. Has no other effect.
    #[inline]
    pub fn prefetch_session(&self, drive: DriveId) {
        if let Some(session) = self.sessions.with(drive) {
            self.sessions.prefetch(session);
            self.lanes.prefetch(session, 0);
        }
    }

    /// Prefetches the session and the I/O of a packet that will arrive soon.
    #[inline]
    pub fn prefetch(&self, packet: &Packet) {
        let Some(session) = self.sessions.with(packet.drive) else { return };
        self.sessions.prefetch(session);
        let lane = self.lanes.get(session, Attempt::of_bits(packet.tag.attempt).lane);
        if let Some(io) = lane.and_then(|lane| lane.queue.get(packet.tag.command).ok()) {
            self.ios.prefetch(*io);
        }
    }

    /// Handles a packet that is next in order.
    pub(super) fn take(&mut self, now: Time, port: Port, packet: &Packet, out: &mut Vec<HostOut>) {
        let Some(place) = self.sessions.with(packet.drive) else { return self.counters.stale += 1 };
        self.take_credit(place, packet);
        if packet.bytes == 0 {
            return self.on_reset_answer(now, place, packet, out);
        }
        let Some(io) = self.find(place, packet) else { return self.counters.stale += 1 };
        match packet.kind {
            PacketKind::ReadyToTransfer => self.on_ready(now, io, packet, out),
            PacketKind::ReadData { last } => self.on_data(now, io, port, packet, last, out),
            PacketKind::Response => self.on_response(now, io, port, packet, out),
            _ => self.counters.stale += 1,
        }
        // Its credit may have grown.
        self.pump(now, place, out);
    }

    /// Stores the credit of a packet from the target; packets of hops carry none.
    fn take_credit(&mut self, place: u32, packet: &Packet) {
        if packet.credit > 0 {
            self.sessions[place].credit = packet.credit;
        }
    }

    /// Returns the I/O whose command the packet answers: of the present association, and of the
    /// present send. A final response to a write counts for any send. So do data of a read if no
    /// newer ones have arrived.
    fn find(&mut self, place: u32, packet: &Packet) -> Option<IoPlace> {
        let attempt = Attempt::of_bits(packet.tag.attempt);
        let lane = self.lanes.get_mut(place, attempt.lane)?;
        if lane.generation != attempt.generation {
            return None;
        }
        let io = *lane.queue.get_mut(packet.tag.command).ok()?;
        let state = self.ios.get_mut(io)?;
        let is_present = state.awaits(packet);
        let is_final = packet.kind == PacketKind::Response
            && matches!(packet.status, Outcome::Success | Outcome::Aborted | Outcome::DriveFailed);
        (is_present || is_final && state.io.operation != Operation::Read).then_some(io)
    }

    /// Sends the data of a write that the target requests.
    fn on_ready(&mut self, now: Time, place: IoPlace, packet: &Packet, out: &mut Vec<HostOut>) {
        let Some(io) = self.ios.get_mut(place) else { return };
        (io.heard, io.last_out) = (now, now);
        let Some((_, end)) = io.on_ready() else { return };
        let bytes = io.io.bytes;
        let trail = packet.copied().trail.turned_at_host();
        let port = Port(u16::from(Attempt::of_bits(packet.tag.attempt).lane));
        while let Some(pdu) = io.next_data() {
            let mut offset = pdu.offset;
            while offset < pdu.offset + pdu.length {
                let payload = self.format.segment(offset, end.min(pdu.offset + pdu.length), io.data_max());
                let kind = PacketKind::WriteData { last: offset + payload == bytes };
                let frame = self.format.frame_with(kind, payload, offset, &trail);
                let packet = packet.with_trail(trail.clone());
                let data = Packet { kind, payload, frame, credit: 0, status: Outcome::Success, ..packet };
                out.push(HostOut::Send { port, packet: data });
                offset += payload;
            }
        }
    }

    fn on_data(&mut self, now: Time, place: IoPlace, port: Port, packet: &Packet, last: bool, out: &mut Vec<HostOut>) {
        let Some(io) = self.ios.get_mut(place) else { return };
        io.heard = now;
        if io.on_data(packet.payload, last) == Some(true) {
            self.learn(now, place, port, packet);
            self.finish(now, place, Outcome::Success, packet.trail.drive_latency_ns(), out);
        } else if last && io.is_short() {
            self.on_gap(now, place);
        }
    }

    fn on_response(&mut self, now: Time, place: IoPlace, port: Port, packet: &Packet, out: &mut Vec<HostOut>) {
        match packet.status {
            Outcome::Success => {
                if self.ios.get_mut(place).is_some_and(|io| io.is_complete()) {
                    self.learn(now, place, port, packet);
                    self.finish(now, place, Outcome::Success, packet.trail.drive_latency_ns(), out);
                } else {
                    self.on_gap(now, place);
                }
            }
            Outcome::DriveFailed => self.finish(now, place, Outcome::DriveFailed, 0, out),
            Outcome::Aborted => self.on_aborted(now, place),
            Outcome::Incomplete => self.on_gap(now, place),
            Outcome::Rejected => {
                self.counters.rejected += 1;
                self.back_off(now, place);
            }
            Outcome::Unreachable => {
                self.counters.unreachable += 1;
                self.on_lost(now, place, true, out);
            }
        }
    }

    /// Updates the router from an answer, if the host has several uplinks.
    fn learn(&mut self, now: Time, place: IoPlace, port: Port, packet: &Packet) {
        let Uplinks::Routed(router) = &mut self.uplinks else { return };
        let Some(io) = self.ios.get(place) else { return };
        if packet.trail.is_detour() || io.tag != packet.tag {
            return;
        }
        // In the 32 bits of the header, like the time at the drive.
        let away_ns = (now.saturating_since(io.last_out).as_ps() / 1_000) as u32;
        let delay_ns = away_ns.saturating_sub(packet.trail.drive_latency_ns());
        router.learn(now, port, packet.target, packet.trail.congestion_from(0), delay_ns);
    }
}
