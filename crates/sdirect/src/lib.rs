//! S-Direct (Lu, APNet): a NIC that drives NVMe devices itself, over PCIe, without the host's
//! processor or memory.
//!
//! [`Engine`] is the NIC's logic: a queue pair a device, cut-through of data, Copy, MultiCast and
//! add_write, a FIFO with credits for each pair that communicates. It is a [`base::Program`]; what
//! PCIe, devices and the fabric take is the rig's.
//!
//! | what the paper leaves open | here |
//! | --- | --- |
//! | how a FIFO is kept within its bound when PCIe writes cannot be refused | a read is issued only after room for all of it is reserved in the FIFO of each target |
//! | deadlock of copies in a circle | a read never waits for a write once it is issued, and waiting writes get a device's slots before new reads |
//! | fairness | the pairs that a device feeds take turns, a piece each |
//! | failure of one MultiCast target | the others go on; the answer names those that failed |
//! | width and atomicity of add_write | 64 bits, little endian, wrapping; atomic towards other add_writes of the same blocks, not towards plain writes |
//! | lost packets of the fabric | a command has a number; what is repeated is answered from memory, and is not executed twice |

pub mod baseline;
mod client;
mod command;
mod engine;
mod fifo;
mod locks;
mod message;
mod payload;
mod results;
mod ring;
mod slots;

pub use client::{Client, ClientConfig, ClientIn, ClientOut, Task};
pub use command::{ClientId, Command, CommandId, DeviceId, DeviceOperation, Extent, Geometry, Outcome, Refusal};
pub use engine::{Engine, EngineConfig, EngineCounters, EngineError, EngineIn, EngineOut};
pub use message::{HEADER_BYTES, Message, MessageError};
pub use payload::{Payload, Size};
