//! A model of what is between roles, fitted to journals: links, processors and timers.
//!
//! A packet is *sent* when its role hands it to the system, with all that its batch has caused. It
//! *comes* when the role at the other end takes it. In between it needs at least the link's time. A
//! role that sleeps needs time to wake up. One that is busy takes the packet when it has done what
//! came before.

use crate::configs;
use crate::journal::{Entry, Printer};
use base::{NodeId, Span, Time};
use plan::rack::Rack;
use runtime::moments::Loads;
use runtime::times::{Luck, Times};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Packets of a link that are looked at.
const SEEN_MAX: usize = 1_000_000;
/// Packets that a role has to send at a time: more than any has.
const SENDS_MAX: usize = 1 << 12;
/// The part of a link's packets that are faster than its time: they were lucky.
const LEAST: f64 = 0.01;

/// A processor that has slept for longer is slower to wake up. Ours.
pub const SLEEPS: [Span; 3] = [Span::us(30), Span::us(150), Span::us(1_000)];

/// What takes so long, and few of its kind do, is no time of a packet: the machine kept the role
/// waiting. Ours.
const PAUSE: Span = Span::ms(10);
/// One of so many of a kind at most, or a single one. Ours.
const RARE: usize = 32;

fn class_of(slept: Span) -> usize {
    SLEEPS.iter().filter(|limit| slept > **limit).count()
}

/// What a role is: those of a kind are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A storage server.
    Storage,
    /// A door.
    Door,
    /// The control plane.
    Control,
    /// The switch.
    Switch,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 4] = [Kind::Storage, Kind::Door, Kind::Control, Kind::Switch];

    /// The kind of a node.
    pub(crate) fn of(rack: &Rack, node: NodeId) -> Kind {
        match node {
            _ if node == configs::switch_node(rack) => Kind::Switch,
            _ if node == configs::control_node(rack) => Kind::Control,
            _ if node.index() < rack.storage.len() => Kind::Storage,
            _ => Kind::Door,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Storage => "storage server",
            Kind::Door => "door",
            Kind::Control => "control plane",
            Kind::Switch => "switch",
        }
    }
}

/// The way between two kinds of roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The sender.
    pub from: Kind,
    /// The receiver.
    pub to: Kind,
    /// What a packet needs to a receiver that is awake, in nanoseconds.
    pub least_ns: u64,
    /// Packets that this was taken from.
    pub packets: u64,
    /// Packets that were sent and did not come.
    pub lost: u64,
}

/// The processor of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// From a packet's coming to a role that sleeps until it takes it: by how long it slept, up to
    /// each of [`SLEEPS`].
    pub wake_ns: [Times; SLEEPS.len() + 1],
    /// What a packet occupies the role: the first after a sleep without a page of data, and with
    /// it; one that follows, without and with it.
    pub packet_ns: [Times; 4],
    /// What a request for a page occupies a door until it is sent: a read, and a write.
    pub ask_ns: [Times; 2],
    /// What each packet that it sends after a wake-up occupies a role, where none carries a page of
    /// data, and where some do.
    pub turn_ns: [Times; 2],
    /// What handing each packet to the system occupies it, where none carries a page of data, and
    /// where some do.
    #[serde(default)]
    pub leave_ns: [Times; 2],
    /// From a timer's time until the role is awake.
    pub late_ns: Times,
    /// What else a sleep and the next waking occupy a processor: where the role did nothing in
    /// between that anybody sees, and where it did.
    #[serde(default)]
    pub rest_ns: [Times; 2],
}

/// The machine kept a role waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pause {
    /// Since when, in nanoseconds of the run.
    pub at_ns: u64,
    /// For how long.
    pub took_ns: u64,
    /// The role's node.
    pub node: u32,
}

/// A machine whose processors roles share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// How many it has; where that is not known, no role waits for one.
    pub processors: u32,
    /// The roles' nodes.
    pub nodes: Vec<u32>,
    /// How long others than roles, such as hosts and targets, had processors for each request of
    /// its doors.
    pub others_ns: Times,
}

/// What is between the roles of a rack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// The links.
    pub links: Vec<Link>,
    /// The processors.
    pub hosts: BTreeMap<Kind, Host>,
    /// When roles were kept waiting.
    #[serde(default)]
    pub pauses: Vec<Pause>,
    /// Where they ran. Times of roles are without waits for a processor then.
    #[serde(default)]
    pub machines: Vec<Machine>,
    /// What was read and written when. A file does not say.
    #[serde(skip)]
    pub loads: Loads<2>,
}

impl Host {
    /// Its times by what they are of.
    fn groups(&self) -> [&[Times]; 7] {
        let Host { wake_ns, packet_ns, ask_ns, turn_ns, leave_ns, late_ns, rest_ns } = self;
        [wake_ns, packet_ns, ask_ns, turn_ns, leave_ns, std::slice::from_ref(late_ns), rest_ns]
    }
    fn groups_mut(&mut self) -> [&mut [Times]; 7] {
        let Host { wake_ns, packet_ns, ask_ns, turn_ns, leave_ns, late_ns, rest_ns } = self;
        [wake_ns, packet_ns, ask_ns, turn_ns, leave_ns, std::slice::from_mut(late_ns), rest_ns]
    }

    /// How long it is occupied by what follows a sleep, or something else that it did.
    pub(crate) fn takes(&self, duty: Duty, has_data: bool, follows: bool, luck: Luck) -> Span {
        let times: &[Times] = match duty {
            Duty::Packet => &self.packet_ns,
            Duty::Ask => &self.ask_ns,
            Duty::Turn => &self.turn_ns,
            Duty::Leave => &self.leave_ns,
            Duty::Rest => return Span::ZERO,
        };
        // What was never seen takes as long as what is most like it.
        let class = class_of_duty(duty, has_data, follows);
        let alike = [class, class ^ 1, class ^ 2, class ^ 3].into_iter().filter_map(|class| times.get(class));
        alike.into_iter().find(|times| !times.is_empty()).map_or(Span::ZERO, |times| times.draw(luck))
    }

    /// How long it takes to wake up after such a sleep.
    pub(crate) fn wake(&self, slept: Span, luck: Luck) -> Span {
        let class = class_of(slept);
        // Where no such sleep was seen, the longest shorter one stands for it, or the shortest.
        let seen = self.wake_ns[..=class].iter().rev().chain(&self.wake_ns).find(|times| !times.is_empty());
        seen.map_or(Span::ZERO, |times| times.draw(luck))
    }
}

/// The place of a duty's times in a [`Host`].
fn class_of_duty(duty: Duty, has_data: bool, follows: bool) -> usize {
    usize::from(has_data) + if duty == Duty::Packet && follows { 2 } else { 0 }
}

impl Model {
    /// The processor of a kind; one that takes no time where none was seen.
    pub(crate) fn host(&self, kind: Kind) -> &Host {
        /// A role of which nothing was seen.
        static UNSEEN: LazyLock<Host> = LazyLock::new(Host::default);
        self.hosts.get(&kind).unwrap_or(&UNSEEN)
    }

    /// A packet's time between two kinds.
    pub(crate) fn least(&self, from: Kind, to: Kind) -> Span {
        let link = self.links.iter().find(|link| (link.from, link.to) == (from, to));
        Span::ns(link.map_or(0, |link| link.least_ns))
    }

    /// Whether all of its times are ones that a rack may have: of an hour at most, within 53 days.
    pub fn is_sound(&self) -> bool {
        const LONGEST_NS: u64 = 3_600_000_000_000;
        const LATEST_NS: u64 = 53 * 24 * LONGEST_NS;
        let others = self.machines.iter().flat_map(|machine| machine.others_ns.rising());
        let hosts = self.hosts.values().flat_map(Host::groups).flatten().flat_map(Times::rising).chain(others);
        let pauses = self.pauses.iter().map(|pause| &pause.took_ns);
        let is_late = |pause: &Pause| pause.at_ns > LATEST_NS;
        let mut times = self.links.iter().map(|link| &link.least_ns).chain(hosts).chain(pauses);
        times.all(|time| *time <= LONGEST_NS) && !self.pauses.iter().any(is_late)
    }

    /// Whether it says everything that a rack with doors needs.
    pub(crate) fn lacks(&self) -> Option<&'static str> {
        let between = [(Kind::Door, Kind::Switch), (Kind::Switch, Kind::Storage)];
        let links = between.iter().flat_map(|(one, other)| [(*one, *other), (*other, *one)]);
        let has = |(from, to)| self.links.iter().any(|link| (link.from, link.to) == (from, to));
        let lacks_link = !links.into_iter().all(has);
        let lacks_host = [Kind::Door, Kind::Switch, Kind::Storage]
            .iter()
            .any(|kind| self.hosts.get(kind).is_none_or(|host| host.wake_ns.iter().all(Times::is_empty)));
        match (lacks_link, lacks_host) {
            (true, _) => Some("packets between doors, switch and storage servers"),
            (_, true) => Some("packets that came to roles that slept"),
            _ => None,
        }
    }
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// When the sender handed it to the system.
    at: Time,
    print: u64,
}

/// A packet that came.
#[derive(Clone, Copy, Debug)]
struct Came {
    at: Time,
    print: u64,
    /// When the receiver had nothing more to do, if it did nothing since.
    slept_since: Option<Time>,
}

/// Takes a [`Model`] from what is seen in journals.
#[derive(Clone, Debug)]
pub struct Fit {
    kinds: Vec<Kind>,
    sent: BTreeMap<(NodeId, NodeId), Vec<Sent>>,
    came: BTreeMap<(NodeId, NodeId), Vec<Came>>,
    hosts: BTreeMap<Kind, Host>,
    /// Of which node each time is that took long, and since when and how long in all: by kind, when
    /// it was noted and as what.
    long: BTreeMap<(Kind, Time, Span), Pause>,
    switch: NodeId,
    loads: Loads<2>,
    sites: Sites,
    doing: Doing,
    printer: Printer,
}

/// What a role does now, within one journal.
#[derive(Clone, Debug, Default)]
struct Doing {
    /// What it was told last, and when.
    input: Option<(Duty, Time)>,
    /// Requests that it was asked then.
    asks: u64,
    /// Whether that came with a page of data, or a page was sent since.
    has_data: bool,
    /// Whether the role had not slept before.
    follows: bool,
    /// Packets that it has not handed to the system yet, and whether one has a page.
    sends: Vec<(NodeId, u64)>,
    sends_data: bool,
    /// How many it has just handed over.
    left: u64,
    /// What it did since it slept.
    pieces: Vec<Piece>,
    /// How long it ran since it woke before, and how much of that was what it did; none of it where
    /// it did nothing.
    ran: Option<Span>,
    worked: Option<Span>,
}

/// Something that occupied a role.
#[derive(Clone, Copy, Debug)]
struct Piece {
    node: NodeId,
    of: Of,
    at: Time,
    since: Time,
    took: Span,
    count: u64,
}

/// Which times of a [`Host`] something belongs to.
#[derive(Clone, Copy, Debug)]
enum Of {
    Duty(Duty, usize),
    Late,
    Wake(usize),
    Rest(usize),
}

impl Of {
    fn times(self, host: &mut Host) -> &mut Times {
        match self {
            Of::Duty(Duty::Packet, class) => &mut host.packet_ns[class],
            Of::Duty(Duty::Ask, class) => &mut host.ask_ns[class],
            Of::Duty(Duty::Leave, class) => &mut host.leave_ns[class],
            Of::Duty(Duty::Turn | Duty::Rest, class) => &mut host.turn_ns[class],
            Of::Late => &mut host.late_ns,
            Of::Wake(class) => &mut host.wake_ns[class],
            Of::Rest(class) => &mut host.rest_ns[class],
        }
    }
}

/// What occupies a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// A packet.
    Packet,
    /// A request for a page.
    Ask,
    /// The end of a turn: timers.
    Turn,
    /// Packets are handed to the system.
    Leave,
    /// Nothing.
    Rest,
}

impl Fit {
    /// Nothing is seen of a rack.
    pub fn new(rack: &Rack) -> Fit {
        let switch = configs::switch_node(rack);
        let kinds = (0..=switch.0).map(|node| Kind::of(rack, NodeId(node))).collect();
        let (sent, came, hosts, long) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (loads, doing, printer) = (Loads::default(), Doing::default(), Printer::default());
        Fit { kinds, sent, came, hosts, long, switch, loads, sites: Sites::default(), doing, printer }
    }

    /// Another journal begins, of a role on the machine that was booted as `boot`.
    pub(crate) fn begin(&mut self, node: NodeId, boot: &str, processors: u32) {
        self.end_turn(Span::ZERO);
        self.doing = Doing::default();
        self.sites.begin(node, boot, processors);
    }

    pub(crate) fn see(&mut self, at: Time, node: NodeId, entry: &Entry) {
        if let Entry::Asked { is_write, .. } = entry {
            self.loads.note(at, usize::from(*is_write));
            self.sites.asked(at);
        }
        match entry {
            Entry::Packet { packet, .. } => {
                let slept_since = self.slept_since();
                self.next(at, node, Duty::Packet);
                self.doing.has_data = packet.body.value().is_some();
                let from = if node == self.switch { packet.source } else { self.switch };
                let print = self.printer.print(packet);
                let came = self.came.entry((from, node)).or_default();
                if came.len() < SEEN_MAX {
                    came.push(Came { at, print, slept_since });
                }
            }
            Entry::Sent { to, packet } => {
                let print = self.printer.print(packet);
                let has_data = packet.body.value().is_some();
                self.doing.has_data |= has_data;
                self.doing.sends_data |= has_data;
                if self.doing.sends.len() < SENDS_MAX {
                    self.doing.sends.push((*to, print));
                }
            }
            Entry::Asked { .. } if self.doing.input == Some((Duty::Ask, at)) => self.doing.asks += 1,
            Entry::Asked { .. } => self.next(at, node, Duty::Ask),
            Entry::Wakeup { .. } => self.next(at, node, Duty::Turn),
            Entry::Rested { .. } => self.next(at, node, Duty::Rest),
            Entry::Left { .. } => self.leave(at, node),
            Entry::Processor { is_done, had } => {
                self.sites.ran(at, had.ran);
                let ran = self.doing.ran.take().map(|ran| together(ran, had.ran));
                if *is_done {
                    self.doing.ran = ran;
                    self.end_turn(had.waited);
                } else {
                    self.rested(at, node, ran);
                    self.doing.ran = Some(Span::ZERO);
                }
            }
            Entry::Machine { busy_ns } => self.sites.busy(node, at, *busy_ns),
            // It is soon done: its time is part of that of the input before.
            Entry::HostLeft { .. } | Entry::Ended { .. } | Entry::Rotted { .. } | Entry::Finished { .. } => {}
        }
    }

    /// Since when the role has had nothing to do.
    fn slept_since(&self) -> Option<Time> {
        let (duty, since) = self.doing.input?;
        matches!(duty, Duty::Turn | Duty::Rest).then_some(since)
    }

    /// The role hands over what it has to send.
    fn leave(&mut self, at: Time, node: NodeId) {
        self.next(at, node, Duty::Leave);
        self.doing.left = self.doing.sends.len() as u64;
        self.doing.has_data = std::mem::take(&mut self.doing.sends_data);
        for (to, print) in self.doing.sends.drain(..) {
            let sent = self.sent.entry((node, to)).or_default();
            if sent.len() < SEEN_MAX {
                sent.push(Sent { at, print });
            }
        }
    }

    /// What the role was told last has been done, and the next thing comes.
    fn next(&mut self, at: Time, node: NodeId, duty: Duty) {
        let asks = std::mem::replace(&mut self.doing.asks, 1);
        let has_data = std::mem::take(&mut self.doing.has_data);
        let has_slept = self.slept_since().is_some();
        let follows = std::mem::replace(&mut self.doing.follows, !has_slept);
        let Some((done, since)) = self.doing.input.replace((duty, at)) else { return };
        // Where the kernel does not say how long it waited for processors, nobody ends a turn.
        if has_slept && matches!(duty, Duty::Packet | Duty::Ask | Duty::Turn) {
            self.end_turn(Span::ZERO);
        }
        let count = match done {
            Duty::Packet => 1,
            Duty::Ask => asks,
            // One that sends nothing ends without a word about it, and the role sleeps.
            Duty::Turn if duty == Duty::Leave => self.doing.sends.len() as u64,
            Duty::Leave => self.doing.left,
            Duty::Turn | Duty::Rest => return,
        };
        let (of, took) = (Of::Duty(done, class_of_duty(done, has_data, follows)), at.saturating_since(since));
        self.doing.pieces.push(Piece { node, of, at: since, since, took, count });
    }

    /// A role is done, and has waited so long for a processor meanwhile: that is no time of what it
    /// did. A wait is one of few, so it is in what took longest.
    fn end_turn(&mut self, mut waited: Span) {
        let mut pieces = std::mem::take(&mut self.doing.pieces);
        pieces.sort_by_key(|piece| std::cmp::Reverse(piece.took));
        for piece in &mut pieces {
            // A pause is one, whatever it was that kept the role waiting.
            if piece.took < PAUSE {
                let rest = piece.took.saturating_sub(waited);
                waited = waited.saturating_sub(piece.took);
                piece.took = rest;
            }
        }
        if !pieces.is_empty() {
            let worked = pieces.iter().fold(Span::ZERO, |all, piece| all + piece.took);
            self.doing.worked = Some(self.doing.worked.unwrap_or_default() + worked);
        }
        pieces.into_iter().for_each(|piece| self.note(piece));
    }

    /// A role wakes up again, and ran for so long since it woke before.
    fn rested(&mut self, at: Time, node: NodeId, ran: Option<Span>) {
        let worked = self.doing.worked.take();
        if let Some(ran) = ran {
            let took = ran.saturating_sub(worked.unwrap_or_default());
            let of = Of::Rest(usize::from(worked.is_some()));
            self.note(Piece { node, of, at, since: at, took, count: 1 });
        }
    }

    /// A role woke up at `at`, and had to at `due`.
    pub(crate) fn due(&mut self, node: NodeId, at: Time, due: Option<Time>) {
        // What follows a packet or a request was not woken by a timer.
        let was_asleep = self.slept_since().is_some();
        if let Some(due) = due.filter(|due| *due <= at && was_asleep) {
            self.note(Piece { node, of: Of::Late, at, since: due, took: at - due, count: 1 });
        }
    }

    /// Something occupied a node.
    fn note(&mut self, Piece { node, of, at, since, took, count }: Piece) {
        let (kind, each) = (self.kinds[node.index()], took / count.max(1));
        of.times(self.hosts.entry(kind).or_default()).note(at, each);
        if took >= PAUSE {
            let pause = Pause { at_ns: since.as_ps() / 1_000, took_ns: took.as_ps() / 1_000, node: node.0 };
            self.long.insert((kind, at, each), pause);
        }
    }

    /// Each packet that came to where it was sent: by whom and when, and to whom and when.
    pub(crate) fn packets(&self) -> Vec<[(NodeId, Time); 2]> {
        let mut packets = Vec::new();
        for (ends, came) in &self.came {
            let mut pairs = Vec::new();
            pair(ends.1, self.sent.get(ends).map_or(&[][..], Vec::as_slice), came, &mut pairs);
            packets.extend(pairs.iter().map(|pair| [(ends.0, pair.sent.at), (ends.1, pair.came.at)]));
        }
        packets
    }

    /// The model of what was seen.
    pub fn model(self) -> Model {
        let mut model = self.into_seen();
        fill(&mut model.hosts);
        model
    }

    fn into_seen(mut self) -> Model {
        self.end_turn(Span::ZERO);
        let mut links: BTreeMap<(Kind, Kind), Vec<Pair>> = BTreeMap::new();
        let mut lost: BTreeMap<(Kind, Kind), u64> = BTreeMap::new();
        for (ends, came) in &self.came {
            let Some(sent) = self.sent.get(ends) else { continue };
            let kind = |node: NodeId| self.kinds.get(node.index()).copied();
            // Nobody outside the rack sends; a journal may say so.
            let (Some(from), Some(to)) = (kind(ends.0), kind(ends.1)) else { continue };
            let kinds = (from, to);
            let missing = pair(ends.1, sent, came, links.entry(kinds).or_default());
            *lost.entry(kinds).or_default() += missing;
        }
        let mut model = Model::default();
        for ((from, to), mut pairs) in links {
            pairs.sort_unstable_by_key(Pair::time);
            let Some(least) = pairs.get((pairs.len() as f64 * LEAST) as usize).map(Pair::time) else { continue };
            let (packets, lost) = (pairs.len() as u64, lost[&(from, to)]);
            model.links.push(Link { from, to, least_ns: least.as_ps() / 1_000, packets, lost });
            let waits = pairs.iter().filter_map(|pair| pair.wait(least));
            waits.for_each(|(node, at, slept, took)| {
                let since = Time::ZERO + at.saturating_since(Time::ZERO + took);
                self.note(Piece { node, of: Of::Wake(class_of(slept)), at, since, took, count: 1 });
            });
        }
        let Fit { mut hosts, long, loads, sites, .. } = self;
        for (kind, host) in &mut hosts {
            for times in host.groups_mut().into_iter().flatten() {
                let rare = times.take_rare(RARE, |at, took| long.get(&(*kind, at, took)).copied());
                model.pauses.extend(rare);
                *times = std::mem::take(times).settled();
            }
        }
        model.pauses.sort_unstable();
        Model { hosts, loads, machines: sites.machines(), ..model }
    }
}

/// Both, as far as a [`Span`] can say: a journal may say anything.
fn together(one: Span, other: Span) -> Span {
    Span::ps(one.as_ps().saturating_add(other.as_ps()))
}

/// What is seen of machines.
#[derive(Clone, Debug, Default)]
struct Sites {
    all: Vec<Site>,
    /// That of the present journal.
    now: usize,
}

/// What is seen of a machine.
#[derive(Clone, Debug, Default)]
struct Site {
    boot: String,
    machine: Machine,
    /// When its roles ran, how long, and how many requests its doors had then.
    work: Vec<(Time, Span, u64)>,
    /// How busy it was when, as the first of its roles says.
    busy: Vec<(Time, u64)>,
    told_by: Option<NodeId>,
}

impl Sites {
    fn begin(&mut self, node: NodeId, boot: &str, processors: u32) {
        self.now = self.all.iter().position(|site| site.boot == boot).unwrap_or_else(|| {
            self.all.push(Site { boot: boot.into(), ..Site::default() });
            self.all.len() - 1
        });
        let machine = &mut self.all[self.now].machine;
        // One journal that does not tell is enough: times of its role have waits in them.
        machine.processors = if machine.nodes.is_empty() { processors } else { machine.processors.min(processors) };
        if !machine.nodes.contains(&node.0) {
            machine.nodes.push(node.0);
        }
    }

    fn ran(&mut self, at: Time, ran: Span) {
        self.all[self.now].work.push((at, ran, 0));
    }

    fn asked(&mut self, at: Time) {
        self.all[self.now].work.push((at, Span::ZERO, 1));
    }

    fn busy(&mut self, node: NodeId, at: Time, busy_ns: u64) {
        let site = &mut self.all[self.now];
        if *site.told_by.get_or_insert(node) == node {
            site.busy.push((at, busy_ns));
        }
    }

    fn machines(self) -> Vec<Machine> {
        self.all.into_iter().map(Site::machine).collect()
    }
}

impl Site {
    fn machine(self) -> Machine {
        /// Fewer requests do not tell what others have of each.
        const ENOUGH: u64 = 64;
        let Site { machine, mut work, mut busy, .. } = self;
        work.sort_unstable();
        busy.sort_unstable();
        let (mut others_ns, mut next) = (Times::default(), 0);
        for pair in busy.windows(2) {
            let [(from, before), (until, after)] = [pair[0], pair[1]];
            let (mut ran, mut asked) = (Span::ZERO, 0);
            while let Some((at, span, count)) = work.get(next).filter(|(at, _, _)| *at < until) {
                if *at >= from {
                    (ran, asked) = (together(ran, *span), asked + count);
                }
                next += 1;
            }
            // In a container the system may tell of processors that are for others.
            let all_ns = (until.saturating_since(from).as_ps() / 1_000).saturating_mul(machine.processors.into());
            let busy_ns = after.saturating_sub(before);
            if asked >= ENOUGH && busy_ns <= all_ns {
                others_ns.note(from, Span::ns(busy_ns.saturating_sub(ran.as_ps() / 1_000) / asked));
            }
        }
        Machine { others_ns: others_ns.settled(), ..machine }
    }
}

/// Where little of a kind was seen, what is most like it is taken too: other classes of the same
/// duty, what packets take for requests, then the same class of other roles. Else one slow request
/// of two would make a simulated rack so slow that it ends none in time.
fn fill(hosts: &mut BTreeMap<Kind, Host>) {
    const PACKET: usize = 1;
    const ASK: usize = 2;
    let seen = hosts.clone();
    for (kind, host) in hosts {
        let others: Vec<&Host> = seen.iter().filter(|(other, _)| *other != kind).map(|(_, other)| other).collect();
        let own = seen[kind].groups();
        for (group, times) in host.groups_mut().into_iter().enumerate() {
            for (class, times) in times.iter_mut().enumerate() {
                let alike = [class ^ 1, class ^ 2, class ^ 3].into_iter().filter_map(|class| own[group].get(class));
                let packets = [class, class | 2].into_iter().filter(|_| group == ASK).map(|class| &own[PACKET][class]);
                let elsewhere = others.iter().map(|other| &other.groups()[group][class]);
                *times = alike.chain(packets).chain(elsewhere).fold(std::mem::take(times), Times::filled);
            }
        }
    }
}

/// A packet that was sent, and came.
struct Pair {
    to: NodeId,
    sent: Sent,
    came: Came,
}

impl Pair {
    fn time(&self) -> Span {
        self.came.at.saturating_since(self.sent.at)
    }

    /// What it tells of its receiver: when that took it, how long it had slept, and how long it
    /// took to wake up.
    fn wait(&self, least: Span) -> Option<(NodeId, Time, Span, Span)> {
        let since = self.came.slept_since?;
        let begin = since.max(self.sent.at + least);
        let waited = self.came.at.saturating_since(begin);
        // What was on its way when it went to sleep says nothing of waking up, but of a pause.
        let tells = since <= self.sent.at || waited >= PAUSE;
        tells.then(|| (self.to, self.came.at, begin.saturating_since(since), waited))
    }
}

/// Pairs what was sent with what came, in order; how many did not come.
fn pair(to: NodeId, sent: &[Sent], came: &[Came], pairs: &mut Vec<Pair>) -> u64 {
    /// Packets that may be lost one after another.
    const AHEAD: usize = 64;
    let (mut next, mut lost) = (0, 0);
    for came in came {
        let ahead = &sent[next.min(sent.len())..(next + AHEAD).min(sent.len())];
        if let Some(skipped) = ahead.iter().position(|sent| sent.print == came.print) {
            pairs.push(Pair { to, sent: ahead[skipped], came: *came });
            (next, lost) = (next + skipped + 1, lost + skipped as u64);
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use blox::{Body, Packet, Page, Tag, VssdId};
    use runtime::processor::Had;

    const SERVER: NodeId = NodeId(0);
    const DOOR: NodeId = NodeId(1);
    const SWITCH: NodeId = NodeId(3);

    fn fit() -> Fit {
        let text = "[[storage]]\nname = 's'\nlisten = '127.0.0.1:7010'\n\
                    [[door]]\nname = 'd'\nlisten = '127.0.0.1:7020'\nconfig = 't.toml'\n";
        Fit::new(&plan::rack::parse("rack.toml", text).expect("a rack"))
    }

    /// Another journal, of a machine whose processors are not known.
    fn begin(fit: &mut Fit) {
        fit.begin(SERVER, "", 0);
    }

    fn read(tag: u64) -> Packet {
        let body = Body::Read { tag: Tag(tag), page: Page(2) };
        Packet { vssd: VssdId(0), latency_ns: 0, source: DOOR, target: SERVER, body }
    }

    fn rising(all: &[Times]) -> Vec<Vec<u64>> {
        all.iter().map(|times| times.rising().to_vec()).collect()
    }

    fn us(time: u64) -> Time {
        Time::ZERO + Span::us(time)
    }

    /// A door begins with reads at these times and is occupied for 4 us by each; then it sleeps.
    fn door(fit: &mut Fit, begins: &[u64]) {
        begin(fit);
        for (tag, begin) in (0..).zip(begins) {
            let at = us(*begin);
            fit.see(at, DOOR, &Entry::Asked { at, volume: 0, page: Page(2), is_write: false });
            fit.see(at, DOOR, &Entry::Sent { to: SWITCH, packet: read(tag) });
            fit.see(us(begin + 4), DOOR, &Entry::Left { at: us(begin + 4) });
            fit.see(us(begin + 9), DOOR, &Entry::Wakeup { at: us(begin + 9) });
        }
    }

    fn link(model: &Model, from: Kind, to: Kind) -> (u64, u64, u64) {
        let link = model.links.iter().find(|link| (link.from, link.to) == (from, to)).expect("packets took it");
        (link.least_ns, link.packets, link.lost)
    }

    #[test]
    fn a_link_has_the_least_time_and_what_more_a_sleeper_needs_is_its_waking() {
        let mut fit = fit();
        door(&mut fit, &[10, 110, 210]);
        begin(&mut fit);
        // The second of them is lost. The switch has slept for 19 us when the first one comes, and
        // for 150 us when the last one could have come.
        for (tag, slept, comes) in [(0, 1, 20), (2, 70, 244)] {
            fit.see(us(slept), SWITCH, &Entry::Wakeup { at: us(slept) });
            fit.see(us(comes), SWITCH, &Entry::Packet { at: us(comes), packet: read(tag) });
            fit.see(us(comes), SWITCH, &Entry::Sent { to: SERVER, packet: read(tag) });
            fit.see(us(comes + 6), SWITCH, &Entry::Left { at: us(comes + 6) });
            fit.see(us(comes + 8), SWITCH, &Entry::Wakeup { at: us(comes + 8) });
        }
        let model = fit.into_seen();
        assert_eq!(link(&model, Kind::Door, Kind::Switch), (6_000, 2, 1), "sent at 14 us, taken at 20 us");
        let switch = &model.hosts[&Kind::Switch];
        assert_eq!(rising(&switch.wake_ns), [vec![0], vec![24_000], vec![], vec![]], "sent at 214 us, taken at 244 us");
        assert_eq!(rising(&switch.packet_ns), [vec![6_000, 6_000], vec![], vec![], vec![]]);
        let door = &model.hosts[&Kind::Door];
        assert_eq!(rising(&door.ask_ns), [vec![4_000, 4_000, 4_000], vec![]]);
        assert_eq!(rising(&door.leave_ns), [vec![5_000, 5_000, 5_000], vec![]]);
    }

    /// A timer makes the switch send two packets: 10 us until they leave, and 4 us for both.
    #[test]
    fn what_a_timer_sends_takes_its_time_before_it_leaves_and_while_it_does() {
        let mut fit = fit();
        begin(&mut fit);
        fit.see(us(5), SWITCH, &Entry::Wakeup { at: us(5) });
        (0..2).for_each(|tag| fit.see(us(5), SWITCH, &Entry::Sent { to: SERVER, packet: read(tag) }));
        fit.see(us(15), SWITCH, &Entry::Left { at: us(15) });
        fit.see(us(19), SWITCH, &Entry::Rested { at: us(19) });
        fit.see(us(60), SWITCH, &Entry::Wakeup { at: us(60) });
        begin(&mut fit);
        fit.see(us(1), SERVER, &Entry::Wakeup { at: us(1) });
        fit.see(us(22), SERVER, &Entry::Packet { at: us(22), packet: read(0) });
        let model = fit.into_seen();
        let switch = &model.hosts[&Kind::Switch];
        assert_eq!(rising(&switch.turn_ns), [vec![5_000], vec![]]);
        assert_eq!(rising(&switch.leave_ns), [vec![2_000], vec![]]);
        assert_eq!(link(&model, Kind::Switch, Kind::Storage).0, 7_000, "left at 15 us, taken at 22 us");
    }

    /// The door is occupied for 90 us by what it is asked, and for 9 us by handing it over. It
    /// waited for 67 us meanwhile: that is in what took longest.
    #[test]
    fn a_wait_for_a_processor_is_no_time_of_what_a_role_did() {
        let mut fit = fit();
        fit.begin(DOOR, "", 2);
        let had =
            |is_done, waited| Entry::Processor { is_done, had: Had { ran: Span::us(5), waited: Span::us(waited) } };
        let at = us(10);
        fit.see(at, DOOR, &had(false, 2));
        fit.see(at, DOOR, &Entry::Asked { at, volume: 0, page: Page(2), is_write: false });
        fit.see(at, DOOR, &Entry::Sent { to: SWITCH, packet: read(0) });
        fit.see(us(100), DOOR, &Entry::Left { at: us(100) });
        fit.see(us(109), DOOR, &Entry::Wakeup { at: us(109) });
        fit.see(us(109), DOOR, &had(true, 67));
        fit.begin(SWITCH, "", 4);
        let model = fit.into_seen();
        let door = &model.hosts[&Kind::Door];
        assert_eq!([&door.ask_ns[0], &door.leave_ns[0]].map(Times::rising), [[23_000], [9_000]]);
        assert_eq!(model.machines[0].processors, 2, "what the least of them says");
        assert_eq!(model.machines[0].nodes, [DOOR.0, SWITCH.0]);
    }

    /// The door runs for 40 us from one waking to the next, of which it is occupied for 9 us by
    /// what it is asked; then for 6 us, and does nothing.
    #[test]
    fn a_role_rests_for_what_it_ran_beyond_what_it_did() {
        let mut fit = fit();
        fit.begin(DOOR, "", 2);
        let had = |is_done, ran| Entry::Processor { is_done, had: Had { ran: Span::us(ran), waited: Span::ZERO } };
        // What it ran before is of its start.
        fit.see(us(9), DOOR, &had(false, 500));
        fit.see(us(10), DOOR, &Entry::Asked { at: us(10), volume: 0, page: Page(2), is_write: false });
        fit.see(us(19), DOOR, &Entry::Wakeup { at: us(19) });
        fit.see(us(19), DOOR, &had(true, 12));
        fit.see(us(90), DOOR, &had(false, 28));
        fit.see(us(91), DOOR, &Entry::Wakeup { at: us(91) });
        fit.see(us(120), DOOR, &had(false, 6));
        let door = &fit.into_seen().hosts[&Kind::Door];
        assert_eq!(rising(&door.rest_ns), [[6_000], [31_000]]);
    }

    /// In half a second processors were busy for 400 ms, and roles ran for 300 ms of it.
    #[test]
    fn others_have_what_roles_do_not() {
        let others = |busy_ms: u64, asks: u64| {
            let mut fit = fit();
            fit.begin(DOOR, "", 2);
            fit.see(us(0), DOOR, &Entry::Machine { busy_ns: 7_000_000 });
            for at in (0..asks).map(|place| us(1_000 + place)) {
                fit.see(at, DOOR, &Entry::Asked { at, volume: 0, page: Page(2), is_write: false });
            }
            let had = Had { ran: Span::ms(200), waited: Span::ZERO };
            fit.see(us(300_000), DOOR, &Entry::Processor { is_done: true, had });
            fit.see(us(500_000), DOOR, &Entry::Machine { busy_ns: 7_000_000 + busy_ms * 1_000_000 });
            fit.begin(SWITCH, "", 2);
            let had = Had { ran: Span::ms(100), waited: Span::ZERO };
            fit.see(us(400_000), SWITCH, &Entry::Processor { is_done: true, had });
            // The door has said it.
            fit.see(us(410_000), SWITCH, &Entry::Machine { busy_ns: 1 });
            fit.into_seen().machines[0].others_ns.rising().to_vec()
        };
        assert_eq!(others(400, 100), [1_000_000]);
        assert!(others(400, 63).is_empty(), "too few to tell");
        assert_eq!(others(1_000, 100), [7_000_000], "two processors are busy for a second at most");
        assert!(others(1_001, 100).is_empty(), "of other processors, too");
    }

    #[test]
    fn a_packet_behind_another_one_tells_what_that_takes_and_nothing_of_waking() {
        let mut fit = fit();
        door(&mut fit, &[10, 110]);
        begin(&mut fit);
        fit.see(us(1), SWITCH, &Entry::Wakeup { at: us(1) });
        [(0, 200), (1, 203)].into_iter().for_each(|(tag, at)| {
            fit.see(us(at), SWITCH, &Entry::Packet { at: us(at), packet: read(tag) });
        });
        fit.see(us(208), SWITCH, &Entry::Wakeup { at: us(208) });
        let switch = &fit.into_seen().hosts[&Kind::Switch];
        let packets = rising(&switch.packet_ns);
        assert_eq!(packets, [vec![3_000], vec![], vec![5_000], vec![]], "the first, and one that follows");
        assert_eq!(rising(&switch.wake_ns).concat().len(), 1);
    }

    #[test]
    fn a_timer_is_late_only_for_a_role_that_slept() {
        let mut fit = fit();
        begin(&mut fit);
        fit.due(SWITCH, us(5), Some(us(2)));
        fit.see(us(5), SWITCH, &Entry::Wakeup { at: us(5) });
        fit.due(SWITCH, us(90), Some(us(80)));
        fit.see(us(90), SWITCH, &Entry::Wakeup { at: us(90) });
        fit.see(us(91), SWITCH, &Entry::Packet { at: us(91), packet: read(0) });
        fit.due(SWITCH, us(99), Some(us(95)));
        assert_eq!(fit.into_seen().hosts[&Kind::Switch].late_ns.rising(), [10_000]);
    }

    /// A door was asked for one read, and that took long.
    #[test]
    fn a_kind_of_which_little_was_seen_takes_of_what_is_most_like_it() {
        let mut fit = fit();
        begin(&mut fit);
        fit.see(us(0), DOOR, &Entry::Asked { at: us(0), volume: 0, page: Page(2), is_write: false });
        (0..40).for_each(|place| {
            let at = us(9_000 + 2 * place);
            fit.see(at, DOOR, &Entry::Packet { at, packet: read(place) });
        });
        let seen = fit.clone().into_seen().hosts[&Kind::Door].ask_ns[0].rising().to_vec();
        assert_eq!(seen, [9_000_000]);
        let model = fit.model();
        let asks = model.hosts[&Kind::Door].ask_ns[0].rising();
        assert_eq!((asks.len(), asks[14], asks[15]), (16, 2_000, 9_000_000));
        assert!(model.hosts[&Kind::Door].ask_ns[1].is_empty());
    }

    /// The door begins with two reads and does not go on for 3 s; the switch is woken 20 ms late by
    /// its timer, and takes 11 ms for each of two packets of three. The server goes to sleep with a
    /// packet on its way, for 20 ms.
    #[test]
    fn what_took_long_once_is_a_pause_of_its_role() {
        let mut fit = fit();
        begin(&mut fit);
        let asked = |at| Entry::Asked { at, volume: 0, page: Page(2), is_write: false };
        (0..2).for_each(|_| fit.see(us(100), DOOR, &asked(us(100))));
        fit.see(us(3_000_100), DOOR, &Entry::Rested { at: us(3_000_100) });
        fit.see(us(3_000_200), DOOR, &asked(us(3_000_200)));
        fit.see(us(3_000_204), DOOR, &Entry::Rested { at: us(3_000_204) });
        begin(&mut fit);
        fit.see(us(5), SWITCH, &Entry::Wakeup { at: us(5) });
        fit.due(SWITCH, us(20_090), Some(us(90)));
        fit.see(us(20_090), SWITCH, &Entry::Wakeup { at: us(20_090) });
        for (tag, at) in [(0, 30_000), (1, 41_000), (2, 52_000), (3, 52_003)] {
            fit.see(us(at), SWITCH, &Entry::Packet { at: us(at), packet: read(tag) });
        }
        // A packet was on its way when the server went to sleep, and another came while it slept.
        begin(&mut fit);
        for (tag, left) in [(0, 60_000), (1, 90_000)] {
            fit.see(us(left - 1), SWITCH, &Entry::Sent { to: SERVER, packet: read(tag) });
            fit.see(us(left), SWITCH, &Entry::Left { at: us(left) });
            fit.see(us(left + 3), SWITCH, &Entry::Rested { at: us(left + 3) });
        }
        begin(&mut fit);
        for (tag, slept, came) in [(0, 60_001, 80_001), (1, 80_005, 90_002)] {
            fit.see(us(slept), SERVER, &Entry::Rested { at: us(slept) });
            fit.see(us(came), SERVER, &Entry::Packet { at: us(came), packet: read(tag) });
        }
        let model = fit.into_seen();
        let pause = |at: u64, took: u64, node: NodeId| Pause { at_ns: at * 1_000, took_ns: took * 1_000, node: node.0 };
        let first = pause(30_000, 11_000, SWITCH);
        let [late, asked] = [pause(90, 20_000, SWITCH), pause(100, 3_000_000, DOOR)];
        let asleep = pause(60_002, 19_999, SERVER);
        assert_eq!(model.pauses, [late, asked, first, pause(41_000, 11_000, SWITCH), asleep]);
        assert_eq!(rising(&model.hosts[&Kind::Door].ask_ns), [vec![4_000], vec![]]);
        assert!(model.hosts[&Kind::Switch].late_ns.is_empty());
        assert!(model.is_sound());
        let late = Pause { at_ns: u64::MAX, took_ns: 1, node: 0 };
        assert!(!Model { pauses: vec![late], ..model }.is_sound());
    }

    #[test]
    fn what_was_never_seen_takes_as_long_as_what_is_most_like_it() {
        let packet_ns = [vec![7_000], vec![], vec![], vec![9_000]].map(Times::from);
        let host = Host { packet_ns, ..Host::default() };
        let luck = (Time::ZERO, 0.5);
        let takes = |has_data, follows| host.takes(Duty::Packet, has_data, follows, luck);
        assert_eq!(takes(false, false), Span::us(7));
        assert_eq!(takes(true, false), Span::us(7), "the first without a page");
        assert_eq!(takes(false, true), Span::us(9), "another one with a page");
        assert_eq!(host.takes(Duty::Ask, false, false, luck), Span::ZERO);
    }
}
