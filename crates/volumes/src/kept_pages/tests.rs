use super::*;
use proptest::prelude::*;
use runtime::room::hole_bytes;
use std::fs;
use std::path::PathBuf;

const ID: VssdId = VssdId(3);
const PAGES: u64 = 300;
const BYTES: usize = PAGE_BYTES as usize;

fn data_of(value: u64) -> Vec<u8> {
    (0..BYTES).map(|byte| (value * 7 + byte as u64 / 64) as u8).collect()
}

struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    fn new() -> Disk {
        Disk { folder: tempfile::tempdir().expect("a folder") }
    }
    fn path(&self, what: &str) -> PathBuf {
        self.folder.path().join(format!("vssd-3.{what}"))
    }
    fn open(&self) -> KeptPages {
        KeptPages::open(self.folder.path(), ID, PAGES, false).expect("it opens")
    }
    fn flip(&self, what: &str, byte: usize) {
        let mut bytes = fs::read(self.path(what)).expect("a file");
        bytes[byte] ^= 4;
        fs::write(self.path(what), bytes).expect("a disk");
    }
    fn cut(&self, what: &str, length: usize) {
        let file = OpenOptions::new().write(true).open(self.path(what)).expect("a file");
        file.set_len(length as u64).expect("a disk");
    }
}

fn write(pages: &mut KeptPages, page: u64, value: u64) {
    pages.write(Page(page), Value(value), &data_of(value)).expect("a disk");
}

fn read(pages: &mut KeptPages, page: u64) -> Content {
    let mut data = vec![1; BYTES];
    let content = pages.read(Page(page), &mut data).expect("it can be read");
    if let Content::Sound(Value(value)) = content {
        assert_eq!(data, if value == 0 { vec![0; BYTES] } else { data_of(value) });
    }
    content
}

fn sound(value: u64) -> Content {
    Content::Sound(Value(value))
}

fn rotten(value: u64) -> Content {
    Content::Rotten(Some(Value(value)))
}

#[test]
fn what_is_written_is_read_also_after_a_start_and_what_was_not_is_zeros() {
    let disk = Disk::new();
    for start in 0..3 {
        let mut pages = disk.open();
        assert_eq!(read(&mut pages, 5), sound(start));
        write(&mut pages, 5, start + 1);
        assert_eq!([5, 6, 299].map(|page| read(&mut pages, page)), [sound(start + 1), sound(0), sound(0)]);
        pages.check_note(Page(5)).expect("a disk");
        pages.check_note(Page(6)).expect("a disk");
    }
    let mut pages = disk.open();
    pages.write(Page(5), Value(0), &[0; BYTES]).expect("a disk");
    assert_eq!(read(&mut disk.open(), 5), sound(0));
}

#[test]
fn a_page_that_nobody_has_is_rotten_until_it_is_written() {
    let disk = Disk::new();
    let mut pages = disk.open();
    write(&mut pages, 5, 1);
    pages.write(Page(5), Value::ROTTEN, &[0; BYTES]).expect("a disk");
    assert_eq!([read(&mut pages, 5), read(&mut disk.open(), 5)], [Content::Rotten(None); 2]);
    pages.check_note(Page(5)).expect("a disk");
    write(&mut pages, 5, 2);
    assert_eq!([read(&mut pages, 5), read(&mut disk.open(), 5)], [sound(2); 2]);
}

#[test]
fn files_that_are_cut_short_have_rotten_pages_where_they_had_data() {
    let disk = Disk::new();
    let mut pages = disk.open();
    (0..PAGES - 1).for_each(|page| write(&mut pages, page, page + 1));
    disk.cut("pages", 100 * BYTES + 1);
    assert_eq!(
        [99, 100, 200, 299].map(|page| read(&mut pages, page)),
        [sound(100), rotten(101), rotten(201), sound(0)]
    );
    write(&mut pages, 200, 9);
    assert_eq!([150, 200].map(|page| read(&mut pages, page)), [rotten(151), sound(9)], "a hole is in between");
    let mut pages = disk.open();
    assert_eq!([99, 100, 298].map(|page| read(&mut pages, page)), [sound(100), rotten(101), rotten(299)]);
    // Also those that were never written, as nobody knows that.
    disk.cut("notes", 99 * 32 + 31);
    let mut pages = disk.open();
    let unknown = Content::Rotten(None);
    assert_eq!([98, 99, 298, 299].map(|page| read(&mut pages, page)), [sound(99), unknown, unknown, unknown]);
    write(&mut pages, 299, 8);
    assert_eq!(read(&mut disk.open(), 299), sound(8));
}

#[test]
fn a_writer_that_is_killed_between_the_note_and_the_page_leaves_the_page_as_it_was() {
    let disk = Disk::new();
    let mut pages = disk.open();
    (1..=2).for_each(|value| write(&mut pages, 5, value));
    write(&mut pages, 6, 3);
    let put = |page: usize, data: &[u8]| {
        let file = OpenOptions::new().write(true).open(disk.path("pages")).expect("a file");
        file.write_all_at(data, (page * BYTES) as u64).expect("a disk");
    };
    put(5, &data_of(1));
    put(6, &[0; BYTES]);
    put(7, &data_of(4));
    assert_eq!([5, 6].map(|page| read(&mut pages, page)), [rotten(2), rotten(3)], "this process has written them");
    let mut pages = disk.open();
    let found = [5, 6, 7].map(|page| read(&mut pages, page));
    assert_eq!(found, [sound(1), rotten(3), sound(0)], "a disk that has lost a page reads zeros");
    pages.check_note(Page(5)).expect("a disk");
    put(5, &data_of(4));
    assert_eq!([read(&mut pages, 5), read(&mut disk.open(), 5)], [rotten(1); 2]);
}

#[test]
fn a_note_that_rots_beside_a_server_that_runs_is_written_anew_by_a_scrub() {
    let disk = Disk::new();
    let mut pages = disk.open();
    write(&mut pages, 5, 1);
    for page in [5, 6] {
        disk.flip("notes", page as usize * 32 + 3);
        assert_eq!(read(&mut disk.open(), page), Content::Rotten(None));
        pages.check_note(Page(page)).expect("a disk");
        assert_eq!(read(&mut disk.open(), page), if page == 5 { sound(1) } else { sound(0) });
    }
}

/// The memory of this process as a file: nothing is at the addresses of these pages, and the kernel
/// says EIO, as it does for a device that fails.
#[test]
fn a_page_that_the_system_cannot_read_is_rotten() {
    let disk = Disk::new();
    write(&mut disk.open(), 5, 1);
    fs::remove_file(disk.path("pages")).expect("a disk");
    std::os::unix::fs::symlink("/proc/self/mem", disk.path("pages")).expect("a disk");
    assert_eq!([5, 6].map(|page| read(&mut disk.open(), page)), [rotten(1), sound(0)]);
}

#[test]
fn a_reserved_replica_has_its_room_before_it_is_written() {
    let disk = Disk::new();
    let holes = || hole_bytes(PAGES * BYTES as u64, &fs::metadata(disk.path("pages")).expect("it is there"));
    disk.open();
    assert!(holes() > 0);
    let mut pages = KeptPages::open(disk.folder.path(), ID, PAGES, true).expect("there is room");
    assert_eq!(holes(), 0);
    assert_eq!(read(&mut pages, 5), sound(0));
}

#[test]
fn files_of_an_earlier_version_are_refused_by_name_and_stay() {
    for kept in ["pages", "values"] {
        let disk = Disk::new();
        fs::write(disk.path(kept), [7; BYTES]).expect("a disk");
        let error = KeptPages::open(disk.folder.path(), ID, PAGES, false).err().expect("it is refused").to_string();
        assert!(error.contains("vssd-3.notes: it is of an earlier version"), "{error}");
        assert_eq!(fs::read(disk.path(kept)).expect("a file"), [7; BYTES]);
    }
    let disk = Disk::new();
    fs::write(disk.path("notes.new"), "what a killed process left").expect("a disk");
    assert_eq!(read(&mut disk.open(), 5), sound(0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whichever bit flips: a page is what was written last, or rotten, and only where it flipped.
    #[test]
    fn no_flipped_bit_is_read_as_data(
        writes in prop::collection::vec((0..PAGES, 1_u64..1_000), 1..40),
        in_notes in any::<bool>(),
        place in any::<prop::sample::Index>(),
        is_open in any::<bool>(),
    ) {
        let disk = Disk::new();
        let mut pages = disk.open();
        let mut last = std::collections::BTreeMap::new();
        for (page, value) in writes {
            write(&mut pages, page, value);
            last.insert(page, value);
        }
        let (what, bytes) = if in_notes { ("notes", 32) } else { ("pages", BYTES) };
        // In the page or note of one that was written.
        let written: Vec<u64> = last.keys().copied().collect();
        let flipped = written[place.index(written.len())];
        disk.flip(what, flipped as usize * bytes + place.index(bytes));
        let mut other = disk.open();
        let pages = if is_open { &mut pages } else { &mut other };
        for (page, value) in last {
            let content = read(pages, page);
            let is_hit = page == flipped && !(in_notes && is_open);
            // The last four bytes of a note are not used.
            let may_rot = is_hit && !(in_notes && place.index(bytes) >= 28);
            let expected = if !may_rot { sound(value) } else if in_notes { Content::Rotten(None) } else { rotten(value) };
            prop_assert_eq!(content, expected, "page {}", page);
        }
    }
}
