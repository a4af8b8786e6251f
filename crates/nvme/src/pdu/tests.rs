use super::*;
use crate::{Cqe, Sqe, Status};
use proptest::prelude::*;

const LIMITS: Limits = Limits { in_capsule_max: 8192, data_max: 65_536 };
const DIGESTS: Framing = Framing { digests: Digests { header: true, data: true }, alignment: 0 };

fn request() -> Header {
    let digests = Digests { header: true, data: false };
    Header::InitializeRequest(InitializeRequest { alignment: 0, digests, ready_max_minus_one: 3 })
}

fn response() -> Header {
    let digests = Digests { header: true, data: true };
    Header::InitializeResponse(InitializeResponse { alignment: 1, digests, host_data_max: 0x20000 })
}

fn host_data(length: u32) -> Header {
    Header::HostData(HostData { command: 0x0102, tag: 0x0304, offset: 8, length, is_last: true })
}

fn command(data_length: u32) -> Header {
    Header::Command { entry: Sqe { opcode: 2, ..Sqe::default() }, data_length }
}

/// Digest and padding left aside: bytes of a header with data of zeros.
fn bytes_of(framing: Framing, header: &Header) -> Vec<u8> {
    let mut bytes = Vec::new();
    framing.write(header, &vec![0xa5; header.data_length() as usize], &mut bytes);
    bytes
}

/// A reader whose connection is open.
fn opened(receiver: Receiver, framing: Framing) -> Assembler {
    let mut assembler = Assembler::new(receiver, LIMITS);
    assembler.open(framing);
    assembler
}

fn receiver_of(header: &Header) -> Receiver {
    if header.kind().is_from_host() { Receiver::Controller } else { Receiver::Host }
}

fn error_of(receiver: Receiver, framing: Framing, bytes: &[u8]) -> PduError {
    opened(receiver, framing).next(&mut &bytes[..]).expect_err("the PDU is wrong")
}

fn fatal(error: PduError) -> (FatalStatus, u32) {
    (error.fatal_status(), error.information())
}

/// 3.6.2.2 and 3.6.2.3.
#[test]
fn initialization_takes_128_bytes_with_its_parameters_from_byte_8_on() {
    let bytes = bytes_of(Framing::INITIAL, &request());
    assert_eq!(bytes[..17], [0, 0, 128, 0, 128, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0]);
    assert_eq!(bytes.len(), 128);
    let bytes = bytes_of(Framing::INITIAL, &response());
    assert_eq!(bytes[..17], [1, 0, 128, 0, 128, 0, 0, 0, 0, 0, 1, 3, 0, 0, 2, 0, 0]);
}

/// 3.6.2.4: status at 8, information at 10, unaligned; the offending header behind 24 bytes.
#[test]
fn a_termination_carries_the_offending_header() {
    let error = PduError::HeaderDigest { got: 0x0102_0304, computed: 0 };
    let mut bytes = Vec::new();
    Framing::write_termination(false, &error, &[9; 24], &mut bytes);
    assert_eq!(bytes[..15], [3, 0, 24, 0, 48, 0, 0, 0, 3, 0, 4, 3, 2, 1, 0]);
    assert_eq!(bytes[24..], [9; 24]);
    let mut bytes = Vec::new();
    Framing::write_termination(true, &error, &[9; 200], &mut bytes);
    assert_eq!((bytes[0], bytes[4], bytes.len()), (2, 152, 152), "at most 128 bytes of it");
}

/// 3.6.2.5 and 3.6.2.6.
#[test]
fn capsules_carry_their_entry_behind_the_common_header() {
    let bytes = bytes_of(Framing::INITIAL, &command(0));
    assert_eq!((bytes.len(), &bytes[..9]), (72, &[4, 0, 72, 0, 72, 0, 0, 0, 2][..]));
    let bytes = bytes_of(Framing::INITIAL, &command(512));
    assert_eq!((bytes.len(), &bytes[..8]), (584, &[4, 0, 72, 72, 0x48, 2, 0, 0][..]));
    let completion = Cqe { result: 0, sq_head: 1, sq_id: 2, id: 3, status: Status::SUCCESS };
    let bytes = bytes_of(Framing::INITIAL, &Header::Response(completion));
    assert_eq!(bytes, [5, 0, 24, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 0, 0, 0]);
}

/// 3.6.2.7 to 3.6.2.9.
#[test]
fn data_and_requests_for_them_name_command_tag_offset_and_length() {
    let bytes = bytes_of(Framing::INITIAL, &host_data(4));
    let head = [6, 4, 24, 24, 28, 0, 0, 0, 2, 1, 4, 3, 8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!((&bytes[..24], &bytes[24..]), (&head[..], &[0xa5; 4][..]));
    let data = ControllerData { command: 0x0102, offset: 8, length: 4, is_last: true, is_success: true };
    let bytes = bytes_of(Framing::INITIAL, &Header::ControllerData(data));
    assert_eq!(bytes[..24], [7, 12, 24, 24, 28, 0, 0, 0, 2, 1, 0, 0, 8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
    let ready = ReadyToTransfer { command: 0x0102, tag: 0x0304, offset: 8, length: 4 };
    let bytes = bytes_of(Framing::INITIAL, &Header::ReadyToTransfer(ready));
    assert_eq!(bytes, [9, 0, 24, 0, 24, 0, 0, 0, 2, 1, 4, 3, 8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
}

/// RFC 3720, B.4: CRC32C of 32 zeros is AA 36 91 8A on the wire.
#[test]
fn digests_are_crc32c_behind_header_and_data() {
    let framing = Framing { alignment: 7, ..DIGESTS };
    let header = Header::HostData(HostData { command: 0, tag: 0, offset: 0, length: 32, is_last: false });
    let mut bytes = Vec::new();
    framing.write(&header, &[0; 32], &mut bytes);
    assert_eq!(bytes[..8], [6, 3, 24, 32, 68, 0, 0, 0]);
    assert_eq!(bytes[24..28], crc32c::crc32c(&bytes[..24]).to_le_bytes());
    assert_eq!((&bytes[28..32], &bytes[64..]), (&[0; 4][..], &[0xaa, 0x36, 0x91, 0x8a][..]));
}

#[test]
fn digests_of_header_and_data_make_a_pdu_eight_bytes_longer_and_alignment_pads_it() {
    assert_eq!(Framing::INITIAL.pdu_bytes(&host_data(4096)), 24 + 4096);
    assert_eq!(DIGESTS.pdu_bytes(&host_data(4096)), 24 + 4 + 4096 + 4);
    let aligned = Framing { alignment: 31, ..DIGESTS };
    assert_eq!(aligned.pdu_bytes(&host_data(4096)), 128 + 4096 + 4);
    let most = (0..32).map(|alignment| Framing { alignment, ..DIGESTS }.data_offset(PduKind::Command, 4)).max();
    assert_eq!(most, Some(144), "an alignment of 72 is the worst");
    assert_eq!(aligned.pdu_bytes(&command(0)), 76, "without data no padding and no digest of data");
    assert_eq!(aligned.pdu_bytes(&request()), 128, "none on initialization");
}

fn headers() -> impl Strategy<Value = Header> {
    let numbers = (any::<u16>(), any::<u16>(), any::<u32>(), 0u32..600, any::<bool>(), any::<u64>());
    (0..7, numbers).prop_map(|(kind, (id, tag, offset, length, is_last, result))| match kind {
        0 => Header::Command {
            entry: Sqe { opcode: id as u8, id: tag.into(), namespace: offset.into(), ..Sqe::default() },
            data_length: length,
        },
        1 => Header::Response(Cqe { result, sq_head: id, sq_id: tag, id, status: Status::of_bits(id >> 1) }),
        2 => Header::HostData(HostData { command: id, tag, offset, length, is_last }),
        3 => Header::ControllerData(ControllerData { command: id, offset, length, is_last, is_success: tag & 1 != 0 }),
        4 => Header::ReadyToTransfer(ReadyToTransfer { command: id, tag, offset, length: offset }),
        5 => Header::HostTermination(termination(id, offset, length)),
        _ => Header::ControllerTermination(termination(id, offset, length)),
    })
}

fn termination(id: u16, information: u32, length: u32) -> Termination {
    Termination { status: FatalStatus::ALL[usize::from(id) % 6], information, data_length: length % 129 }
}

fn framings() -> impl Strategy<Value = Framing> {
    (0u8..4, 0u8..32).prop_map(|(bits, alignment)| Framing { digests: Digests::of_bits(bits), alignment })
}

/// It would never be taken at once if the reader looked too closely.
#[test]
fn a_plain_capsule_is_taken_at_once() {
    let mut reader = Reader::new(Receiver::Controller, LIMITS);
    let bytes = [bytes_of(Framing::INITIAL, &command(0)), bytes_of(Framing::INITIAL, &command(8192))].concat();
    assert_eq!(reader.next_capsule(&mut &bytes[..]), None, "initialization comes first");
    reader.open(Framing::INITIAL);
    let mut input = &bytes[..];
    for length in [0, 8192] {
        assert_eq!(reader.next_capsule(&mut input).expect("it is whole").1.len(), length);
    }
}

proptest! {
    #[test]
    fn a_plain_header_is_what_the_general_way_writes(header in headers()) {
        let mut bytes = Vec::new();
        Framing::INITIAL.append_any_header(&header, &mut bytes);
        let is_plain = matches!(header, Header::Response(_) | Header::ControllerData(_));
        prop_assert_eq!(header.plain().map(Vec::from), is_plain.then_some(bytes));
    }

    #[test]
    fn a_pdu_comes_back_whole_wherever_it_is_split(header in headers(), framing in framings(), filler in any::<u8>()) {
        let data: Vec<u8> = (0..header.data_length()).map(|at| filler.wrapping_add(at as u8)).collect();
        let mut bytes = Vec::new();
        framing.write(&header, &data, &mut bytes);
        prop_assert_eq!(bytes.len() as u64, framing.pdu_bytes(&header));
        for split in 0..=bytes.len() {
            let mut assembler = opened(receiver_of(&header), framing);
            let (mut first, mut second) = bytes.split_at(split);
            let early = assembler.next(&mut first).unwrap();
            prop_assert_eq!(early.is_some(), split == bytes.len(), "split at {}", split);
            let pdu = match early { Some(pdu) => pdu, None => assembler.next(&mut second).unwrap().unwrap() };
            prop_assert_eq!(&pdu, &Pdu { header, data: data.clone(), is_sound: true });
            prop_assert!(first.is_empty() && assembler.next(&mut &[][..]).unwrap().is_none());
        }
    }

    /// Whatever is wrong with a capsule, and however much of it has come.
    #[test]
    fn a_capsule_taken_at_once_is_what_its_events_say(
        length in 0u32..40, framing in prop_oneof![Just(Framing::INITIAL), framings()], in_capsule_max in 0u32..64,
        damage in prop::option::of((0usize..8, any::<u8>())), missing in prop_oneof![Just(0usize), 0usize..80], behind in 0usize..8,
    ) {
        let mut bytes = bytes_of(framing, &command(length));
        if let Some((place, value)) = damage {
            bytes[place] = value;
        }
        bytes.truncate(bytes.len().saturating_sub(missing));
        bytes.extend(vec![4; behind]);
        let mut reader = Reader::new(Receiver::Controller, Limits { in_capsule_max, ..LIMITS });
        reader.open(framing);
        let (mut other, mut input, mut rest) = (reader.clone(), &bytes[..], &bytes[..]);
        let Some((entry, data)) = reader.next_capsule(&mut input) else {
            prop_assert_eq!(input.len(), bytes.len());
            prop_assert_eq!(reader.next(&mut input), other.next(&mut rest));
            return Ok(());
        };
        let header = Header::Command { entry: *entry, data_length: data.len() as u32 };
        prop_assert_eq!(other.next(&mut rest), Ok(Some(Event::Header(header))));
        if !data.is_empty() {
            prop_assert_eq!(other.next(&mut rest), Ok(Some(Event::Data { offset: 0, bytes: data })));
        }
        prop_assert_eq!(other.next(&mut rest), Ok(Some(Event::End { is_sound: true })));
        prop_assert_eq!((input, reader.last_header()), (rest, other.last_header()));
        prop_assert_eq!(reader.next(&mut input), other.next(&mut rest));
    }

    #[test]
    fn many_pdus_come_back_in_order_from_segments_of_any_size(
        all in prop::collection::vec(headers(), 1..8), framing in framings(), segment in 1usize..400,
    ) {
        let all: Vec<Header> = all.into_iter().filter(|header| header.kind().is_from_host()).collect();
        let bytes: Vec<u8> = all.iter().flat_map(|header| bytes_of(framing, header)).collect();
        let mut assembler = opened(Receiver::Controller, framing);
        let mut back = Vec::new();
        for mut segment in bytes.chunks(segment) {
            while let Some(pdu) = assembler.next(&mut segment).unwrap() {
                prop_assert!(pdu.is_sound && pdu.data.iter().all(|byte| *byte == 0xa5));
                back.push(pdu.header);
            }
        }
        prop_assert_eq!(back, all);
    }

    #[test]
    fn random_bytes_end_in_data_or_one_error_and_never_in_more_memory_than_the_limit(
        noise in prop::collection::vec(any::<u8>(), 0..400), header in headers(), framing in framings(), place in any::<prop::sample::Index>(), bit in 0..8,
    ) {
        let mut damaged = bytes_of(framing, &header);
        let place = place.index(damaged.len());
        damaged[place] ^= 1u8 << bit;
        for bytes in [&noise, &damaged] {
            let mut assembler = opened(receiver_of(&header), framing);
            let mut rest = &bytes[..];
            loop {
                match assembler.next(&mut rest) {
                    Ok(Some(pdu)) => prop_assert!(pdu.data.capacity() <= LIMITS.data_max as usize),
                    Ok(None) => break prop_assert!(rest.is_empty()),
                    Err(error) => break prop_assert_eq!(assembler.next(&mut &[1u8][..]), Err(error)),
                }
            }
        }
    }

    #[test]
    fn with_digests_no_flipped_bit_goes_unnoticed(header in headers().prop_filter("digests apply", |header| header.kind().has_digests()), place in any::<prop::sample::Index>(), bit in 0..8) {
        let good = bytes_of(DIGESTS, &header);
        let mut bytes = good.clone();
        bytes[place.index(good.len())] ^= 1u8 << bit;
        let read = opened(receiver_of(&header), DIGESTS).next(&mut &bytes[..]);
        let is_noticed = !matches!(read, Ok(Some(Pdu { is_sound: true, .. })));
        prop_assert!(is_noticed, "{:?}", read);
    }
}

#[test]
fn a_header_length_other_than_the_types_is_refused_at_byte_2() {
    for (header, right) in [(command(0), 72), (host_data(4), 24)] {
        for wrong in [0, right - 1, right + 1, 255] {
            let mut bytes = bytes_of(Framing::INITIAL, &header);
            bytes[2] = wrong;
            let error = error_of(Receiver::Controller, Framing::INITIAL, &bytes[..8]);
            assert_eq!(fatal(error), (FatalStatus::InvalidField, 2), "before more than 8 bytes are there");
        }
    }
}

#[test]
fn a_data_offset_inside_the_header_or_off_the_alignment_is_refused_at_byte_3() {
    let framing = Framing { alignment: 1, ..Framing::INITIAL };
    for (offset, is_good) in [(0, false), (16, false), (23, false), (24, true), (28, false), (32, true)] {
        let mut bytes = bytes_of(framing, &host_data(8));
        bytes[3] = offset;
        let length = u32::from(offset.max(24)) + 8;
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        bytes.resize(length as usize, 0);
        let read = opened(Receiver::Controller, framing).next(&mut &bytes[..]);
        match read {
            Ok(pdu) => assert!(is_good && pdu.unwrap().data.len() == 8, "offset {offset}"),
            Err(error) => assert_eq!((is_good, fatal(error)), (false, (FatalStatus::InvalidField, 3)), "{offset}"),
        }
    }
}

#[test]
fn a_length_shorter_than_the_header_is_refused_at_byte_4() {
    for length in [0u32, 7, 8, 71] {
        let mut bytes = bytes_of(Framing::INITIAL, &command(0));
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        let error = error_of(Receiver::Controller, Framing::INITIAL, &bytes[..8]);
        assert_eq!(fatal(error), (FatalStatus::InvalidField, 4));
    }
}

#[test]
fn a_length_that_is_not_that_of_the_data_is_refused_at_the_data_length() {
    for wrong in [-1i32, 1] {
        let mut bytes = bytes_of(Framing::INITIAL, &host_data(8));
        bytes[4] = (i32::from(bytes[4]) + wrong) as u8;
        let error = error_of(Receiver::Controller, Framing::INITIAL, &bytes[..24]);
        assert_eq!(fatal(error), (FatalStatus::InvalidField, 16));
    }
}

#[test]
fn padding_without_data_is_no_pdu() {
    let mut bytes = bytes_of(Framing::INITIAL, &command(4));
    bytes[4] = 72;
    (bytes[3], bytes[4]) = (76, 76);
    let error = error_of(Receiver::Controller, Framing::INITIAL, &bytes);
    assert_eq!(fatal(error), (FatalStatus::InvalidField, 4));
    let digests = Framing { digests: Digests { header: false, data: true }, alignment: 0 };
    let mut bytes = bytes_of(digests, &command(4));
    bytes[4] = 76;
    let error = error_of(Receiver::Controller, digests, &bytes);
    assert_eq!(fatal(error), (FatalStatus::InvalidField, 4), "a digest of nothing");
}

#[test]
fn in_capsule_data_are_taken_up_to_their_limit() {
    let mut good = bytes_of(Framing::INITIAL, &command(8192));
    assert_eq!(opened(Receiver::Controller, Framing::INITIAL).next(&mut &good[..]).unwrap().unwrap().data.len(), 8192);
    good[4] += 1;
    let error = error_of(Receiver::Controller, Framing::INITIAL, &good[..8]);
    assert_eq!(fatal(error), (FatalStatus::InvalidField, 4), "one byte more");
}

#[test]
fn data_above_the_announced_limit_are_refused_as_a_limit_of_h2cdata() {
    let mut good = bytes_of(Framing::INITIAL, &host_data(65_536));
    assert!(opened(Receiver::Controller, Framing::INITIAL).next(&mut &good[..]).unwrap().is_some());
    good[4] += 4;
    good[16] += 4;
    let error = error_of(Receiver::Controller, Framing::INITIAL, &good[..24]);
    assert_eq!(error, PduError::LimitExceeded { what: "data of H2CData", got: 65_540, most: 65_536 });
    assert_eq!(fatal(error), (FatalStatus::LimitExceeded, 0));
}

#[test]
fn four_gibibytes_that_a_header_claims_take_no_memory() {
    let mut bytes = bytes_of(Framing::INITIAL, &host_data(8));
    bytes[4..8].fill(0xff);
    bytes[16..20].copy_from_slice(&(u32::MAX - 24).to_le_bytes());
    let error = error_of(Receiver::Controller, Framing::INITIAL, &bytes[..24]);
    assert_eq!(error.fatal_status(), FatalStatus::LimitExceeded);
    bytes[0] = 7;
    let error = error_of(Receiver::Host, Framing::INITIAL, &bytes[..24]);
    assert_eq!(error.fatal_status(), FatalStatus::OutOfRange);
}

#[test]
fn a_wrong_header_digest_is_told_with_the_digest_that_came() {
    let mut bytes = bytes_of(DIGESTS, &host_data(8));
    bytes[24..28].copy_from_slice(&[1, 2, 3, 4]);
    let mut assembler = opened(Receiver::Controller, DIGESTS);
    let error = assembler.next(&mut &bytes[..]).unwrap_err();
    assert_eq!(fatal(error), (FatalStatus::HeaderDigest, 0x0403_0201));
    assert_eq!(assembler.reader().last_header(), &bytes[..24], "what the termination carries");
}

#[test]
fn a_wrong_data_digest_is_told_at_the_end_and_the_connection_goes_on() {
    let mut bytes = bytes_of(DIGESTS, &host_data(8));
    *bytes.last_mut().unwrap() ^= 1;
    bytes.extend(bytes_of(DIGESTS, &host_data(8)));
    let (mut assembler, mut rest) = (opened(Receiver::Controller, DIGESTS), &bytes[..]);
    assert!(!assembler.next(&mut rest).unwrap().unwrap().is_sound);
    assert!(assembler.next(&mut rest).unwrap().unwrap().is_sound);
}

#[test]
fn digest_flags_have_to_be_as_agreed() {
    for (framing, flags) in [(DIGESTS, 0x06), (DIGESTS, 0x05), (Framing::INITIAL, 0x05), (Framing::INITIAL, 0x06)] {
        let header = host_data(8);
        let mut bytes = Vec::new();
        framing.append_header(&header, &mut bytes);
        bytes[1] = flags;
        if framing.digests.header {
            let digest = crc32c::crc32c(&bytes[..24]).to_le_bytes();
            bytes[24..28].copy_from_slice(&digest);
        }
        let error = error_of(Receiver::Controller, framing, &bytes);
        assert_eq!(fatal(error), (FatalStatus::InvalidField, 1), "{flags:#x} with {framing:?}");
    }
}

#[test]
fn a_type_that_is_unknown_or_goes_the_other_way_is_refused_at_byte_0() {
    for (receiver, codes) in
        [(Receiver::Controller, [1, 3, 5, 7, 8, 9, 10, 255]), (Receiver::Host, [0, 2, 4, 6, 8, 10, 11, 255])]
    {
        for code in codes {
            let error = error_of(receiver, Framing::INITIAL, &[code, 0, 24, 0, 24, 0, 0, 0]);
            assert_eq!(fatal(error), (FatalStatus::InvalidField, 0));
        }
    }
}

#[test]
fn nothing_but_initialization_comes_first_and_it_comes_once() {
    let early = Assembler::new(Receiver::Controller, LIMITS).next(&mut &bytes_of(Framing::INITIAL, &host_data(8))[..]);
    assert_eq!(fatal(early.unwrap_err()), (FatalStatus::Sequence, 0), "data before anything");
    let mut both = bytes_of(Framing::INITIAL, &request());
    both.extend(bytes_of(Framing::INITIAL, &command(0)));
    let (mut assembler, mut rest) = (Assembler::new(Receiver::Controller, LIMITS), &both[..]);
    assert_eq!(assembler.next(&mut rest).unwrap().unwrap().header, request());
    let hasty = assembler.clone().next(&mut { rest });
    assert_eq!(fatal(hasty.unwrap_err()), (FatalStatus::Sequence, 0), "a command before the answer");
    assembler.open(Framing::INITIAL);
    assert_eq!(assembler.next(&mut rest).unwrap().unwrap().header, command(0));
    let again = assembler.next(&mut &bytes_of(Framing::INITIAL, &request())[..]);
    assert_eq!(fatal(again.unwrap_err()), (FatalStatus::Sequence, 0), "a second initialization");
}

#[test]
fn a_termination_is_read_at_any_time_and_carries_at_most_128_bytes() {
    let end = |data_length| {
        Header::ControllerTermination(Termination { status: FatalStatus::Sequence, information: 0, data_length })
    };
    let mut bytes = bytes_of(Framing::INITIAL, &end(128));
    let first = Assembler::new(Receiver::Host, LIMITS).next(&mut &bytes[..]).unwrap().unwrap();
    assert_eq!((first.header, first.data.len()), (end(128), 128));
    assert!(opened(Receiver::Host, DIGESTS).next(&mut &bytes[..]).unwrap().is_some(), "without digests");
    bytes[4] += 1;
    assert_eq!(fatal(error_of(Receiver::Host, Framing::INITIAL, &bytes)), (FatalStatus::InvalidField, 4));
    let mut unknown = bytes_of(Framing::INITIAL, &end(0));
    unknown[8] = 7;
    assert_eq!(fatal(error_of(Receiver::Host, Framing::INITIAL, &unknown)), (FatalStatus::InvalidField, 8));
}

fn first_error(header: &Header, at: usize, value: u8) -> Option<(FatalStatus, u32)> {
    let mut bytes = bytes_of(Framing::INITIAL, header);
    bytes[at] = value;
    Assembler::new(receiver_of(header), LIMITS).next(&mut &bytes[..]).err().map(fatal)
}

#[test]
fn parameters_of_a_connection_are_checked_on_both_sides_of_their_edges() {
    assert_eq!(first_error(&request(), 8, 1), Some((FatalStatus::Unsupported, 8)), "format version");
    for header in [request(), response()] {
        assert_eq!(first_error(&header, 10, 31), None);
        assert_eq!(first_error(&header, 10, 32), Some((FatalStatus::InvalidField, 10)), "alignment");
        assert_eq!(first_error(&header, 11, 3), None);
        assert_eq!(first_error(&header, 11, 4), Some((FatalStatus::InvalidField, 11)), "digests");
    }
    for (most, is_good) in [(0u32, false), (3, false), (4, true), (4095, true), (4100, true)] {
        let Header::InitializeResponse(response) = response() else { unreachable!() };
        let header = Header::InitializeResponse(InitializeResponse { host_data_max: most, ..response });
        let read = Assembler::new(Receiver::Host, LIMITS).next(&mut &bytes_of(Framing::INITIAL, &header)[..]);
        assert_eq!(read.is_ok(), is_good, "MAXH2CDATA {most}");
    }
}

#[test]
fn data_are_handed_on_as_pieces_of_the_input() {
    let bytes = bytes_of(DIGESTS, &host_data(100));
    let mut reader = Reader::new(Receiver::Controller, LIMITS);
    reader.open(DIGESTS);
    let (mut first, mut second) = bytes.split_at(58);
    assert!(matches!(reader.next(&mut first), Ok(Some(Event::Header(_)))));
    assert_eq!(reader.next(&mut first), Ok(Some(Event::Data { offset: 0, bytes: &bytes[28..58] })));
    assert_eq!(reader.next(&mut first), Ok(None));
    assert_eq!(reader.next(&mut second), Ok(Some(Event::Data { offset: 30, bytes: &bytes[58..128] })));
    assert_eq!(reader.next(&mut second), Ok(Some(Event::End { is_sound: true })));
    assert_eq!(reader.last_header(), &bytes[..24], "still there when the data turn out to be wrong");
}
