//! Commands that are framed well and ask for what may not be.

use super::{PLAIN, access, admin, asked, asked_bytes, attack, greeted, queues, read, under, write};
use crate::attack::VerdictKind::Accepted;
use crate::attack::{Attack, Call, Expectation, Step, Victim, rules};
use crate::range::{CopyFormat, CopyRange};
use crate::{AccessFlags, Identify};
use crate::{
    Admin, Body, Command, Connect, ConnectAttributes, ConnectData, Copy, DatasetManagement, DatasetUse, Fabrics, Fuse,
    GetLogPage, HostId, Io, Nqn, PropertySize, Sgl, Sqe,
};

const ID: u16 = 0x0202;

pub(super) fn scripts(victim: &Victim) -> Vec<Attack> {
    let mut all = under(rules::QUEUE_ORDER, order());
    all.extend(admin_commands(victim));
    all.extend(under(rules::CONNECT, connects(victim)));
    all.extend(under(rules::CONNECT, queue_connects(victim)));
    all.extend(block_ranges(victim));
    all.extend(under(rules::NAMESPACE, namespaces(victim)));
    all.extend(odd_commands(victim));
    all.extend(floods(victim));
    all
}

fn connect_entry(queue: u16, size_minus_one: u16) -> Sqe {
    let attributes = ConnectAttributes::empty();
    let body = Body::Fabrics(Fabrics::Connect(Connect { queue, size_minus_one, attributes, keep_alive_ms: 0 }));
    let data = Sgl::InCapsule { offset: 0, length: ConnectData::BYTES as u32 };
    Command { data, ..Command::new(ID, body) }.encode()
}

fn connect_data(victim: &Victim, controller: u16) -> ConnectData {
    let Victim { host_id, subsystem, host, .. } = *victim;
    ConnectData { host_id, controller, subsystem, host }
}

/// A Connect that has to be refused.
fn connecting(
    name: &'static str,
    about: &'static str,
    before: Vec<Step>,
    link: usize,
    entry: Sqe,
    data: &[u8],
) -> Attack {
    let steps =
        vec![Step::Entry(link, Box::new(entry), data.to_vec()), Step::Expect(link, Expectation::RefusesConnect(ID))];
    attack(name, about, [before, steps])
}

fn connects(victim: &Victim) -> Vec<Attack> {
    let dynamic = connect_data(victim, ConnectData::DYNAMIC);
    let bytes = dynamic.encode();
    let unknown = Nqn::new("nqn.2014-08.org.example:nothing").expect("the name is a name");
    let stranger = ConnectData { subsystem: unknown, ..dynamic }.encode();
    let absent = connect_data(victim, 0xffe0).encode();
    let mut endless = bytes;
    endless[256..512].fill(b'a');
    let mut nameless = bytes;
    nameless[512..].fill(0);
    let case = |name, about, entry, data: &[u8]| connecting(name, about, greeted(0, PLAIN), 0, entry, data);
    let usual = || connect_entry(0, 31);
    let again = "Connect on a queue that is connected";
    vec![
        case("connect-to-nothing", "an unknown subsystem", usual(), &stranger),
        case("connect-to-an-endless-name", "SUBNQN without its zero", usual(), &endless),
        // spdk_nvme_perf sends one, so that SPDK's and nvmet's targets take it where any host may.
        case("connect-without-a-name", "an empty HOSTNQN", usual(), &nameless)
            .allows(Accepted, "hosts in use send it, and a target that lets any host in need not tell hosts apart"),
        case("connect-with-a-queue-of-one", "SQSIZE 0 (CVE-2023-5178)", connect_entry(0, 0), &bytes),
        case("connect-to-a-named-controller", "a static CNTLID", usual(), &absent),
        case("connect-without-data", "a Connect whose data do not come", usual(), &[]),
        connecting("connect-twice", again, admin(0, PLAIN), 0, usual(), &bytes),
    ]
}

fn queue_connects(victim: &Victim) -> Vec<Attack> {
    let bytes = connect_data(victim, ConnectData::DYNAMIC).encode();
    let absent = connect_data(victim, 0xffe0).encode();
    let both = || [admin(0, PLAIN), greeted(1, PLAIN)].concat();
    let early = [greeted(0, PLAIN), vec![Step::Call(0, Call::ConnectAdmin)], greeted(1, PLAIN)].concat();
    let twice = [queues(PLAIN), greeted(2, PLAIN), refused_queue(2, 1, 15)];
    let (none, any) = ("an I/O queue of an unknown CNTLID", "an I/O queue of CNTLID FFFFh");
    let other = "an I/O queue of another host's CNTLID";
    let thief = Nqn::new("nqn.2014-08.org.example:thief").expect("the name is a name");
    vec![
        connecting("queue-of-no-controller", none, both(), 1, connect_entry(1, 15), &absent),
        connecting("queue-of-any-controller", any, both(), 1, connect_entry(1, 15), &bytes),
        attack("queue-before-ready", "an I/O queue before CSTS.RDY", [early, refused_queue(1, 1, 15)])
            .under(rules::QUEUE_ORDER)
            .allows(Accepted, "Base 2.0, 3.5.1 orders what a host does; that Connect fails before is demanded nowhere"),
        attack("queue-of-one-entry", "SQSIZE 0 of an I/O queue (CVE-2023-5178)", [both(), refused_queue(1, 1, 0)]),
        attack("queue-beyond-all", "queue FFFFh", [both(), refused_queue(1, 0xffff, 15)]),
        attack("queue-twice", "the same queue on two connections", twice),
        attack("queue-of-another-host", other, [both(), stolen(victim, Some(thief))]),
        attack(
            "queue-of-another-host-id",
            "an I/O queue with the right HOSTNQN and another HOSTID",
            [both(), stolen(victim, None)],
        )
        .allows(Accepted, "hosts in use send it; who the host is, HOSTNQN says"),
    ]
}

/// The ordinary Connect of an I/O queue, which has to be refused here. The controller is that of
/// link 0.
fn refused_queue(link: usize, queue: u16, size_minus_one: u16) -> Vec<Step> {
    vec![Step::RefusedCall(link, Call::ConnectIo { admin: 0, queue, size_minus_one })]
}

/// As above, by another host.
fn stolen(victim: &Victim, name: Option<Nqn>) -> Vec<Step> {
    let host_id = HostId(victim.host_id.0.map(|byte| byte ^ 0xff));
    let disguise = Step::Disguise(name.unwrap_or(victim.host), host_id);
    vec![disguise, Step::RefusedCall(1, Call::ConnectIo { admin: 0, queue: 1, size_minus_one: 15 })]
}

fn get_log(log: u8, offset: u64, dwords_minus_one: u32, descriptor: u32) -> Sqe {
    let asked = GetLogPage::part(log, offset, dwords_minus_one);
    let data = Sgl::Transport { length: descriptor };
    Command { data, ..Command::new(ID, Body::Admin(Admin::GetLogPage(asked))) }.encode()
}

fn identify(structure: u8, namespace: u32, length: u32) -> Sqe {
    let asked = Identify { structure, controller: 0, specific_id: 0, command_set: 0 };
    let command = Command::new(ID, Body::Admin(Admin::Identify(asked)));
    Command { namespace, data: Sgl::Transport { length }, ..command }.encode()
}

/// Sent before Connect, and before CC.EN.
fn order() -> Vec<Attack> {
    let entry = Box::new(identify(1, 0, 4096));
    let sent = |expectation| vec![Step::Entry(0, entry.clone(), Vec::new()), Step::Expect(0, expectation)];
    let connected = [greeted(0, PLAIN), vec![Step::Call(0, Call::ConnectAdmin)]].concat();
    vec![
        attack(
            "command-before-connect",
            "an admin command before Connect",
            [greeted(0, PLAIN), sent(Expectation::Refuses(ID))],
        ),
        attack("command-before-enable", "an admin command before CC.EN", [connected, sent(Expectation::Refuses(ID))]),
    ]
}

fn on_admin(name: &'static str, about: &'static str, entry: Sqe, expectation: Expectation) -> Attack {
    let steps = vec![Step::Entry(0, Box::new(entry), Vec::new()), Step::Expect(0, expectation)];
    attack(name, about, [admin(0, PLAIN), steps])
}

fn property(offset: u32, size: PropertySize, value: u64) -> Sqe {
    Command::new(ID, Body::Fabrics(Fabrics::PropertySet { offset, size, value })).encode()
}

fn admin_commands(victim: &Victim) -> Vec<Attack> {
    let refuses = Expectation::Refuses(ID);
    let answers = Expectation::Answers(ID);
    let window = "an offset and a length whose sum wraps (CVE-2026-64320)";
    let unknown = Sqe { opcode: 0xc3, id: ID.into(), ..Sqe::default() };
    let four = PropertySize::Four;
    let has_unknown = victim.capacity.namespaces < u32::MAX - 1;
    let mut all = under(
        rules::LOG,
        vec![
            on_admin("log-offset-that-wraps", window, get_log(2, u64::MAX - 3, 1023, 4096), refuses),
            on_admin("log-offset-beyond", "an offset behind the log", get_log(2, 1 << 40, 0, 4), refuses),
            on_admin("log-of-16-gib", "NUMD FFFFFFFFh", get_log(2, 0, u32::MAX, u32::MAX), refuses),
            on_admin("log-longer-than-its-descriptor", "NUMD beyond the descriptor", get_log(2, 0, 1023, 64), refuses),
            on_admin("log-that-does-not-exist", "LID FEh", get_log(0xfe, 0, 0, 4), refuses),
        ],
    );
    all.extend(under(
        rules::IDENTIFY,
        vec![
            on_admin("identify-shorter-than-its-page", "a descriptor of 64 B", identify(1, 0, 64), refuses),
            on_admin("identify-that-does-not-exist", "CNS FEh", identify(0xfe, 0, 4096), refuses),
            on_admin("identify-beyond-all-namespaces", "namespace FFFFFFFEh", identify(0, u32::MAX - 1, 4096), refuses)
                .barred_unless(has_unknown, "its NN leaves no namespace id that cannot be"),
        ],
    ));
    all.push(on_admin("unknown-admin-command", "opcode C3h", unknown, refuses).under(rules::OPCODE));
    all.extend(under(
        rules::PROPERTY,
        vec![
            on_admin("property-that-does-not-exist", "offset FFFFFFF0h", property(0xffff_fff0, four, 0), refuses),
            on_admin("property-that-is-read-only", "a write of CAP", property(0, PropertySize::Eight, 1), refuses),
            on_admin("shutdown-of-no-kind", "CC.SHN 3", property(0x14, four, 0x0046_c001), refuses)
                .allows(Accepted, "a reserved value in a property has an undefined result (Base 2.0, 1.5)"),
        ],
    ));
    all.push(on_admin("abort-of-nothing", "a command that never was", abort(1, 0x7777), answers).under(rules::ABORT));
    all.push(on_admin("abort-of-itself", "the abort as its own victim", abort(0, ID), answers).under(rules::ABORT));
    all
}

fn abort(queue: u16, id: u16) -> Sqe {
    Command::new(ID, Body::Admin(Admin::Abort { queue, id })).encode()
}

fn io(victim: &Victim, body: Io, data: Sgl) -> Sqe {
    Command { namespace: victim.namespace, data, ..Command::new(ID, Body::Io(body)) }.encode()
}

fn on_queue(name: &'static str, about: &'static str, entry: Sqe, data: Vec<u8>, expectation: Expectation) -> Attack {
    let steps = vec![Step::Entry(1, Box::new(entry), data), Step::Expect(1, expectation)];
    attack(name, about, [queues(PLAIN), steps])
}

fn ranges_of_nothing(victim: &Victim) -> Sqe {
    let manage = DatasetManagement { ranges_minus_one: 0, intent: DatasetUse::DEALLOCATE };
    io(victim, Io::DatasetManagement(manage), Sgl::InCapsule { offset: 0, length: 16 })
}

fn copy(victim: &Victim, ranges: u8, start: u64, length: u32) -> Sqe {
    let (format, flags) = (CopyFormat::Short, AccessFlags::empty());
    let body = Io::Copy(Copy { start, ranges_minus_one: ranges - 1, format, flags });
    io(victim, body, Sgl::InCapsule { offset: 0, length })
}

fn copy_range(start: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    CopyRange { namespace: None, start, blocks_minus_one: 0 }.write(CopyFormat::Short, &mut bytes);
    bytes
}

fn refused_on_queue(name: &'static str, about: &'static str, entry: Sqe, data: Vec<u8>) -> Attack {
    on_queue(name, about, entry, data, Expectation::Refuses(ID))
}

fn block_ranges(victim: &Victim) -> Vec<Attack> {
    let block = victim.block_bytes;
    let (out, far) = ("blocks whose number wraps", "far beyond MDTS");
    let long = Sgl::Transport { length: 65_536u32.saturating_mul(block) };
    let one = read(victim, ID, u64::MAX, 1, Sgl::Transport { length: block });
    let written = write(victim, ID, u64::MAX, 1, Sgl::InCapsule { offset: 0, length: block });
    let zeroes = io(victim, Io::WriteZeroes(access(u64::MAX - 1, 16)), Sgl::NONE);
    let has_limit = victim.capacity.transfer_bytes_max.is_some_and(|most| most < 65_536u32.saturating_mul(block));
    let limited = |attack: Attack| {
        attack.under(rules::TRANSFER_SIZE).barred_unless(has_limit, "it sets no limit below that (MDTS)")
    };
    let all = vec![
        refused_on_queue("read-that-wraps", out, one, Vec::new()),
        refused_on_queue("write-that-wraps", out, written, vec![0x5a; block as usize]),
        refused_on_queue("zeroes-that-wrap", out, zeroes, Vec::new()),
        refused_on_queue("copy-that-wraps", out, copy(victim, 1, 0, 32), copy_range(u64::MAX)),
        refused_on_queue("copy-to-where-nothing-is", out, copy(victim, 1, u64::MAX, 32), copy_range(0)),
    ];
    let huge = [
        refused_on_queue("read-of-65536-blocks", far, read(victim, ID, 0, 65_536, long), Vec::new()),
        refused_on_queue("write-of-65536-blocks", far, write(victim, ID, 0, 65_536, long), Vec::new()),
    ];
    under(rules::BLOCK_RANGE, all).into_iter().chain(huge.map(limited)).collect()
}

fn namespaces(victim: &Victim) -> Vec<Attack> {
    let length = victim.block_bytes;
    let of = |namespace| read(&Victim { namespace, ..*victim }, ID, 0, 1, Sgl::Transport { length });
    let flush = Command { namespace: u32::MAX, ..Command::new(ID, Body::Io(Io::Flush)) }.encode();
    let answers = Expectation::Answers(ID);
    vec![
        on_queue("flush-of-all", "flush of namespace FFFFFFFFh", flush, Vec::new(), answers),
        refused_on_queue("read-of-all-namespaces", "namespace FFFFFFFFh", of(u32::MAX), Vec::new()),
        refused_on_queue("read-of-no-namespace", "namespace 0", of(0), Vec::new()),
        refused_on_queue("read-of-an-unknown-namespace", "namespace FFFFFFF0h", of(0xffff_fff0), Vec::new()),
    ]
}

fn odd_commands(victim: &Victim) -> Vec<Attack> {
    let second = Command { fuse: Fuse::Second, namespace: victim.namespace, ..Command::new(ID, Body::Io(Io::Flush)) };
    let (nothing, fused) = ("a range of no blocks", "a fused command without its first half");
    let unknown = Sqe { opcode: 0x7e, id: ID.into(), ..Sqe::default() };
    let (more, other) = ("more ranges than data", "opcode 06h on an I/O queue");
    let answers = Expectation::Answers(ID);
    vec![
        on_queue("deallocation-of-nothing", nothing, ranges_of_nothing(victim), vec![0; 16], answers)
            .under(rules::COPY),
        refused_on_queue("copy-of-ranges-that-are-not-there", more, copy(victim, 200, 0, 32), copy_range(0))
            .under(rules::COPY),
        refused_on_queue("second-half-alone", fused, second.encode(), Vec::new()).under(rules::FUSED),
        refused_on_queue("unknown-io-command", "opcode 7Eh", unknown, Vec::new()).under(rules::OPCODE),
        refused_on_queue("admin-command-on-a-queue", other, identify(1, 0, 4096), Vec::new()).under(rules::OPCODE),
    ]
}

/// Ids of a flood.
const FLOOD: [u16; 40] = {
    let mut ids = [0; 40];
    let mut at = 0;
    while at < ids.len() {
        ids[at] = 0x300 + at as u16;
        at += 1;
    }
    ids
};

fn floods(victim: &Victim) -> Vec<Attack> {
    let length = asked_bytes(victim);
    let entry = |id| write(victim, id, 0, length / victim.block_bytes, Sgl::Transport { length });
    let writes = FLOOD.iter().map(|id| Step::Entry(1, Box::new(entry(*id)), Vec::new()));
    let event = |id: &u16| Command::new(*id, Body::Admin(Admin::AsynchronousEvent)).encode();
    // 31 entries of the admin queue are the host's to use: as many event requests are legal, and
    // too many for AERL.
    let events = FLOOD[..30].iter().map(|id| Step::Entry(0, Box::new(event(id)), Vec::new()));
    let refused = Step::Expect(1, Expectation::RefusesOneOf(&FLOOD));
    let commands = attack(
        "more-commands-than-the-queue",
        "40 writes on a queue of 16, none of them given its data",
        [queues(PLAIN), writes.collect(), vec![refused, Step::Drop(1), Step::Drop(0)]],
    );
    let requests = attack(
        "more-event-requests-than-allowed",
        "30 event requests at a time",
        [admin(0, PLAIN), events.collect(), vec![Step::Expect(0, Expectation::RefusesOneOf(&FLOOD))]],
    );
    let has_limit = victim.capacity.events_max < 30;
    vec![
        asked(victim, commands).under(rules::QUEUE_SIZE),
        requests.under(rules::EVENTS).barred_unless(has_limit, "it takes that many (AERL)"),
    ]
}
