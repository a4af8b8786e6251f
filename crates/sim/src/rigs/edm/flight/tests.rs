use super::*;
use crate::rigs::edm::flights::Flights;
use proptest::prelude::*;

const SOURCE: NodeId = NodeId(511);
const TARGET: NodeId = NodeId(3);

fn any_modify() -> impl Strategy<Value = Modify> {
    prop_oneof![
        any::<(u64, u64)>().prop_map(|(expected, new)| Modify::CompareAndSwap { expected, new }),
        any::<u64>().prop_map(|addend| Modify::FetchAndAdd { addend }),
        any::<u64>().prop_map(|new| Modify::Swap { new }),
    ]
}

fn any_message() -> impl Strategy<Value = Message> {
    let body = prop_oneof![
        any::<(u64, u32)>().prop_map(|(address, bytes)| Body::ReadRequest { address, bytes }),
        any::<(u64, u32, bool)>().prop_map(|(address, bytes, last)| Body::WriteRequest { address, bytes, last }),
        any::<(u32, bool)>().prop_map(|(bytes, last)| Body::ReadResponse { bytes, last }),
        (any::<u64>(), any_modify()).prop_map(|(address, modify)| Body::ReadModifyWrite { address, modify }),
    ];
    let id = any::<u8>().prop_map(MessageId);
    (id, body).prop_map(|(id, body)| Message { source: SOURCE, target: TARGET, id, body })
}

proptest! {
    #[test]
    fn messages_come_out_as_they_went_in(
        messages in proptest::collection::vec((any_message(), any::<u32>(), 0usize..2), 1..20),
    ) {
        let mut flights = Flights::default();
        // Twice, so that slots are used again.
        for _ in 0..2 {
            let sent = |(message, tag, plane): &(Message, u32, usize)| {
                Flight::sent(*plane, SOURCE, &Wire::Memory(*message), 0, Tag(*tag))
            };
            let numbers: Vec<u32> = messages.iter().map(|message| flights.add(sent(message))).collect();
            for ((message, tag, plane), number) in messages.iter().zip(numbers) {
                flights.turn_to_target(number);
                let flight = flights.remove(number);
                prop_assert_eq!(flight.message(), *message);
                prop_assert_eq!(flight.blocks(), encoded::message_blocks(&message.body));
                prop_assert_eq!((flight.tag(), flight.plane(), flight.node()), (Tag(*tag), *plane, TARGET));
            }
        }
    }

    #[test]
    fn requests_keep_their_stage(message in any_message(), plane in 0usize..2) {
        let is_at = |flight: Flight, stage| matches!(flight.kind(), Kind::Request(at, _) if at == stage);
        prop_assume!(matches!(message.body, Body::ReadRequest { .. } | Body::ReadModifyWrite { .. }));
        let sent = Flight::sent(plane, SOURCE, &Wire::Memory(message), 0, Tag(1));
        let (granted, reading) = (Flight::request(plane, &message, Tag(1)), Flight::reading(&message, Tag(1)));
        prop_assert!(is_at(sent, Stage::Sent) && is_at(granted, Stage::Granted) && is_at(reading, Stage::Reading));
        prop_assert_eq!((sent.message(), granted.message(), reading.message()), (message, message, message));
        prop_assert_eq!((sent.node(), granted.node(), reading.node()), (SOURCE, TARGET, TARGET));
    }

    #[test]
    fn chunks_keep_their_words(bytes: u32, last: bool, word: u64) {
        let message = Message { source: SOURCE, target: TARGET, id: MessageId(1), body: Body::ReadResponse { bytes, last } };
        let flight = Flight::sent(0, SOURCE, &Wire::Memory(message), word, Tag(0));
        prop_assert_eq!((flight.word(), flight.is_data(), flight.node()), (word, true, SOURCE));
    }

    #[test]
    fn control_comes_out_as_it_went_in(id: u8, bytes: u32, batch: u8, plane in 0usize..2) {
        let id = MessageId(id);
        let said = Notification { target: TARGET, id, bytes, batch };
        let flight = Flight::sent(plane, SOURCE, &Wire::Notification(said), 0, Tag(7));
        prop_assert_eq!((flight.said(), flight.node(), flight.plane()), (said, SOURCE, plane));
        let grant = Grant { target: TARGET, id, bytes: bytes as u16 };
        let flight = Flight::granting(plane, SOURCE, grant, Tag(7));
        prop_assert_eq!((flight.grant(), flight.node(), flight.plane()), (grant, SOURCE, plane));
    }
}
