use super::*;
use proptest::prelude::*;

const PAGE: Page = Page(7);

fn cache(pages: u32, flush_above: u32) -> WriteCache<u64, (u32, Page)> {
    let mut cache = WriteCache::new(CacheConfig { pages, flush_above, scope: CacheScope::Server });
    cache.add_vssd();
    cache
}

#[test]
fn a_page_is_read_from_dram_until_its_flush_has_ended() {
    let mut cache = cache(4, 0);
    cache.put(0, PAGE, Value(1), Span::ZERO);
    assert_eq!(cache.next_flush(), Some(Flush { slot: 0, page: PAGE, latency: Span::ZERO }));
    assert_eq!(cache.begin_flush(0, PAGE), Value(1));
    assert_eq!(cache.read(0, PAGE), Some(Value(1)));
    cache.flushed(0, PAGE);
    assert_eq!((cache.read(0, PAGE), cache.used()), (None, 0));
}

#[test]
fn two_writes_before_the_flush_goes_out_cost_one_flush() {
    let mut cache = cache(4, 0);
    cache.put(0, PAGE, Value(1), Span::ZERO);
    cache.next_flush().expect("a dirty page");
    cache.put(0, PAGE, Value(2), Span::ZERO);
    assert_eq!(cache.next_flush(), None);
    assert_eq!(cache.begin_flush(0, PAGE), Value(2));
    cache.flushed(0, PAGE);
    assert_eq!(cache.used(), 0);
}

#[test]
fn a_page_written_during_its_flush_is_flushed_again() {
    let mut cache = cache(4, 0);
    cache.put(0, PAGE, Value(1), Span::ZERO);
    cache.next_flush().expect("a dirty page");
    cache.begin_flush(0, PAGE);
    cache.put(0, PAGE, Value(2), Span::us(5));
    cache.flushed(0, PAGE);
    assert_eq!(cache.read(0, PAGE), Some(Value(2)));
    assert_eq!(cache.next_flush(), Some(Flush { slot: 0, page: PAGE, latency: Span::us(5) }));
}

#[test]
fn flushing_begins_above_the_mark_and_oldest_first() {
    let mut cache = cache(8, 2);
    cache.put(0, Page(3), Value(1), Span::ZERO);
    cache.put(0, Page(1), Value(2), Span::ZERO);
    assert_eq!(cache.next_flush(), None);
    cache.put(0, Page(2), Value(3), Span::ZERO);
    assert_eq!(cache.next_flush().map(|flush| flush.page), Some(Page(3)));
    assert_eq!(cache.next_flush(), None);
}

#[test]
fn a_full_cache_admits_only_pages_that_it_holds() {
    let mut cache = cache(1, 0);
    cache.put(0, PAGE, Value(1), Span::ZERO);
    assert!(cache.admits(0, PAGE));
    assert!(!cache.admits(0, Page(8)));
}

#[test]
fn nobody_overtakes_a_write_that_waits_for_room() {
    let mut cache = cache(1, 0);
    cache.put(0, PAGE, Value(1), Span::ZERO);
    cache.wait(9, (0, Page(8)));
    cache.next_flush().expect("a waiting write wants the room");
    cache.begin_flush(0, PAGE);
    cache.flushed(0, PAGE);
    assert!(!cache.admits(0, Page(9)), "page 8 was first");
    assert_eq!(cache.next_admitted(|write| *write), Some((0, Page(8))));
    assert!(cache.admits(0, Page(9)));
}

#[test]
fn waiting_writes_go_by_key_and_then_by_arrival() {
    let mut cache = cache(1, 0);
    for (key, page) in [(5, 0), (3, 1), (5, 2), (3, 3)] {
        cache.wait(key, (0, Page(page)));
    }
    let order: Vec<u64> = std::iter::from_fn(|| cache.next_admitted(|write| *write).map(|(_, page)| page.0)).collect();
    assert_eq!(order, [1, 3, 0, 2]);
}

#[test]
fn one_vssd_may_use_the_whole_cache_of_a_server() {
    let mut cache = cache(2, 0);
    let second = cache.add_vssd();
    cache.put(second, Page(0), Value(1), Span::ZERO);
    cache.put(second, Page(1), Value(2), Span::ZERO);
    assert!(!cache.admits(0, Page(0)));
    assert_eq!(cache.read(0, Page(0)), None, "equal page numbers of two vSSDs are two pages");
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Write(u64),
    Queue,
    Begin,
    End,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![(0_u64..6).prop_map(Step::Write), Just(Step::Queue), Just(Step::Begin), Just(Step::End)]
}

proptest! {
    /// The test keeps its own flash: whatever the order of writes and flushes, DRAM over flash is
    /// the last write.
    #[test]
    fn dram_over_flash_is_always_the_last_write(steps in prop::collection::vec(step(), 1..300), above in 0_u32..3) {
        let mut cache = cache(3, above);
        let (mut flash, mut last) = ([0_u64; 6], [0_u64; 6]);
        let (mut queued, mut going) = (VecDeque::new(), VecDeque::new());
        let mut stamp = 0;
        for step in steps {
            match step {
                Step::Write(page) if cache.admits(0, Page(page)) => {
                    stamp += 1;
                    last[page as usize] = stamp;
                    cache.put(0, Page(page), Value(stamp), Span::ZERO);
                }
                Step::Write(_) => prop_assert_eq!(cache.used(), 3),
                Step::Queue => queued.extend(cache.next_flush().map(|flush| flush.page)),
                Step::Begin => going.extend(queued.pop_front().map(|page| (page, cache.begin_flush(0, page)))),
                Step::End => {
                    if let Some((page, value)) = going.pop_front() {
                        flash[page.0 as usize] = value.0;
                        cache.flushed(0, page);
                    }
                }
            }
            for page in 0..6_usize {
                let read = cache.read(0, Page(page as u64)).map_or(flash[page], |value| value.0);
                prop_assert_eq!(read, last[page]);
            }
            prop_assert!(cache.used() <= 3);
        }
    }
}
