//! A running target that is given another configuration: it becomes what that says, or stays as it
//! is.

use crate::common::*;
use nvme::feature::Event;
use nvme::initiator::{HostEvent, InitiatorConfig, Payload};
use nvme::log::{AnaState, ChangedNamespaces, TransportSecurity};
use nvme::target::*;
use nvme::*;

fn connected() -> World {
    World::connected(config(), initiator(1))
}

fn other() -> Nqn {
    Nqn::new("nqn.2014-08.org.rackweave:other").unwrap()
}

/// The standard configuration with a second subsystem.
fn two() -> TargetConfig {
    let mut both = config();
    let second = SubsystemConfig { name: other(), namespaces: vec![namespace(7, 64)], ..both.subsystems[0].clone() };
    both.subsystems.push(second);
    both
}

fn read() -> Body {
    Body::Io(Io::Read(Access { start: 0, blocks_minus_one: 0, flags: AccessFlags::empty() }))
}

fn reads(world: &mut World, guest: usize, namespace: u32) -> Status {
    world.run(guest, 1, namespace, read(), Payload::ToHost(512)).0
}

fn reconfigure(world: &mut World, config: TargetConfig) -> Vec<String> {
    let changes = world.target.reconfigure(world.now, config).unwrap();
    world.settle();
    changes.iter().map(ToString::to_string).collect()
}

fn is_out(world: &World, guest: usize) -> bool {
    matches!(world.guests[guest].events.last(), Some(HostEvent::Failed(_)))
}

#[test]
fn a_subsystem_that_is_taken_out_ends_its_hosts_and_comes_back_with_its_new_hosts_alone() {
    let mut world = World::connected(two(), initiator(1));
    let second = world.join(InitiatorConfig { subsystem: other(), ..initiator(2) }, PORT);
    let mut alone = two();
    alone.subsystems.remove(0);
    assert_eq!(reconfigure(&mut world, alone), [format!("subsystem {} removed", subsystem())]);
    assert!(is_out(&world, 0));
    assert_eq!(reads(&mut world, second, 7), Status::SUCCESS, "the other one moves up and stays itself");
    let again = world.join(initiator(1), PORT);
    assert!(is_out(&world, again), "what is gone is not served");
    let mut back = two();
    back.subsystems[0].hosts = HostAccess::Listed([host(3)].into());
    assert_eq!(reconfigure(&mut world, back), [format!("subsystem {} added", subsystem())]);
    let old = world.join(initiator(1), PORT);
    assert!(is_out(&world, old), "the old list holds no more");
    let new = world.join(initiator(3), PORT);
    assert_eq!(reads(&mut world, new, 1), Status::SUCCESS);
}

#[test]
fn a_port_that_is_taken_away_ends_those_who_came_by_it_and_no_others() {
    let mut world = connected();
    let second = world.join(initiator(2), OTHER_PORT);
    let mut one = config();
    one.ports.remove(0);
    one.subsystems[0].ports = [OTHER_PORT].into();
    let told = reconfigure(&mut world, one);
    assert_eq!(told, ["port 127.0.0.1:4420 removed".into(), format!("ports of {} changed", subsystem())]);
    assert!(is_out(&world, 0));
    assert_eq!(reads(&mut world, second, 1), Status::SUCCESS);
    assert!(world.target.accept(world.now, PORT).is_err());
    assert_eq!(reconfigure(&mut world, config())[0], "port 127.0.0.1:4420 added");
    let back = world.join(initiator(1), PORT);
    assert_eq!(reads(&mut world, back, 1), Status::SUCCESS);
}

#[test]
fn a_port_that_has_to_be_secured_from_now_on_ends_who_is_not() {
    let mut world = connected();
    let second = world.join(initiator(2), OTHER_PORT);
    let silent = world.target.accept(world.now, PORT).unwrap();
    let mut secured = config();
    secured.ports[0].security = TransportSecurity::Tls13;
    reconfigure(&mut world, secured);
    assert!(is_out(&world, 0));
    assert_eq!(world.target.should_close(silent), Some(CloseReason::NotAllowed));
    assert_eq!(reads(&mut world, second, 1), Status::SUCCESS);
}

#[test]
fn the_end_of_a_key_ends_what_it_has_secured() {
    let mut world = connected();
    let by_key = world.target.accept(world.now, PORT).unwrap();
    world.target.secured(world.now, by_key, Channel { host: host(2), subsystem: subsystem() });
    world.target.end_channels(world.now, CloseReason::Replaced, |channel| channel.host == host(2));
    assert_eq!(world.target.should_close(by_key), None);
    world.target.end_channels(world.now, CloseReason::Replaced, |_| false);
    assert_eq!(world.target.should_close(by_key), Some(CloseReason::Replaced));
    assert_eq!(reads(&mut world, 0, 1), Status::SUCCESS, "who has none is not meant");
}

#[test]
fn namespaces_come_go_grow_and_are_replaced_and_hosts_that_stay_are_told() {
    let mut world = connected();
    let mut new = config();
    let replaced = NamespaceConfig { backend: BackendId(9), uuid: [9; 16], ..namespace(2, 64) };
    new.subsystems[0].namespaces = vec![namespace(1, 2048), replaced, namespace(5, 8)];
    let lost = PathState { port: OTHER_PORT, group: 1, state: AnaState::Inaccessible };
    new.subsystems[0].paths = vec![lost];
    let of = |what: &str| what.replace("NAME", subsystem().as_str());
    let told = reconfigure(&mut world, new.clone());
    assert_eq!(
        told,
        [
            of("namespace 1 of NAME resized to 2048 blocks"),
            of("namespace 2 of NAME replaced"),
            of("namespace 5 of NAME added"),
            of("path by port 2 to group 1 of NAME: Inaccessible"),
        ]
    );
    assert_eq!(reads(&mut world, 0, 5), Status::SUCCESS);
    let page = Body::Admin(Admin::GetLogPage(GetLogPage::part(4, 0, 1023)));
    // Of the one that was replaced the host is told once more when it has read of all.
    for changed in [vec![1, 2, 5], vec![2]] {
        let told = |event: &HostEvent| *event == HostEvent::Notice(Event::NAMESPACE_CHANGED);
        assert_eq!(world.guests[0].events.iter().filter(|event| told(event)).count(), 1);
        world.guests[0].events.clear();
        let log = world.run(0, 0, 0, page, Payload::ToHost(4096)).2;
        world.settle();
        assert_eq!(ChangedNamespaces::decode(&log).unwrap().0, changed);
    }
    assert!(!world.guests[0].events.contains(&HostEvent::Notice(Event::NAMESPACE_CHANGED)));
    assert!(reconfigure(&mut world, new).is_empty(), "it is that already");
    let mut fewer = config();
    fewer.subsystems[0].namespaces.remove(0);
    let told = reconfigure(&mut world, fewer);
    assert_eq!(told.last().map(String::as_str), Some(&*of("path by port 2 to group 1 of NAME: Optimized")));
    assert_eq!(reads(&mut world, 0, 1), Status::INVALID_NAMESPACE.without_retry());
}

#[test]
fn what_cannot_be_changes_nothing() {
    let mut world = connected();
    let mut wrong = two();
    wrong.subsystems[0].hosts = HostAccess::Listed([host(9)].into());
    wrong.subsystems[1].namespaces.push(NamespaceConfig { uuid: namespace(7, 1).uuid, ..namespace(8, 64) });
    let error = world.target.reconfigure(world.now, wrong).unwrap_err().to_string();
    assert!(error.starts_with("the UUID 0707") && error.ends_with("of namespace 8 is there twice"), "{error}");
    world.settle();
    assert_eq!(reads(&mut world, 0, 1), Status::SUCCESS);
    let third = world.join(InitiatorConfig { subsystem: other(), ..initiator(2) }, PORT);
    assert!(is_out(&world, third));
}
