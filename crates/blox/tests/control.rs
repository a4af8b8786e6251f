//! Does the protocol hold: the control plane finds the dead in time, and leaves no two epochs that
//! serve.

use base::{NodeId, Program, Seed, Span, Time};
use blox::{
    Body, Control, ControlConfig, ControlError, ControlIn, ControlMessage, ControlOut, Event, Lease, Packet,
    ServerPlace, VssdId,
};

const CONTROLLER: NodeId = NodeId(9);
const BEAT: Span = Span::ms(10);
const LEASE: Span = Span::ms(35);
const MISSES: u32 = 4;

/// Five servers in the rack and one elsewhere; three groups, of which the first two share servers.
fn config() -> ControlConfig {
    let server = |node: u32| ServerPlace { node: NodeId(node), rack: u32::from(node == 5), room: 8 };
    let group = |members: [u32; 3], first: u32| {
        (0..3).map(|place| (NodeId(members[place]), VssdId(first + place as u32))).collect()
    };
    ControlConfig {
        own: CONTROLLER,
        rack: 0,
        servers: (0..6).map(server).collect(),
        groups: vec![group([0, 1, 5], 0), group([1, 0, 5], 3), group([2, 3, 5], 6)],
        clients: vec![NodeId(20)],
        beat: BEAT,
        misses: MISSES,
        patience: BEAT * u64::from(MISSES),
        lease: LEASE,
        resend: Span::ms(50),
        first_beat: Span::ZERO,
        replace_after: Span::ms(200),
        next_vssd: 9,
        vssd_step: 1,
    }
}

/// A control plane with servers that obey at once.
struct Rack {
    control: Control,
    now: Time,
    starts: [u32; 6],
    beats: [u64; 6],
    is_silent: [bool; 6],
    events: Vec<(Time, Event)>,
    switch: Vec<Packet>,
    clients: Vec<Packet>,
    echoes: Vec<(Time, NodeId)>,
    /// Longer leases that were granted.
    leases: Vec<(NodeId, Span)>,
    /// That of server 0.
    lease: Lease,
}

impl Rack {
    fn new() -> Rack {
        Rack::with(config())
    }
    fn with(config: ControlConfig) -> Rack {
        let mut rack = Rack {
            control: Control::new(config).expect("the configuration is sound"),
            now: Time::ZERO,
            starts: [0; 6],
            beats: [0; 6],
            is_silent: [false; 6],
            events: Vec::new(),
            switch: Vec::new(),
            clients: Vec::new(),
            echoes: Vec::new(),
            leases: Vec::new(),
            lease: Lease::new(LEASE, 0),
        };
        rack.wake();
        rack
    }
    fn wake(&mut self) {
        let mut out = Vec::new();
        self.control.on_wakeup(self.now, &mut out);
        self.obey(out);
    }
    fn hear(&mut self, source: NodeId, vssd: VssdId, body: Body) {
        let packet = Packet { vssd, latency_ns: 0, source, target: CONTROLLER, body };
        let mut out = Vec::new();
        self.control.on(self.now, ControlIn::Packet(packet), &mut out);
        self.obey(out);
    }
    fn obey(&mut self, out: Vec<ControlOut>) {
        for output in out {
            match output {
                ControlOut::Happened(event) => self.events.push((self.now, event)),
                ControlOut::Send(packet) if packet.target == CONTROLLER => self.switch.push(packet),
                ControlOut::Send(packet) if packet.target == NodeId(20) => self.clients.push(packet),
                ControlOut::Send(packet) => self.server(packet),
            }
        }
    }
    fn server(&mut self, packet: Packet) {
        match packet.body {
            Body::Heartbeat { beat } => {
                self.echoes.push((self.now, packet.target));
                if packet.target == NodeId(0) {
                    self.lease.echoed(beat);
                }
            }
            Body::Control(ControlMessage::Lease { beat, span }) => {
                self.leases.push((packet.target, span));
                if packet.target == NodeId(0) {
                    self.lease.granted(beat, span);
                }
            }
            Body::Control(ControlMessage::Members { epoch, .. }) if !self.is_silent[packet.target.index()] => {
                self.hear(packet.target, packet.vssd, Body::Control(ControlMessage::UpToDate { epoch }));
            }
            _ => {}
        }
    }
    fn beat(&mut self, server: usize) {
        let beat = u64::from(self.starts[server]) << 32 | self.beats[server];
        if server == 0 && self.starts[server] == 0 {
            assert_eq!(self.lease.beat(self.now), beat);
        }
        self.beats[server] += 1;
        self.hear(NodeId(server as u32), VssdId(0), Body::Heartbeat { beat });
    }
    /// Lets time pass: every server that is not silent beats at each multiple of [`BEAT`].
    fn run(&mut self, until: Time) {
        while self.now < until {
            let next_beat = Time::ps((self.now.as_ps() / BEAT.as_ps() + 1) * BEAT.as_ps());
            let wake = self.control.next_wakeup().unwrap_or(Time::MAX).max(self.now);
            self.now = next_beat.min(wake).min(until);
            if self.now == next_beat {
                (0..6)
                    .filter(|server| !self.is_silent[*server])
                    .collect::<Vec<_>>()
                    .into_iter()
                    .for_each(|server| self.beat(server));
            }
            self.wake();
        }
    }
    /// The lease that a server was granted last.
    fn is_granted(&self, server: u32) -> Span {
        let granted = self.leases.iter().rfind(|(to, _)| *to == NodeId(server));
        granted.map(|(_, span)| *span).expect("it was granted a longer one")
    }
    fn time_of(&self, wanted: Event) -> Option<Time> {
        self.events.iter().find(|(_, event)| *event == wanted).map(|(at, _)| *at)
    }
    fn servers_of(&self, group: usize) -> Vec<u32> {
        let members = self.control.members(group).expect("there are three groups");
        members.replicas.iter().flatten().map(|(node, _)| node.0).collect()
    }
}

#[test]
fn nobody_is_suspected_while_all_are_heard() {
    let mut rack = Rack::new();
    rack.run(Time::secs(2));
    assert_eq!(rack.events, []);
    assert_eq!(rack.control.members(0).map(|members| members.epoch), Some(1));
}

#[test]
fn a_dead_server_is_suspected_after_the_missed_beats_and_no_earlier() {
    let mut rack = Rack::new();
    rack.run(Time::ms(1_000));
    rack.is_silent[1] = true;
    let due = Time::ms(1_000) + BEAT * u64::from(MISSES);
    rack.run(due - Span::ps(1));
    assert_eq!(rack.events, []);
    rack.run(due);
    assert_eq!(rack.events, [(due, Event::Suspected(NodeId(1)))]);
    assert_eq!((rack.servers_of(0), rack.servers_of(1), rack.servers_of(2)), (vec![0, 5], vec![0, 5], vec![2, 3, 5]));
}

#[test]
fn a_server_that_was_never_heard_has_longer_to_start() {
    let first_beat = BEAT * 20;
    let due_of = |silent: usize, until: Time| {
        let mut rack = Rack::with(ControlConfig { first_beat, ..config() });
        rack.is_silent[1] = true;
        rack.run(until);
        rack.is_silent[1] = false;
        rack.run(Time::ms(1_000));
        rack.is_silent[silent] = true;
        rack.run(Time::ms(2_000));
        rack.events.first().copied()
    };
    let after = |span: Span| Time::ZERO + span;
    assert_eq!(due_of(1, after(first_beat)), Some((after(first_beat), Event::Suspected(NodeId(1)))));
    // Heard just in time, it has as long as any other from then on.
    let (at, event) = due_of(1, after(first_beat - Span::ps(1))).expect("it falls silent later");
    assert_eq!(event, Event::Suspected(NodeId(1)));
    assert!(at > Time::ms(1_000) && at <= Time::ms(1_000) + BEAT * u64::from(MISSES), "{at:?}");
}

#[test]
fn a_new_rack_goes_on_without_a_server_that_was_never_there_though_another_restarts() {
    let mut rack = Rack::with(ControlConfig { first_beat: BEAT * 20, ..config() });
    rack.is_silent = [false, true, true, true, true, false];
    rack.run(Time::ms(50));
    (rack.starts[0], rack.beats[0]) = (1, 0);
    rack.run(Time::ms(60));
    assert!(rack.events.contains(&(Time::ms(60), Event::Restarted(NodeId(0)))), "{:?}", rack.events);
    // The first two groups have it and the server elsewhere, and not the one that nobody has heard.
    assert_eq!((rack.servers_of(0), rack.servers_of(1)), (vec![0, 5], vec![0, 5]));
    // The third has nobody of them, and waits.
    assert_eq!(rack.servers_of(2), vec![2, 3, 5]);
}

#[test]
fn a_lease_has_ended_before_the_epoch_that_replaces_its_holder() {
    for delay_us in [0, 1, 700, 9_000] {
        let mut lease = Lease::new(LEASE, 0);
        let beat = lease.beat(Time::ms(1_000));
        // The beat arrives after `delay`, its echo after any time.
        lease.echoed(beat);
        let epoch_begins = Time::ms(1_000) + Span::us(delay_us) + BEAT * u64::from(MISSES);
        assert!(lease.holds(Time::ms(1_000) + LEASE - Span::ps(1)) && !lease.holds(Time::ms(1_000) + LEASE));
        assert!(!lease.holds(epoch_begins));
    }
}

/// A server that is late, by the patience that it has left.
#[test]
fn patience_grows_with_silences_that_end_and_falls_again() {
    let least = BEAT * u64::from(MISSES);
    let mut rack = Rack::with(ControlConfig { patience: Span::ms(400), ..config() });
    let suspected = |rack: &Rack| rack.events.iter().filter(|(_, event)| matches!(event, Event::Suspected(_))).count();
    // Some beats have passed since.
    let is_granted = |rack: &Rack, wanted: Span| {
        let granted = rack.is_granted(0);
        assert!(wanted * 99 / 100 < granted && granted <= wanted, "{granted} of {wanted}");
    };
    let silent = |rack: &mut Rack, span: Span| {
        rack.is_silent[0] = true;
        rack.run(rack.now + span);
        rack.is_silent[0] = false;
        rack.run(rack.now + BEAT * 3);
    };
    rack.run(Time::ms(100));
    assert!(rack.leases.is_empty(), "servers in time have the lease of the file");
    // A beat is missing at 100 ms: it is silent for 50 ms, which is too long for once.
    silent(&mut rack, Span::ms(41));
    assert_eq!(suspected(&rack), 1);
    is_granted(&rack, LEASE * 100 / 40);
    // Then it may be twice as late as it was, and the others may not.
    silent(&mut rack, Span::ms(80));
    assert_eq!(suspected(&rack), 1);
    is_granted(&rack, LEASE * 180 / 40);
    rack.is_silent[1] = true;
    let begin = rack.now;
    rack.run(begin + least + BEAT);
    assert_eq!((suspected(&rack), rack.leases.iter().all(|(server, _)| *server == NodeId(0))), (2, true));
    // There is a limit, and it forgets.
    rack.is_silent[1] = false;
    silent(&mut rack, Span::ms(500));
    is_granted(&rack, LEASE * 10);
    rack.run(rack.now + BEAT * 710);
    let half = rack.is_granted(0);
    assert!(LEASE * 21 / 4 < half && half < LEASE * 23 / 4, "{half}");
}

/// For every silence: if it ends before the patience does, the server has served by its lease for
/// a while of it, and was not replaced. If not, its lease had ended before.
#[test]
fn a_granted_lease_ends_before_the_patience_that_it_was_granted_with() {
    for silence_ms in (10..400).step_by(7) {
        let mut rack = Rack::with(ControlConfig { patience: Span::ms(300), ..config() });
        rack.run(Time::ms(100));
        for length in [silence_ms, 2 * silence_ms, 30, 4 * silence_ms] {
            rack.is_silent[0] = true;
            let begin = rack.now;
            rack.run(begin + Span::ms(length));
            let suspected =
                rack.events.iter().rfind(|(at, event)| *at > begin && *event == Event::Suspected(NodeId(0)));
            if let Some((at, _)) = suspected {
                assert!(!rack.lease.holds(*at), "{silence_ms} ms: it serves while another takes its place");
            }
            rack.is_silent[0] = false;
            rack.run(rack.now + BEAT * 3);
        }
    }
}

#[test]
fn a_control_plane_that_is_started_again_is_as_patient_as_the_one_before_may_have_been() {
    let patience = Span::ms(300);
    let mut rack = Rack::with(ControlConfig { patience, ..config() });
    rack.run(Time::ms(100));
    let state = rack.control.state();
    let config = ControlConfig { patience, ..config() };
    rack.control = Control::resume(config, state).expect("the same rack");
    rack.is_silent[0] = true;
    rack.wake();
    let begin = rack.now;
    rack.run(begin + patience + BEAT);
    assert_eq!(rack.time_of(Event::Suspected(NodeId(0))), Some(begin + patience));
}

#[test]
fn a_lease_follows_the_echo_of_a_beat_that_was_sent_and_no_other() {
    let mut lease = Lease::new(LEASE, 3);
    assert!(!lease.holds(Time::ZERO), "a server that has just started must wait");
    let (first, second) = (lease.beat(Time::ms(0)), lease.beat(Time::ms(10)));
    assert_eq!((first >> 32, second), (3, first + 1));
    lease.echoed(second + 1);
    assert_eq!(lease.until(), None);
    let third = lease.beat(Time::ms(20));
    lease.echoed(third);
    lease.echoed(third);
    assert_eq!(lease.until(), Some(Time::ms(20) + LEASE));
}

#[test]
fn a_lost_replica_is_built_on_the_server_with_the_fewest_vssds_of_its_rack() {
    let mut rack = Rack::new();
    rack.run(Time::ms(100));
    rack.is_silent[1] = true;
    rack.run(Time::ms(1_000));
    // Server 4 hosts nothing and takes the first; 2, 3 and 4 are then equal.
    assert_eq!((rack.servers_of(0), rack.servers_of(1)), (vec![0, 4, 5], vec![2, 0, 5]));
    let replica = (NodeId(4), VssdId(9));
    let ordered = rack.time_of(Event::Rebuilding { group: VssdId(0), replica }).expect("it is built");
    assert_eq!(ordered, Time::ms(100) + BEAT * u64::from(MISSES) + Span::ms(200));
    assert!(rack.time_of(Event::Rebuilt { group: VssdId(0), replica }).is_some());
    assert!(rack.switch.iter().any(|packet| packet.vssd == VssdId(1) && packet.body == Body::Delete));
    let create = Body::Create { server: NodeId(4), replica: VssdId(0), replica_server: NodeId(0) };
    assert!(rack.switch.iter().any(|packet| packet.vssd == VssdId(9) && packet.body == create));
    assert_eq!(
        rack.clients.last().map(|packet| packet.vssd),
        Some(VssdId(3)),
        "clients know groups by their first vSSD"
    );
}

/// A busy machine: the alarm is late, and a heartbeat comes before it.
#[test]
fn a_replacement_is_not_forgotten_if_a_packet_comes_between_its_time_and_the_alarm() {
    for late in [Span::ZERO, Span::ps(1), Span::us(10), Span::ms(5)] {
        let mut rack = Rack::new();
        rack.run(Time::ms(100));
        rack.is_silent[1] = true;
        let due = Time::ms(100) + BEAT * u64::from(MISSES) + Span::ms(200);
        rack.run(due - Span::ms(1));
        rack.now = due + late;
        rack.beat(0);
        assert!(rack.control.next_wakeup().is_some_and(|wake| wake <= rack.now), "{late} late: nothing is due");
        rack.wake();
        let replica = (NodeId(4), VssdId(9));
        let ordered = rack.time_of(Event::Rebuilding { group: VssdId(0), replica });
        assert_eq!(ordered, Some(due + late), "{late} late");
    }
}

/// Its host would be busy for nothing: the next change among the servers is a packet.
#[test]
fn a_replacement_that_nobody_can_take_wakes_nobody_again() {
    let mut config = config();
    config.servers.iter_mut().for_each(|server| server.room = 0);
    let mut rack = Rack::with(config);
    rack.run(Time::ms(100));
    rack.is_silent[1] = true;
    rack.run(Time::ms(500));
    rack.beat(0);
    assert!(rack.control.next_wakeup().is_some_and(|wake| wake > rack.now), "{:?}", rack.control.next_wakeup());
}

#[test]
fn a_server_that_returns_in_time_gets_its_replicas_back_after_it_has_left() {
    let mut rack = Rack::new();
    rack.run(Time::ms(100));
    rack.is_silent[1] = true;
    rack.run(Time::ms(180));
    let before = rack.control.members(0).expect("a group").epoch;
    rack.is_silent[1] = false;
    rack.run(Time::ms(300));
    let members = rack.control.members(0).expect("a group");
    assert_eq!((rack.servers_of(0), members.stale), (vec![0, 1, 5], None));
    assert_eq!(members.epoch, before + 2, "one epoch as a stale member, one as a full one");
    assert!(rack.time_of(Event::Returned(NodeId(1))).is_some());
}

#[test]
fn a_server_that_has_not_confirmed_that_it_left_gets_no_echo() {
    let mut rack = Rack::new();
    rack.run(Time::ms(100));
    rack.is_silent[1] = true;
    rack.run(Time::ms(200));
    let echoes = rack.echoes.len();
    // Its beats come through again, its confirmations do not.
    rack.beat(1);
    assert_eq!(rack.echoes.len(), echoes);
    for group in 0..2 {
        let epoch = rack.control.members(group).expect("a group").epoch;
        let vssd = [VssdId(1), VssdId(3)][group];
        assert_eq!(rack.time_of(Event::Returned(NodeId(1))), None);
        rack.hear(NodeId(1), vssd, Body::Control(ControlMessage::UpToDate { epoch }));
    }
    assert!(rack.time_of(Event::Returned(NodeId(1))).is_some());
    rack.beat(1);
    assert_eq!(rack.echoes.last(), Some(&(rack.now, NodeId(1))));
}

#[test]
fn a_restart_shows_even_if_no_beat_was_missed() {
    let mut rack = Rack::new();
    rack.run(Time::ms(100));
    (rack.starts[2], rack.beats[2]) = (1, 0);
    rack.run(Time::ms(200));
    assert_eq!(rack.time_of(Event::Restarted(NodeId(2))), Some(Time::ms(110)));
    assert!(rack.time_of(Event::Rebuilt { group: VssdId(6), replica: (NodeId(2), VssdId(6)) }).is_some());
    assert_eq!(rack.servers_of(2), [2, 3, 5]);
}

#[test]
fn the_last_replica_with_the_data_is_never_given_up() {
    let mut rack = Rack::new();
    rack.run(Time::ms(100));
    rack.is_silent = [true, true, true, true, true, false];
    rack.run(Time::secs(2));
    assert!((0..3).all(|group| rack.servers_of(group) == [5]));
    rack.is_silent = [true; 6];
    rack.run(Time::secs(3));
    assert!((0..3).all(|group| rack.servers_of(group) == [5]));
    rack.is_silent = [false; 6];
    rack.run(Time::secs(4));
    let whole = |group| rack.control.members(group).is_some_and(|members| members.stale.is_none());
    assert!((0..3).all(|group| rack.servers_of(group).len() == 3 && whole(group)));
}

/// Nobody knows then who of them is dead. When one is heard again, the others have as long as in
/// any silence.
#[test]
fn while_nobody_is_heard_nobody_is_given_up() {
    let heard = Time::secs(3) + BEAT;
    let due = heard + BEAT * u64::from(MISSES);
    for back in [heard, due - BEAT, due, due + BEAT] {
        let mut rack = Rack::new();
        rack.run(Time::ms(100));
        rack.is_silent = [true; 6];
        rack.run(Time::secs(3));
        rack.is_silent[5] = false;
        rack.run(back - Span::ps(1));
        let are_whole = |rack: &Rack| (0..3).all(|group| rack.servers_of(group).len() == 3);
        assert_eq!(are_whole(&rack), back <= due, "{back:?}");
        rack.is_silent = [false; 6];
        rack.run(back);
        let is_first = |group| rack.control.members(group).is_some_and(|members| members.epoch == 1);
        assert_eq!((0..3).all(is_first), back < due, "{back:?}");
        rack.run(Time::secs(4));
        assert!(are_whole(&rack));
    }
}

/// Beats of all that are late show a cut network when they are half of a silence late.
#[test]
fn one_that_is_dead_leaves_its_groups_though_the_beats_of_all_others_are_late() {
    let silence = BEAT * 6;
    let start = Time::ms(100);
    for (late, due) in [(BEAT * 2, start + silence), (BEAT * 3, start + BEAT * 3 + silence)] {
        let mut rack = Rack::with(ControlConfig { misses: 6, patience: silence, ..config() });
        rack.run(start);
        rack.is_silent = [true; 6];
        rack.run(start + late - Span::ps(1));
        rack.is_silent = [false, true, false, false, false, false];
        rack.run(due - Span::ps(1));
        assert_eq!(rack.servers_of(0), [0, 1, 5], "{late:?}");
        rack.run(due);
        assert_eq!(rack.servers_of(0), [0, 5], "{late:?}");
    }
}

#[test]
fn a_restart_before_the_first_beat_shows_too() {
    let mut rack = Rack::new();
    rack.starts[2] = 1;
    rack.run(Time::ms(100));
    assert!(rack.time_of(Event::Rebuilt { group: VssdId(6), replica: (NodeId(2), VssdId(6)) }).is_some());
}

#[test]
fn a_recovered_switch_gets_every_serving_replica_of_its_rack_again() {
    let mut rack = Rack::new();
    rack.run(Time::ms(100));
    rack.switch.clear();
    let mut out = Vec::new();
    rack.control.on(rack.now, ControlIn::SwitchRecovered, &mut out);
    rack.obey(out);
    let vssds: Vec<u32> = rack.switch.iter().map(|packet| packet.vssd.0).collect();
    assert_eq!(vssds, [0, 1, 3, 4, 6, 7]);
}

/// The first group's epochs as clients were told them: its serving and its stale servers.
fn epochs(rack: &Rack) -> Vec<(u32, Vec<NodeId>, Option<NodeId>)> {
    let orders = rack.clients.iter().filter(|packet| packet.vssd == VssdId(0)).filter_map(|packet| match packet.body {
        Body::Control(ControlMessage::Members { epoch, replicas, stale }) => {
            let serving = replicas.into_iter().flatten().filter(|member| Some(*member) != stale);
            Some((epoch, serving.map(|(node, _)| node).collect(), stale.map(|(node, _)| node)))
        }
        _ => None,
    });
    let mut epochs: Vec<_> = orders.collect();
    // A confirmation is answered before the rest of an order has been delivered here.
    epochs.sort_by_key(|(epoch, ..)| *epoch);
    epochs.dedup();
    epochs
}

/// Random silences. With this, a write that one epoch has finished is known to a member that serves
/// in the next.
#[test]
fn in_each_epoch_serve_only_those_who_served_or_were_rebuilt_in_the_one_before() {
    let mut longest = 0;
    for seed in 0..40 {
        let mut stream = Seed(seed).stream("silences");
        let mut rack = Rack::new();
        for step in 1..60 {
            rack.run(Time::ms(step * 25));
            let server = stream.below(6) as usize;
            rack.is_silent[server] = !rack.is_silent[server];
        }
        let epochs = epochs(&rack);
        longest = longest.max(epochs.len());
        for pair in epochs.windows(2) {
            let ((epoch, before, stale), (next, after, _)) = (&pair[0], &pair[1]);
            assert_eq!(*next, epoch + 1, "seed {seed}");
            assert!(after.iter().any(|node| before.contains(node)), "seed {seed}: {pair:?}");
            assert!(after.iter().all(|node| before.contains(node) || *stale == Some(*node)), "seed {seed}: {pair:?}");
        }
    }
    assert!(longest > 10, "epochs must change often: {longest}");
}

#[test]
fn configurations_that_cannot_work_are_refused_with_their_numbers() {
    let refused = |change: fn(&mut ControlConfig)| {
        let mut config = config();
        change(&mut config);
        Control::new(config).err()
    };
    let too_long = ControlError::LeaseTooLong { lease: Span::ms(40), beat: BEAT, misses: MISSES };
    assert_eq!(refused(|config| config.lease = Span::ms(40)), Some(too_long));
    assert_eq!(refused(|config| config.lease = Span::ms(40) - Span::ps(1)), None);
    assert!(matches!(refused(|config| config.lease = BEAT), Some(ControlError::LeaseTooShort { .. })));
    let impatient = ControlError::Patience { patience: Span::ms(39), beat: BEAT, misses: MISSES };
    assert_eq!(refused(|config| config.patience = Span::ms(39)), Some(impatient));
    let twins = ControlError::Replicas { group: 0, got: 3, servers: 2 };
    assert_eq!(refused(|config| config.groups[0][1].0 = NodeId(0)), Some(twins));
    let unknown = ControlError::UnknownServer { group: 2, node: NodeId(8) };
    assert_eq!(refused(|config| config.groups[2][0].0 = NodeId(8)), Some(unknown));
    let taken = ControlError::VssdTaken { group: 1, vssd: VssdId(0), next_vssd: 9 };
    assert_eq!(refused(|config| config.groups[1][0].1 = VssdId(0)), Some(taken));
    assert!(matches!(refused(|config| config.next_vssd = 8), Some(ControlError::VssdTaken { .. })));
    assert_eq!(refused(|config| config.vssd_step = 2), Some(ControlError::VssdStep { vssd_step: 2, groups: 3 }));
    assert_eq!(refused(|config| config.vssd_step = 3), None);
}

#[test]
fn a_control_plane_that_is_started_again_goes_on_where_it_ended() {
    let mut rack = Rack::new();
    rack.is_silent[0] = true;
    rack.run(Time::ms(150));
    let before = rack.control.state();
    let members = rack.control.members(0).expect("a group");
    assert!(members.epoch > 1 && !members.replicas.contains(&Some((NodeId(0), VssdId(0)))), "{members:?}");
    let text = serde_json::to_string(&before).expect("numbers make a text");
    let kept = serde_json::from_str(&text).expect("its own text");
    rack.control = Control::resume(config(), kept).expect("the same rack");
    assert_eq!((rack.control.state(), rack.control.members(0)), (before, Some(members)));
    // Servers that went on are not taken for new ones; the dead one is again, and comes back.
    rack.events.clear();
    rack.run(Time::ms(300));
    let restarted = rack.events.iter().filter(|(_, event)| matches!(event, Event::Restarted(_))).count();
    assert_eq!(restarted, 0, "{:?}", rack.events);
    assert_eq!(rack.control.members(0).map(|now| now.epoch >= members.epoch), Some(true));
}

#[test]
fn a_server_that_has_less_room_than_it_had_takes_in_no_more_than_that() {
    let state = Rack::new().control.state();
    let mut less = config();
    less.servers.iter_mut().for_each(|server| server.room = 3);
    let resumed = Control::resume(less, state).expect("the same rack").state();
    let text = serde_json::to_string(&resumed).expect("numbers make a text");
    assert_eq!((text.matches("\"room\":3,").count(), text.matches("\"room\":8,").count()), (6, 0), "{text}");
}

#[test]
fn a_state_of_another_rack_is_refused_by_name() {
    let state = Rack::new().control.state();
    let fewer = ControlConfig { servers: config().servers[..2].to_vec(), groups: Vec::new(), ..config() };
    let error = Control::resume(fewer, state.clone()).err().expect("server 2 is missing").to_string();
    assert_eq!(error, "the state that was kept has no server 2: the rack has changed");
    let groups = config().groups[1..].to_vec();
    let error = Control::resume(ControlConfig { groups, ..config() }, state).err().expect("group 0 is missing");
    assert_eq!(error.to_string(), "the state that was kept has no group 0: the rack has changed");
}

#[test]
fn a_client_that_asks_is_told_and_a_switch_that_starts_anew_is_filled() {
    let mut rack = Rack::new();
    rack.clients.clear();
    rack.hear(NodeId(20), VssdId(0), Body::Heartbeat { beat: 0 });
    let names: Vec<VssdId> = rack.clients.iter().map(|packet| packet.vssd).collect();
    assert_eq!(names, [VssdId(0), VssdId(3), VssdId(6)]);
    for (beat, fills) in [(7 << 32, true), (7 << 32 | 1, false), (8 << 32, true)] {
        rack.switch.clear();
        rack.hear(CONTROLLER, VssdId(0), Body::Heartbeat { beat });
        assert_eq!(!rack.switch.is_empty(), fills, "beat {beat:#x}");
    }
}
