//! Which messages are counted together: those of one kind between the same two nodes.

use super::{Kind, Mirror};
use crate::host::WRITE_ID;
use crate::message::{Body, Grant, Message};

impl Mirror {
    /// Counts a /G/ that came in on `interface` (0 or 1). Returns whether it is the first copy.
    /// Grants for writes and for responses to one peer keep no order between them.
    pub fn accept_grant(&mut self, interface: usize, grant: &Grant) -> bool {
        let is_write = grant.id.0 & WRITE_ID != 0;
        self.accept(interface, grant.target, if is_write { Kind::WriteGrant } else { Kind::ResponseGrant })
    }

    /// The same for a memory message. One from a node to itself is for nobody and no copy: a silent
    /// port ends its message with it (`pcs::multiplex`), on one network alone.
    pub fn accept_message(&mut self, interface: usize, message: &Message) -> bool {
        if message.source == message.target {
            return false;
        }
        let kind = match message.body {
            Body::ReadRequest { .. } | Body::ReadModifyWrite { .. } => Kind::Request,
            Body::WriteRequest { .. } => Kind::Write,
            Body::ReadResponse { .. } => Kind::Response,
        };
        self.accept(interface, message.source, kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::MessageId;
    use base::NodeId;

    const NODE: NodeId = NodeId(3);

    fn grant(target: u32, id: u8) -> Grant {
        Grant { target: NodeId(target), id: MessageId(id), bytes: 64 }
    }

    fn message(source: u32, body: Body) -> Message {
        Message { source: NodeId(source), target: NODE, id: MessageId(1), body }
    }

    #[test]
    fn grants_for_writes_and_for_responses_are_counted_apart() {
        let mut mirror = Mirror::new(3);
        assert!(mirror.accept_grant(0, &grant(1, WRITE_ID)));
        // The networks deliver the two in different orders.
        assert!(mirror.accept_grant(1, &grant(1, 0)));
        assert!(!mirror.accept_grant(1, &grant(1, WRITE_ID)));
        assert!(!mirror.accept_grant(0, &grant(1, 0)));
        assert!(mirror.accept_grant(1, &grant(2, WRITE_ID)), "another peer");
    }

    #[test]
    fn messages_of_one_kind_from_one_peer_are_counted_together() {
        let mut mirror = Mirror::new(3);
        let read = Body::ReadRequest { address: 0, bytes: 64 };
        let modify = Body::ReadModifyWrite { address: 0, modify: crate::Modify::Swap { new: 1 } };
        assert!(mirror.accept_message(0, &message(1, read)));
        assert!(!mirror.accept_message(1, &message(1, modify)), "requests keep their order: it is the same one");
        let write = Body::WriteRequest { address: 0, bytes: 64, last: true };
        let response = Body::ReadResponse { bytes: 64, last: false };
        assert!(mirror.accept_message(1, &message(1, write)));
        assert!(mirror.accept_message(0, &message(1, response)), "kinds overtake each other");
        assert!(!mirror.accept_message(0, &message(1, write)));
        assert!(!mirror.accept_message(1, &message(1, response)));
        assert!(mirror.accept_message(1, &message(2, read)), "another peer");
    }

    #[test]
    fn a_message_from_a_node_to_itself_is_no_copy() {
        let mut mirror = Mirror::new(4);
        let response = Body::ReadResponse { bytes: 0, last: true };
        assert!(!mirror.accept_message(0, &message(NODE.0, response)));
        let answer = Message { target: NodeId(0), ..message(NODE.0, response) };
        assert!(mirror.accept_message(1, &answer), "the node's own answer is the first");
    }

    #[test]
    fn the_target_of_a_grant_is_its_peer_and_so_is_the_source_of_a_message() {
        let mut mirror = Mirror::new(2);
        assert!(mirror.accept_grant(0, &grant(1, 0)));
        assert!(mirror.accept_grant(1, &grant(0, 0)));
        let read = Body::ReadRequest { address: 0, bytes: 64 };
        assert!(mirror.accept_message(0, &message(1, read)));
        assert!(mirror.accept_message(1, &message(0, read)));
    }
}
