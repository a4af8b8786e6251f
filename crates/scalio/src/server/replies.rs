//! Which requests were carried out, so that what is repeated is answered and not done twice.

use crate::{ClientId, RequestResult};
use std::collections::BTreeMap;

/// What is known of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Known<V> {
    /// Nothing: it is new.
    New,
    /// It is open, or the client has settled it: no action.
    Ignore,
    /// It was carried out with this result.
    Answered(RequestResult<V>),
}

/// Of one client.
#[derive(Clone, Debug)]
struct Window<V> {
    /// Numbers below are settled.
    settled: u64,
    /// `None`: open.
    requests: BTreeMap<u64, Option<RequestResult<V>>>,
}

/// Of all clients. Each keeps its open requests, and reports which it has settled.
#[derive(Clone, Debug)]
pub(super) struct Replies<V> {
    clients: BTreeMap<ClientId, Window<V>>,
}

impl<V> Default for Replies<V> {
    fn default() -> Replies<V> {
        Replies { clients: BTreeMap::new() }
    }
}

impl<V: Clone> Replies<V> {
    /// A request has arrived; a new one is open from now on.
    pub fn came(&mut self, client: ClientId, number: u64, settled: u64) -> Known<V> {
        let window = self.clients.entry(client).or_insert_with(|| Window { settled: 0, requests: BTreeMap::new() });
        if settled > window.settled {
            window.settled = settled;
            window.requests = window.requests.split_off(&settled);
        }
        if number < window.settled {
            return Known::Ignore;
        }
        match window.requests.get(&number) {
            Some(None) => Known::Ignore,
            Some(Some(result)) => Known::Answered(result.clone()),
            None => {
                window.requests.insert(number, None);
                Known::New
            }
        }
    }

    /// Nothing will come of a client any more.
    pub fn forget(&mut self, client: ClientId) {
        self.clients.remove(&client);
    }

    /// A request was carried out.
    pub fn answered(&mut self, client: ClientId, number: u64, result: &RequestResult<V>) {
        if let Some(slot) = self.clients.get_mut(&client).and_then(|window| window.requests.get_mut(&number)) {
            *slot = Some(result.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const CLIENT: ClientId = ClientId(7);

    #[test]
    fn a_repeated_request_is_answered_from_memory_and_one_on_its_way_is_let_alone() {
        let mut replies = Replies::<Vec<u8>>::default();
        assert_eq!(replies.came(CLIENT, 5, 5), Known::New);
        assert_eq!(replies.came(CLIENT, 5, 5), Known::Ignore);
        replies.answered(CLIENT, 5, &RequestResult::Stored);
        assert_eq!(replies.came(CLIENT, 5, 5), Known::Answered(RequestResult::Stored));
    }

    #[test]
    fn what_a_client_has_settled_is_forgotten_and_a_late_copy_is_not_carried_out_again() {
        let mut replies = Replies::<Vec<u8>>::default();
        assert_eq!(replies.came(CLIENT, 0, 0), Known::New);
        replies.answered(CLIENT, 0, &RequestResult::Stored);
        assert_eq!(replies.came(CLIENT, 1, 1), Known::New);
        assert_eq!(replies.came(CLIENT, 0, 0), Known::Ignore);
        assert_eq!(replies.clients[&CLIENT].requests.len(), 1);
    }

    #[test]
    fn one_who_has_the_name_of_a_client_that_is_gone_begins_anew() {
        let mut replies = Replies::<Vec<u8>>::default();
        assert_eq!(replies.came(CLIENT, 7, 7), Known::New);
        replies.forget(CLIENT);
        replies.answered(CLIENT, 7, &RequestResult::Stored);
        assert_eq!(replies.came(CLIENT, 0, 0), Known::New);
        assert_eq!(replies.came(CLIENT, 7, 0), Known::New);
    }
}
