//! Inputs and decisions of programs as bytes of a journal, and back. Of values there are the
//! lengths alone: a program decides by nothing else of them.

use crate::frames::Welcome;
use base::{Span, Time};
use bytes::Bytes;
use runtime::journal::{Broken, Source, put};
use scalio::Source as Answerer;
use scalio::layout::Seal;
use scalio::{
    Block, BlockHeader, ClientId, ClientIn, ClientOut, Condition, Content, Corrupt, Expiry, Extent, FlashAnswer,
    FlashOperation, Item, KEY_BYTES_MAX, Kept, KeptZone, Key, Left, Length, Lifetime, LimitError, MemoryAnswer,
    MemoryOperation, NAME_BYTES_MAX, Name, Operation, Outcome, Page, Payload, Protocol, Record, RecordPlace, Refusal,
    Reply, Request, RequestBody, RequestId, RequestResult, Segment, SegmentPointer, Sequence, ServerConfig, ServerIn,
    ServerOut, Slot, SlotWord, Version, ZoneKind,
};
use std::sync::Arc;

/// Appends itself to an entry.
pub trait Put {
    /// Appends it.
    fn put(&self, out: &mut Vec<u8>);
}

/// Is read of an entry.
pub trait Take: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// When the entry ends too early, or says what no role writes.
    fn take(source: &mut Source) -> Result<Self, Broken>;
}

fn wrong<T>(what: &str, got: impl std::fmt::Display) -> Result<T, Broken> {
    Err(Broken::Wrong(format!("{what} {got}")))
}

/// Numbers in as many bytes as they need.
macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Put for $type {
            fn put(&self, out: &mut Vec<u8>) {
                put((*self).into(), out);
            }
        }
        impl Take for $type {
            fn take(source: &mut Source) -> Result<$type, Broken> {
                let number = source.number()?;
                <$type>::try_from(number).or_else(|_| wrong("a number", number))
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64);

/// What is made of one other thing.
macro_rules! made_of {
    ($($type:ident($inner:ty) = $from:expr, $to:expr;)*) => {$(
        impl Put for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let inner: $inner = ($to)(self);
                inner.put(out);
            }
        }
        impl Take for $type {
            fn take(source: &mut Source) -> Result<$type, Broken> {
                <$inner>::take(source).map($from)
            }
        }
    )*};
}

made_of! {
    Time(u64) = Time::ps, |time: &Time| time.as_ps();
    Span(u64) = Span::ps, |span: &Span| span.as_ps();
    ClientId(u16) = ClientId, |client: &ClientId| client.0;
    Expiry(u32) = Expiry, |expiry: &Expiry| expiry.0;
    Lifetime(u64) = Lifetime, |lifetime: &Lifetime| lifetime.0;
    Length(u32) = Length, |length: &Length| length.0;
    RecordPlace(u64) = RecordPlace, |place: &RecordPlace| place.0;
    Sequence(u64) = Sequence, |sequence: &Sequence| sequence.0;
    Version(u32) = Version, |version: &Version| version.0;
}

/// Structs field by field, and enums with a number for each variant.
macro_rules! noted {
    ($(struct $name:ident $(<$value:ident>)? { $($field:ident),* })*) => {$(
        impl $(<$value: Put>)? Put for $name $(<$value>)? {
            fn put(&self, out: &mut Vec<u8>) {
                let $name { $($field),* } = self;
                $($field.put(out);)*
            }
        }
        impl $(<$value: Take>)? Take for $name $(<$value>)? {
            fn take(source: &mut Source) -> Result<Self, Broken> {
                $(let $field = Take::take(source)?;)*
                Ok($name { $($field),* })
            }
        }
    )*};
    ($(enum $name:ident $(<$value:ident>)? {
        $($code:literal $variant:ident $({ $($field:ident),* })? $(($inner:ident))?,)*
    })*) => {$(
        impl $(<$value: Put>)? Put for $name $(<$value>)? {
            fn put(&self, out: &mut Vec<u8>) {
                match self {$(
                    $name::$variant $({ $($field),* })? $(($inner))? => {
                        out.push($code);
                        $($($field.put(out);)*)?
                        $($inner.put(out);)?
                    }
                )*}
            }
        }
        impl $(<$value: Take>)? Take for $name $(<$value>)? {
            fn take(source: &mut Source) -> Result<Self, Broken> {
                match source.byte()? {
                    $($code => {
                        $($(let $field = Take::take(source)?;)*)?
                        $(let $inner = Take::take(source)?;)?
                        Ok($name::$variant $({ $($field),* })? $(($inner))?)
                    })*
                    code => wrong(stringify!($name), code),
                }
            }
        }
    )*};
}

noted! {
    struct Block<V> { header, slots }
    struct BlockHeader { epoch, segment }
    struct Extent { sector, sectors }
    struct Item { key, record, sequence, value_bytes, expiry, is_fresh }
    struct Kept { epoch, sequence, pointers, zones, open }
    struct KeptZone { is_free, is_kept, live, records }
    struct Page<V> { epoch, records }
    struct Payload<V> { version, key, value, expiry }
    struct Record<V> { key, sequence, expiry, value }
    struct Reply<V> { client, number, epoch, result }
    struct Request<V> { client, number, settled, epoch, body }
    struct Segment { block, epoch, sequence, settled, items }
    struct SegmentPointer { extent, tag }
    struct ServerConfig {
        device, devices, blocks, protocol, group_updates, group_wait, groups_max, zones, zone_sectors, reserve_zones,
        compact_below, volatile_cache, value_bytes_max, start_second, hand_over
    }
    struct Slot<V> { word, last_use, payload }
}

noted! {
    enum ClientIn<V> {
        0 Issue { ticket, operation },
        1 Describe { ticket, key },
        2 Names { ticket, block },
        3 Memory { request, answer },
        4 Flash { request, answer },
        5 Reply(reply),
    }
    enum ClientOut<V> {
        0 Memory { request, block, operation },
        1 Flash { request, device, operation },
        2 Send { device, request },
        3 Done { ticket, outcome, source },
    }
    enum Condition { 0 Always, 1 Absent, 2 Present, }
    enum Content<V> { 0 Segment(segment), 1 Page(page), }
    enum Corrupt {
        0 Short { got, needed },
        1 Magic { got, expected },
        2 Checksum { got, expected },
        3 Field { field, got },
        4 Foreign { what },
    }
    enum FlashAnswer<V> {
        0 Segment(segment),
        1 Record(record),
        2 Head(name),
        3 Kind(kind),
        4 Scanned(found),
        5 Listed(found),
        6 Done,
        7 Failed,
    }
    enum FlashOperation<V> {
        0 ReadSegment { block, pointer },
        1 ReadRecord { item },
        2 ReadHead { item },
        3 Write { extent, content },
        4 Flush,
        5 ReadKind { sector },
        6 Scan { extent },
        7 List { extent },
        8 Trim { extent },
    }
    enum Left { 0 Ever, 1 For(lifetime), }
    enum LimitError { 0 Key { got }, 1 Value { got, most }, 2 TimeToLive { got }, }
    enum MemoryAnswer<V> { 0 Block(block), 1 Checked { block, word }, 2 Found(word), 3 Done, 4 Unreachable, }
    enum MemoryOperation<V> {
        0 ReadBlock,
        1 Check { slot },
        2 Swap { slot, expected, new },
        3 WritePayload { slot, payload },
        4 Touch { slot, at },
        5 StoreFlags { slot, occupied, complete, lease },
        6 Publish { segment },
        7 Close,
        8 Reset { header },
    }
    enum Operation<V> { 0 Get { key }, 1 Update(body), }
    enum Outcome<V> {
        0 Value(value),
        1 Described(left),
        2 Names(names),
        3 Stored,
        4 Unmet,
        5 Deleted { found },
        6 Taken { found },
        7 Differs { found },
        8 Refused(refusal),
        9 Unknown,
        10 Unavailable,
    }
    enum Protocol { 0 Linearizable, 1 Paper { lease }, }
    enum Refusal {
        0 Limit(limit),
        1 Full { live, capacity },
        2 SegmentFull { most },
        3 Corrupt,
        4 Device,
        5 WrongEpoch { got, current },
        6 NoOperation,
        7 Recovering,
        8 UsedUp,
    }
    enum RequestBody<V> {
        0 Put { key, value, time_to_live, condition },
        1 Delete { key },
        2 Take { key },
        3 Expire { key, time_to_live },
        4 CompareAndSwap { key, expected, new },
    }
    enum RequestResult<V> {
        0 Stored,
        1 Unmet,
        2 Deleted { found },
        3 Taken { found },
        4 Differs { found },
        5 Refused(refusal),
    }
    enum ServerIn<V> { 0 Request(request), 1 Memory { request, answer }, 2 Flash { request, answer }, }
    enum ServerOut<V> { 0 Memory { request, block, operation }, 1 Flash { request, operation }, 2 Reply(reply), }
    enum ZoneKind { 0 Segments, 1 Records, }
    enum Answerer { 0 Cache, 1 Flash, 2 Server, }
}

/// Only its length.
impl Put for Bytes {
    fn put(&self, out: &mut Vec<u8>) {
        put(self.len() as u64, out);
    }
}

impl Put for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push((*self).into());
    }
}

impl Take for bool {
    fn take(source: &mut Source) -> Result<bool, Broken> {
        match source.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            byte => wrong("a flag", byte),
        }
    }
}

impl Put for usize {
    fn put(&self, out: &mut Vec<u8>) {
        put(*self as u64, out);
    }
}

impl Take for usize {
    fn take(source: &mut Source) -> Result<usize, Broken> {
        u32::take(source).map(|number| number as usize)
    }
}

/// Texts of errors, by which nothing is decided.
impl Put for &'static str {
    fn put(&self, _: &mut Vec<u8>) {}
}

impl Take for &'static str {
    fn take(_: &mut Source) -> Result<&'static str, Broken> {
        Ok("part")
    }
}

/// All of its bits are in use.
impl Put for SlotWord {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes());
    }
}

impl Take for SlotWord {
    fn take(source: &mut Source) -> Result<SlotWord, Broken> {
        let bytes = source.take(size_of::<u64>() as u64, size_of::<u64>() as u64)?;
        let word = bytes.first_chunk().ok_or(Broken::Cut)?;
        Ok(SlotWord(u64::from_le_bytes(*word)))
    }
}

/// A serial number and a place.
impl Put for RequestId {
    fn put(&self, out: &mut Vec<u8>) {
        put(self.0 >> 32, out);
        put(self.0 & u64::from(u32::MAX), out);
    }
}

impl Take for RequestId {
    fn take(source: &mut Source) -> Result<RequestId, Broken> {
        let (serial, place) = (u32::take(source)?, u32::take(source)?);
        Ok(RequestId(u64::from(serial) << 32 | u64::from(place)))
    }
}

impl Put for Key {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(self.as_bytes().len() as u8);
        out.extend_from_slice(self.as_bytes());
    }
}

impl Take for Key {
    fn take(source: &mut Source) -> Result<Key, Broken> {
        let length = source.byte()?;
        let bytes = source.take(length.into(), KEY_BYTES_MAX as u64)?;
        Key::new(bytes).map_err(|error| Broken::Wrong(error.to_string()))
    }
}

impl Put for Name {
    fn put(&self, out: &mut Vec<u8>) {
        put(self.as_bytes().len() as u64, out);
        out.extend_from_slice(self.as_bytes());
    }
}

impl Take for Name {
    fn take(source: &mut Source) -> Result<Name, Broken> {
        let length = source.number()?;
        let bytes = Bytes::copy_from_slice(source.take(length, NAME_BYTES_MAX as u64)?);
        Name::new(bytes).map_err(|error| Broken::Wrong(error.to_string()))
    }
}

/// Without the seal, which a reader of the journal need not know.
impl Put for Welcome {
    fn put(&self, out: &mut Vec<u8>) {
        let Welcome { client, epoch, blocks, slots, value_bytes_max, seal: _, start_second, now, protocol, shares } =
            self;
        (client, (epoch, blocks)).put(out);
        (slots, (value_bytes_max, start_second)).put(out);
        (now, (protocol, shares)).put(out);
    }
}

impl Take for Welcome {
    fn take(source: &mut Source) -> Result<Welcome, Broken> {
        let (client, (epoch, blocks)) = Take::take(source)?;
        let (slots, (value_bytes_max, start_second)) = Take::take(source)?;
        let (now, (protocol, shares)) = Take::take(source)?;
        let seal = Seal(0);
        Ok(Welcome { client, epoch, blocks, slots, value_bytes_max, seal, start_second, now, protocol, shares })
    }
}

impl Put for () {
    fn put(&self, _: &mut Vec<u8>) {}
}

impl<T: Put> Put for &T {
    fn put(&self, out: &mut Vec<u8>) {
        (*self).put(out);
    }
}

impl<A: Put, B: Put> Put for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
}

impl<A: Take, B: Take> Take for (A, B) {
    fn take(source: &mut Source) -> Result<(A, B), Broken> {
        Ok((A::take(source)?, B::take(source)?))
    }
}

impl<T: Put> Put for Arc<T> {
    fn put(&self, out: &mut Vec<u8>) {
        T::put(self, out);
    }
}

impl<T: Take> Take for Arc<T> {
    fn take(source: &mut Source) -> Result<Arc<T>, Broken> {
        T::take(source).map(Arc::new)
    }
}

impl<T: Put> Put for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        self.iter().for_each(|inner| inner.put(out));
    }
}

impl<T: Take> Take for Option<T> {
    fn take(source: &mut Source) -> Result<Option<T>, Broken> {
        bool::take(source)?.then(|| T::take(source)).transpose()
    }
}

impl<T: Put> Put for Result<T, Corrupt> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_ok().put(out);
        match self {
            Ok(inner) => inner.put(out),
            Err(error) => error.put(out),
        }
    }
}

impl<T: Take> Take for Result<T, Corrupt> {
    fn take(source: &mut Source) -> Result<Result<T, Corrupt>, Broken> {
        Ok(if bool::take(source)? { Ok(T::take(source)?) } else { Err(Corrupt::take(source)?) })
    }
}

impl<T: Put> Put for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        put(self.len() as u64, out);
        self.iter().for_each(|inner| inner.put(out));
    }
}

/// Memory grows with what is there, not with what is said.
impl<T: Take> Take for Vec<T> {
    fn take(source: &mut Source) -> Result<Vec<T>, Broken> {
        let length = source.number()?;
        let mut all = Vec::new();
        for _ in 0..length {
            all.push(T::take(source)?);
        }
        Ok(all)
    }
}

impl<T: Put, const COUNT: usize> Put for [T; COUNT] {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|inner| inner.put(out));
    }
}

impl<T: Take> Take for [T; 2] {
    fn take(source: &mut Source) -> Result<[T; 2], Broken> {
        Ok([T::take(source)?, T::take(source)?])
    }
}
