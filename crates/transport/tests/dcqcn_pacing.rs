//! Tests of the times at which a paced queue pair of DCQCN may send.

use base::{Bytes, NodeId, Program, Rate, Time};
use transport::config::{Dcqcn, Pause};
use transport::{Host, HostIn, Message, Packet, PacketKind, dcqcn};

fn config(rate_min_bps: u64) -> Dcqcn {
    Dcqcn {
        mark_from: Bytes::kib(5),
        mark_all: Bytes::kib(200),
        pause: Pause::Static { above: Bytes::kib(64), below: Bytes::kib(60) },
        hyper_bps: 400_000_000,
        rate_min_bps,
        ..Dcqcn::PUBLISHED
    }
}

/// Builds a host that received this many notifications at time zero, with a long message to send.
fn congested(config: &Dcqcn, notifications: u32) -> dcqcn::Host {
    let mut host = dcqcn::host(config, NodeId(0), Rate::gbps(100));
    let notification = Packet::new(PacketKind::CongestionNotification, NodeId(1), NodeId(0), 84);
    for _ in 0..notifications {
        host.on(Time::ZERO, HostIn::Receive(notification), &mut Vec::new());
    }
    let (source, target, bytes) = (NodeId(0), NodeId(1), Bytes::new(1 << 20));
    let message = Message { id: 0, source, target, bytes, is_answer: false, expects_answer: false };
    host.on(Time::ZERO, HostIn::Submit(message), &mut Vec::new());
    host
}

/// Returns the time at which the next packet leaves: at `from`, or at one of the host's wake-ups
/// after it.
fn next_packet(host: &mut dcqcn::Host, from: Time) -> Time {
    let mut now = from;
    loop {
        if host.poll_transmit(now).is_some() {
            return now;
        }
        now = host.next_wakeup().expect("a packet waits");
        host.on_wakeup(now, &mut Vec::new());
    }
}

#[test]
fn twenty_notifications_leave_the_least_rate() {
    let mut host = congested(&config(100_000_000), 20);
    assert_eq!(host.rate_bps(NodeId(1)), 1e8);
    assert_eq!(next_packet(&mut host, Time::ZERO), Time::ZERO);
}

/// At 95 kb/s, the rate after twenty notifications without a minimum, a packet would delay the next
/// one by 92 ms; the increase timer doubles the rate long before.
#[test]
fn a_packet_that_waits_goes_when_the_rate_has_risen_enough() {
    let mut host = congested(&config(1), 20);
    assert!(host.rate_bps(NodeId(1)) < 1e5);
    assert_eq!(next_packet(&mut host, Time::ZERO), Time::ZERO);
    let second = next_packet(&mut host, Time::ZERO);
    assert!(second < Time::us(2_000), "{second}");
}
