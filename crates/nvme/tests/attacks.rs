//! The attack suite against our own target.

mod common;

use base::{Span, Time};
use common::*;
use nvme::HostId;
use nvme::attack::{Action, Attack, LINKS, Player, Verdict, Victim, scripts};
use nvme::target::{ConnectionId, Target};

fn victim() -> Victim {
    Victim { subsystem: subsystem(), host: host(9), host_id: HostId([9; 16]), namespace: 1, block_bytes: 512 }
}

/// Plays a script over connections in memory that move `portion` bytes at a time.
fn play(attack: &Attack, portion: usize) -> Verdict {
    let mut target = Target::new(config()).unwrap();
    let mut disks = Disks::default();
    let mut now = Time::secs(1);
    let mut links: [Option<ConnectionId>; LINKS] = [None; LINKS];
    let mut player = Player::new(now, attack, victim(), Span::secs(2));
    while player.verdict().is_none() {
        let mut moved = false;
        while let Some(action) = player.next_action() {
            moved = true;
            match action {
                Action::Open(link) => {
                    links[link] = Some(target.accept(now, PORT).unwrap());
                    player.opened(now, link);
                }
                Action::Drop(link) => {
                    if let Some(connection) = links[link].take() {
                        target.closed(now, connection);
                    }
                }
            }
        }
        for (link, place) in links.iter_mut().enumerate() {
            let Some(connection) = *place else { continue };
            let bytes: Vec<u8> = player.transmit(link).iter().copied().take(portion).collect();
            if !bytes.is_empty() && target.wants_input(connection) {
                let taken = target.receive(now, connection, &bytes);
                player.transmitted(link, taken);
                moved |= taken > 0;
            }
            while let Some(request) = target.next_io() {
                let tag = request.tag;
                target.complete(now, tag, disks.carry_out(request));
            }
            let bytes: Vec<u8> = target.transmit(connection).flatten().copied().take(portion).collect();
            if !bytes.is_empty() {
                player.receive(now, link, &bytes);
                target.transmitted(connection, bytes.len());
                moved = true;
            }
            if target.should_close(connection).is_some() {
                target.closed(now, connection);
                player.closed(now, link);
                *place = None;
                moved = true;
            }
        }
        if !moved {
            now = player.next_wakeup().unwrap();
            player.on_wakeup(now);
        }
    }
    player.verdict().unwrap().clone()
}

#[test]
fn our_target_refuses_every_attack_and_goes_on_serving() {
    let all = scripts(&victim());
    assert!(all.len() > 90, "{} scripts", all.len());
    for portion in [usize::MAX, 7] {
        let failed: Vec<String> = all
            .iter()
            .map(|attack| (attack, play(attack, portion)))
            .filter(|(_, verdict)| !verdict.is_sound())
            .map(|(attack, verdict)| format!("{}: {verdict}", attack.name))
            .collect();
        assert!(failed.is_empty(), "{failed:#?}");
    }
}

#[test]
fn scripts_have_names_of_their_own() {
    let mut names: Vec<&str> = scripts(&victim()).iter().map(|attack| attack.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(names.iter().all(|name| name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')));
}
