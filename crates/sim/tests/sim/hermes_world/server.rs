//! A server as the contract of `blox::Replica` and `blox::Control` wants it, and with one mistake
//! if the test asks for it.

use super::{CONTROLLER, Mistake, PAGES, packet, up_to_date};
use base::{NodeId, Span, Time};
use blox::{
    Body, Contents, ControlMessage, Lease, Membership, Packet, Page, Reading, Replica, ReplicaConfig, ReplicaMessage,
    ReplicaOut, Standing, Ticket, Value, VssdId, Writing,
};
use std::collections::BTreeMap;

const LEASE: Span = Span::us(3_000);

/// What no client writes.
const RUBBISH: Value = Value(u64::MAX);

/// What a server wants the world to do.
pub enum Wish {
    Send(Packet),
    Answer { request: u64, value: Value },
    Read { vssd: VssdId, request: u64, early: Value },
    Load { vssd: VssdId, page: Page },
}

struct Hosted {
    replica: Replica,
    store: BTreeMap<Page, Value>,
}

pub struct Server {
    node: NodeId,
    pub is_up: bool,
    pub starts: u32,
    lease: Lease,
    hosted: BTreeMap<VssdId, Hosted>,
    /// Pages of the requests under way: a request's number is its ticket.
    pages: BTreeMap<u64, Page>,
    wishes: Vec<Wish>,
    mistake: Mistake,
}

impl Server {
    pub fn new(place: usize, members: &[(NodeId, VssdId)], mistake: Mistake) -> Server {
        let node = NodeId(place as u32);
        let own = members.iter().filter(|(server, _)| *server == node);
        let hosted = own.map(|(_, vssd)| (*vssd, hosted(node, *vssd, Contents::Original))).collect();
        let (pages, wishes) = (BTreeMap::new(), Vec::new());
        Server { node, is_up: true, starts: 0, lease: Lease::new(LEASE, 0), hosted, pages, wishes, mistake }
    }
    pub fn take_wishes(&mut self) -> Vec<Wish> {
        std::mem::take(&mut self.wishes)
    }
    pub fn next_wakeup(&self) -> Option<Time> {
        self.hosted.values().filter_map(|hosted| hosted.replica.next_wakeup()).min()
    }
    pub fn crash(&mut self, costs_data: bool) {
        self.is_up = false;
        let stored = self.hosted.values_mut().flat_map(|hosted| hosted.store.values_mut());
        stored.filter(|_| costs_data).for_each(|value| *value = RUBBISH);
    }
    /// What the replicas knew is gone; what is on the flash is not trusted.
    pub fn restart(&mut self) {
        self.is_up = true;
        self.starts += 1;
        self.lease = Lease::new(LEASE, self.starts);
        self.pages.clear();
        for (vssd, hosted) in &mut self.hosted {
            hosted.replica = Replica::new(config(self.node, *vssd), Contents::Lost);
        }
    }
    pub fn wake(&mut self, now: Time) {
        let vssds: Vec<VssdId> = self.hosted.keys().copied().collect();
        vssds.iter().for_each(|vssd| self.act(now, *vssd, |replica, out| replica.on_wakeup(now, out)));
    }
    pub fn beat(&mut self, now: Time) {
        let beat = self.lease.beat(now);
        self.send(CONTROLLER, VssdId(0), Body::Heartbeat { beat });
    }
    fn send(&mut self, to: NodeId, vssd: VssdId, body: Body) {
        self.wishes.push(Wish::Send(packet(self.node, to, vssd, body)));
    }
    fn may_serve(&self, now: Time) -> bool {
        self.mistake == Mistake::NoLease || self.lease.holds(now)
    }
    /// Lets a replica act and does what it wants.
    fn act(&mut self, now: Time, vssd: VssdId, act: impl FnOnce(&mut Replica, &mut Vec<ReplicaOut>)) {
        let mut out = Vec::new();
        let Some(hosted) = self.hosted.get_mut(&vssd) else { return };
        act(&mut hosted.replica, &mut out);
        for output in out {
            self.carry_out(now, vssd, output);
        }
    }
    fn carry_out(&mut self, now: Time, own: VssdId, output: ReplicaOut) {
        match output {
            ReplicaOut::Send { to, vssd, message } => self.send(to, vssd, Body::Replica(message)),
            ReplicaOut::Apply { page, value, .. } => {
                self.hosted.get_mut(&own).expect("it has just spoken").store.insert(page, value);
            }
            ReplicaOut::WriteDone { ticket } => self.answer(now, ticket, Value(0)),
            ReplicaOut::ReadReady { ticket, value } => self.answer(now, ticket, value),
            ReplicaOut::Load { page } => self.wishes.push(Wish::Load { vssd: own, page }),
            ReplicaOut::Abandoned { ticket, .. } => {
                self.pages.remove(&u64::from(ticket.0));
            }
            ReplicaOut::Recalled { .. } => unreachable!("clients of this world send no write again"),
            ReplicaOut::Lost { .. } => unreachable!("no page rots in this world"),
            ReplicaOut::UpToDate { epoch } => self.send(CONTROLLER, own, up_to_date(epoch)),
        }
    }
    fn answer(&mut self, now: Time, ticket: Ticket, value: Value) {
        let request = u64::from(ticket.0);
        if self.pages.remove(&request).is_some() && self.may_serve(now) {
            self.wishes.push(Wish::Answer { request, value });
        }
    }
}

/// Packets.
impl Server {
    pub fn packet(&mut self, now: Time, packet: &Packet) {
        match packet.body {
            Body::Heartbeat { beat } => self.lease.echoed(beat),
            Body::Control(ControlMessage::Lease { beat, span }) => self.lease.granted(beat, span),
            Body::Control(ControlMessage::Members { epoch, replicas, stale }) => {
                self.members(now, packet.vssd, &Membership { epoch, replicas, stale });
            }
            Body::Replica(message) => self.replica_message(now, packet.source, packet.vssd, message),
            _ => {}
        }
    }
    fn members(&mut self, now: Time, vssd: VssdId, order: &Membership) {
        let mut order = *order;
        if self.mistake == Mistake::TrustStale {
            order.stale = None;
        }
        if !self.hosted.contains_key(&vssd) {
            self.hosted.insert(vssd, hosted(self.node, vssd, self.new_contents()));
        }
        self.act(now, vssd, |replica, out| replica.members(now, &order, out));
    }
    fn new_contents(&self) -> Contents {
        if self.mistake == Mistake::TrustStale { Contents::Original } else { Contents::Lost }
    }
    fn replica_message(&mut self, now: Time, from: NodeId, vssd: VssdId, mut message: ReplicaMessage) {
        let Some(hosted) = self.hosted.get(&vssd) else { return };
        distort(self.mistake, &hosted.replica, &mut message);
        if self.mistake == Mistake::HastyAcknowledgement
            && let ReplicaMessage::Invalidate { page, timestamp, epoch, .. } = message
        {
            self.send(from, peer_vssd(from), Body::Replica(ReplicaMessage::Acknowledge { page, timestamp, epoch }));
            // Half of them never get past the card.
            if timestamp.version % 2 == 0 {
                return;
            }
        }
        self.act(now, vssd, |replica, out| replica.message(now, from, &message, out));
    }
}

/// The mistake that can be made by changing what arrives.
fn distort(mistake: Mistake, replica: &Replica, message: &mut ReplicaMessage) {
    if let (Mistake::ValidateAny, ReplicaMessage::Validate { page, timestamp, .. }) = (mistake, message) {
        *timestamp = replica.timestamp(*page);
    }
}

/// Good enough for the hasty network card: the vSSDs of the beginning.
fn peer_vssd(node: NodeId) -> VssdId {
    if node == NodeId(3) { VssdId(2) } else { VssdId(node.0) }
}

/// Clients' requests.
impl Server {
    /// The replica that serves here, if one does.
    fn serving(&self) -> Option<VssdId> {
        self.hosted.iter().find(|(_, hosted)| hosted.replica.standing() == Standing::Serving).map(|(vssd, _)| *vssd)
    }
    pub fn client_write(&mut self, now: Time, request: u64, page: Page, value: Value) {
        let Some(vssd) = self.serving().filter(|_| self.may_serve(now)) else { return };
        self.pages.insert(request, page);
        let mut taken = Writing::Taken;
        let ticket = Ticket(request as u32);
        self.act(now, vssd, |replica, out| taken = replica.write(now, page, (value, None), ticket, out));
        assert_eq!(taken, Writing::Taken);
    }
    pub fn client_read(&mut self, now: Time, request: u64, page: Page) {
        let Some(vssd) = self.serving().filter(|_| self.may_serve(now)) else { return };
        self.pages.insert(request, page);
        if self.read(vssd, page, request) {
            let early = self.stored(vssd, page);
            self.wishes.push(Wish::Read { vssd, request, early });
        }
    }
    fn read(&mut self, vssd: VssdId, page: Page, request: u64) -> bool {
        let hosted = self.hosted.get_mut(&vssd).expect("replicas are not taken away");
        let reading = hosted.replica.read(page, Ticket(request as u32));
        reading == Reading::Serve || self.mistake == Mistake::ServeInvalid && reading == Reading::Wait
    }
    /// The device has read the page some time between its start (`early`) and now.
    pub fn read_done(&mut self, now: Time, vssd: VssdId, request: u64, early: Value) {
        let Some(page) = self.pages.get(&request).copied() else { return };
        let value = if request.is_multiple_of(2) { early } else { self.stored(vssd, page) };
        let may_go = self.mistake == Mistake::NoSecondLook || self.may_serve(now) && self.read(vssd, page, request);
        if may_go {
            self.answer(now, Ticket(request as u32), value);
        }
    }
    pub fn loaded(&mut self, now: Time, vssd: VssdId, page: Page) {
        let value = self.stored(vssd, page);
        self.act(now, vssd, |replica, out| replica.loaded(page, value, out));
    }
    fn stored(&self, vssd: VssdId, page: Page) -> Value {
        self.hosted.get(&vssd).and_then(|hosted| hosted.store.get(&page)).copied().unwrap_or_default()
    }
}

/// For the world to look at.
impl Server {
    /// The replica that would answer clients now.
    pub fn answers(&self, now: Time) -> Option<(NodeId, VssdId)> {
        self.serving().filter(|_| self.is_up && self.lease.holds(now)).map(|vssd| (self.node, vssd))
    }
    pub fn standing(&self, vssd: VssdId) -> Option<Standing> {
        self.hosted.get(&vssd).map(|hosted| hosted.replica.standing())
    }
    /// Everything that members must agree on.
    pub fn state(&self, vssd: VssdId) -> String {
        let Some(hosted) = self.hosted.get(&vssd) else { return String::new() };
        let page = |page| (hosted.replica.timestamp(page), hosted.replica.is_valid(page), self.stored(vssd, page));
        let pages: Vec<_> = (0..PAGES).map(|number| page(Page(number))).collect();
        format!(
            "epoch {}, {:?}, {} in flight: {pages:?}",
            hosted.replica.epoch(),
            hosted.replica.standing(),
            hosted.replica.in_flight()
        )
    }
}

fn hosted(node: NodeId, vssd: VssdId, contents: Contents) -> Hosted {
    Hosted { replica: Replica::new(config(node, vssd), contents), store: BTreeMap::new() }
}

fn config(node: NodeId, vssd: VssdId) -> ReplicaConfig {
    let (retransmit, replay) = (Span::us(300), Span::us(450));
    ReplicaConfig { own: (node, vssd), pages: PAGES, retransmit, replay, fetch_window: 1, remember: None }
}
