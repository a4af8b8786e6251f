//! Pages that rot in the files of servers, running or not: hosts see what they wrote, or an error
//! where no server has it.

mod common;

use base::Span;
use common::{Live, PAGE, assert_replays, noted, page_of, read, wait_until, write};
use plan::rack::Rack;
use runtime::storage::Storage as _;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use volumes::{Start, Volume, storage};

const PAGES: u64 = 64;
/// Pages that a server's file ends behind, once it is cut short.
const LEFT: u64 = 20;

/// Two servers with a volume, which read every page once in `scrub`.
fn rack(folder: &Path, scrub: Span) -> Rack {
    let mut rack = noted(folder, 2, PAGES);
    rack.storage.iter_mut().for_each(|server| server.scrub = scrub);
    rack
}

const NEVER: Span = Span::secs(86_400);

fn file(folder: &Path, server: usize) -> PathBuf {
    folder.join(format!("s{server}/vssd-{server}.pages"))
}

/// Flips a bit of a page in the file of a server.
fn flip(folder: &Path, server: usize, page: u64) {
    let file = OpenOptions::new().read(true).write(true).open(file(folder, server)).expect("a file");
    let (at, mut byte) = (page * PAGE as u64 + 77, [0]);
    file.read_exact_at(&mut byte, at).expect("a page");
    file.write_all_at(&[byte[0] ^ 16], at).expect("a disk");
}

/// Each page rots at one of the servers.
fn flip_all(folder: &Path) {
    (0..PAGES).for_each(|page| flip(folder, page as usize % 2, page));
}

fn cut(folder: &Path, server: usize) {
    let file = OpenOptions::new().write(true).open(file(folder, server)).expect("a file");
    file.set_len(LEFT * PAGE as u64 + 9).expect("a disk");
}

fn all(version: u64) -> Vec<u8> {
    (0..PAGES).flat_map(|page| page_of(page, version)).collect()
}

/// Waits until both files have all pages.
fn wait_until_kept(folder: &Path, version: u64) {
    let wanted = all(version);
    let is_kept = |server| fs::read(file(folder, server)).is_ok_and(|kept| kept == wanted);
    wait_until("both files have all pages", || is_kept(0) && is_kept(1));
}

fn assert_all_read(volume: &Volume, version: u64) {
    (0..PAGES).for_each(|page| assert_eq!(read(volume, page), page_of(page, version), "page {page}"));
}

fn assert_lost(volume: &Volume, page: u64) {
    let error = volume.read(page * PAGE as u64, &mut vec![0; PAGE]).expect_err("nobody has it").to_string();
    assert!(error.contains("no replica has a sound copy"), "{error}");
}

fn filled(live: &Live) {
    live.wait_until_whole();
    live.volume().write(0, &all(1)).expect("it is written");
    wait_until_kept(&live.rack.folder, 1);
}

/// Ends all roles. Each makes the same decisions again.
fn end(live: Live) {
    let rack = live.rack.clone();
    drop(live);
    assert!(assert_replays(&rack) > PAGES);
}

/// The volume has more pages than servers keep in memory after they are on flash.
#[test]
fn hosts_read_what_they_wrote_from_a_server_whose_pages_have_rotted() {
    let folder = tempfile::tempdir().expect("a folder");
    let many = 5_000;
    let live = Live::up(noted(folder.path(), 2, many));
    live.wait_until_whole();
    let volume = live.volume();
    for first in (0..many).step_by(250) {
        let pages: Vec<u8> = (first..first + 250).flat_map(|page| page_of(page, 1)).collect();
        volume.write(first * PAGE as u64, &pages).expect("it is written");
    }
    let begins_as_written = |server| {
        let kept = fs::read(file(folder.path(), server)).expect("a file");
        kept[..PAGES as usize * PAGE] == all(1)
    };
    wait_until("the first pages are on flash", || begins_as_written(0) && begins_as_written(1));
    flip_all(folder.path());
    assert_all_read(&volume, 1);
    drop(volume);
    end(live);
}

#[test]
fn a_scrub_repairs_what_nobody_reads_and_a_file_that_is_cut_short() {
    let folder = tempfile::tempdir().expect("a folder");
    let live = Live::up(rack(folder.path(), Span::secs(1)));
    filled(&live);
    flip_all(folder.path());
    wait_until_kept(folder.path(), 1);
    cut(folder.path(), 1);
    wait_until_kept(folder.path(), 1);
    assert_all_read(&live.volume(), 1);
    end(live);
}

#[test]
fn what_rots_while_all_servers_are_away_comes_from_whichever_has_it() {
    for is_cut in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let rack = rack(folder.path(), NEVER);
        let live = Live::up(rack.clone());
        filled(&live);
        drop(live);
        if is_cut {
            cut(folder.path(), 0)
        } else {
            flip_all(folder.path())
        }
        let live = Live::up(rack);
        assert_all_read(&live.volume(), 1);
        live.wait_until_whole();
        assert_all_read(&live.volume(), 1);
        end(live);
    }
}

#[test]
fn a_page_that_no_server_has_is_an_error_until_it_is_written_also_after_a_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let rack = rack(folder.path(), NEVER);
    let live = Live::up(rack.clone());
    filled(&live);
    (0..2).for_each(|server| flip(folder.path(), server, 5));
    assert_lost(&live.volume(), 5);
    drop(live);
    let live = Live::up(rack);
    live.wait_until_whole();
    let volume = live.volume();
    for _ in 0..3 {
        assert_lost(&volume, 5);
        assert_eq!(read(&volume, 6), page_of(6, 1), "others are there");
    }
    write(&volume, 5, 2);
    (0..3).for_each(|_| assert_eq!(read(&volume, 5), page_of(5, 2)));
    drop(volume);
    end(live);
}

#[test]
fn a_server_with_files_of_an_earlier_version_does_not_start_and_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let rack = rack(folder.path(), NEVER);
    fs::create_dir_all(folder.path().join("s0")).expect("a folder");
    fs::write(folder.path().join("s0/vssd-0.values"), vec![0; 8 * PAGES as usize]).expect("a disk");
    let error = storage::start(&rack, 0, Start::Thread).err().expect("it is refused").to_string();
    assert!(error.contains("of an earlier version, which kept no checksums"), "{error}");
}
