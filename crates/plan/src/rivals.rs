//! EDM's rivals. Each is a file here, with its table and what a plan has to know of it, and a line
//! of [`rivals!`](crate::rivals): names, schema, plans, printing, costs, and the rigs of `sim`
//! follow from that.

mod cxl;
mod dcqcn;
mod dctcp;
mod fastpass;
mod pfabric;
mod receiver_driven;
mod uncontrolled;

pub use cxl::CxlFile;
pub use dcqcn::DcqcnFile;
pub use dctcp::DctcpFile;
pub use fastpass::FastpassFile;
pub use pfabric::PfabricFile;
pub use receiver_driven::ReceiverDrivenFile;
pub use uncontrolled::{HardwareTcpFile, RawEthernetFile, Rocev2File};

use crate::cost::READ_REQUEST;
use crate::design_file::{DesignFile, DesignName};
use crate::ground::Ground;
use crate::resolve::Resolver;
use base::{Bytes, Operation};
use hardware::EthernetStack;
use transport::config::{CreditBased, Dcqcn, Dctcp, Fastpass, Pfabric, ReceiverDriven};
use transport::cost::{Train, WireCost};
use transport::uncontrolled::Uncontrolled;

/// Shows the macro `$use` every rival: what it is, its name in plans, its key and the name of its
/// function in `sim::rigs::rivals`, its table, and its parameters. The one place that lists them.
#[macro_export]
macro_rules! rivals {
    ($use:ident) => {
        $use! {
            /// DCTCP over ECN-marking output queues (SIGCOMM'10).
            Dctcp dctcp: DctcpFile of Dctcp;
            /// RoCEv2 with DCQCN over priority flow control (SIGCOMM'15).
            Dcqcn dcqcn: DcqcnFile of Dcqcn;
            /// pFabric: tiny priority queues (SIGCOMM'13).
            Pfabric pfabric: PfabricFile of Pfabric;
            /// An idealised receiver-driven protocol.
            ReceiverDriven receiver_driven: ReceiverDrivenFile of ReceiverDriven;
            /// A lossless fabric with hop-by-hop credits, like CXL.
            Cxl cxl: CxlFile of CreditBased;
            /// Fastpass: an arbiter node gives every packet a time slot (SIGCOMM'14).
            Fastpass fastpass: FastpassFile of Fastpass;
            /// Ethernet frames with nothing above the MAC.
            RawEthernet raw_ethernet: RawEthernetFile of Uncontrolled;
            /// RoCEv2 in hardware, without congestion control: for unloaded measurements.
            Rocev2 rocev2: Rocev2File of Uncontrolled;
            /// TCP in hardware, without congestion control: for unloaded measurements.
            HardwareTcp hardware_tcp: HardwareTcpFile of Uncontrolled;
        }
    };
}

/// What a plan has to know of a rival, beside its table.
pub(crate) trait Rival: Default + Clone + Sized {
    /// Its parameters.
    type Config;
    /// The fixed latencies of its usual stack.
    const STACK: EthernetStack;
    /// The packets of a lone one-way message.
    fn train(config: &Self::Config, bytes: Bytes) -> Train;
    /// Payload of its largest packet.
    fn full(config: &Self::Config) -> Bytes;
    /// What a lone request puts on its links; that of its messages unless it has control packets.
    fn wire_cost(config: &Self::Config, operation: Operation, bytes: Bytes) -> WireCost {
        WireCost::of_messages(operation, bytes, READ_REQUEST, |bytes| Self::train(config, bytes))
    }
    /// The given values, and defaults for the rest.
    fn parameters(&self, ground: &Ground) -> Self::Config;
    /// The table that says all of `config`.
    fn table(config: &Self::Config) -> Self;
    /// What depends on other keys, or is by default as large as the rack makes it.
    fn check(_: &mut Resolver<'_>, _: &str, _: &Self::Config) {}
}

macro_rules! registered {
    ($( $(#[$doc:meta])* $rival:ident $key:ident : $file:ident of $config:ident; )*) => {
        /// A rival's protocol with its parameters.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Protocol { $( $(#[$doc])* $rival($config), )* }

        impl Protocol {
            /// The rival `name` with its parameters; `None` for designs that are none.
            pub(crate) fn of(name: DesignName, file: &DesignFile, ground: &Ground) -> Option<Protocol> {
                match name {
                    $( DesignName::$rival => {
                        let table = file.$key.clone().unwrap_or_default();
                        Some(Protocol::$rival(table.parameters(ground)))
                    } )*
                    _ => None,
                }
            }

            /// The name of the design and of its table.
            pub fn name(&self) -> DesignName {
                match self { $( Protocol::$rival(_) => DesignName::$rival, )* }
            }

            /// The table of the design, with all of its parameters.
            pub(crate) fn table(&self) -> DesignFile {
                match self { $( Protocol::$rival(config) => {
                    DesignFile { $key: Some($file::table(config)), ..DesignFile::default() }
                } )* }
            }

            /// What depends on other keys, or is by default as large as the rack makes it.
            pub(crate) fn check(&self, resolver: &mut Resolver<'_>) {
                let table = format!("design.{}", self.name().word());
                match self { $( Protocol::$rival(config) => $file::check(resolver, &table, config), )* }
            }

            /// The packets of a lone one-way message.
            pub(crate) fn train(&self, bytes: Bytes) -> Train {
                match self { $( Protocol::$rival(config) => $file::train(config, bytes), )* }
            }

            /// Bytes of a lone request on each direction of its links.
            pub(crate) fn wire_cost(&self, operation: Operation, bytes: Bytes) -> WireCost {
                match self { $( Protocol::$rival(config) => $file::wire_cost(config, operation, bytes), )* }
            }

            /// Payload of the largest packet.
            pub(crate) fn full(&self) -> Bytes {
                match self { $( Protocol::$rival(config) => $file::full(config), )* }
            }
        }

        impl DesignName {
            /// Every rival of EDM.
            pub const RIVALS: &[DesignName] = &[$( DesignName::$rival ),*];

            /// The fixed latencies of a rival's usual stack.
            pub(crate) fn usual_stack(self) -> Option<EthernetStack> {
                match self {
                    $( DesignName::$rival => Some($file::STACK), )*
                    _ => None,
                }
            }
        }
    };
}
crate::rivals!(registered);
