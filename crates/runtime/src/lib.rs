//! What every live role stands on, whatever it serves.
//!
//! | to | look at |
//! | --- | --- |
//! | keep time | [`clock`], [`timer`] |
//! | wait for events | [`waiting`] |
//! | listen | [`listen`], [`in_use`] |
//! | send and receive many datagrams at a time | [`datagrams`] |
//! | keep data | [`storage`]: memory, nothing, files |
//! | end | [`stopper`] |
//! | write records | [`records`], [`parts`] |
//! | note what comes in and what is done about it | [`journal`]; compared by [`replay`] |
//! | tell work from a wait for a processor | [`processor`] |
//! | serve metrics and health | [`http`] |
//! | read secrets, and encrypt with them | [`secret`], [`cipher`] |
//! | say why it does not work | [`error`] |

pub mod cipher;
pub mod clock;
pub mod clocks;
pub mod datagrams;
pub mod draft;
pub mod error;
pub mod files;
pub mod http;
pub mod in_use;
pub mod journal;
pub mod listen;
pub mod lock;
pub mod metrics;
pub mod moments;
pub mod parts;
pub mod processor;
pub mod records;
pub mod replay;
pub mod room;
pub mod secret;
pub mod stopper;
pub mod storage;
mod syncs;
pub mod throttle;
pub mod timer;
pub mod times;
pub mod waiting;
