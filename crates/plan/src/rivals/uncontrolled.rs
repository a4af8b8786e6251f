//! Frames, RoCEv2 and hardware TCP without congestion control: for unloaded measurements.

use super::Rival;
use crate::ground::Ground;
use crate::quantity::Quantity;
use crate::table::table;
use base::Bytes;
use hardware::EthernetStack;
use transport::cost::Train;
use transport::framing::Framing;
use transport::uncontrolled::{self, Uncontrolled};

table! {
    /// Frames with nothing above the MAC.
    RawEthernetFile => Uncontrolled on _ground of RawEthernet {
        /// Largest payload of a frame (IEEE 802.3: 1500 bytes).
        mtu: Quantity<Bytes> ["1B" to "9KB"] = Bytes::new(1_500),
    }
}

table! {
    /// RoCEv2 without congestion control.
    Rocev2File => Uncontrolled on _ground of Rocev2 {
        /// Largest payload of a packet: the RoCE MTU that fits into a standard frame.
        mtu: Quantity<Bytes> ["1B" to "9KB"] = Bytes::new(1_024),
    }
}

table! {
    /// Hardware TCP without congestion control.
    HardwareTcpFile => Uncontrolled on _ground of HardwareTcp {
        /// Largest payload of a segment: 1500 bytes less the IPv4 and TCP headers.
        mtu: Quantity<Bytes> ["1B" to "9KB"] = Bytes::new(1_460),
    }
}

impl Rival for RawEthernetFile {
    type Config = Uncontrolled;
    const STACK: EthernetStack = EthernetStack::RAW;

    fn train(config: &Uncontrolled, bytes: Bytes) -> Train {
        uncontrolled::train(config, Framing::Raw, bytes)
    }

    fn full(config: &Uncontrolled) -> Bytes {
        config.mtu
    }

    fn parameters(&self, ground: &Ground) -> Uncontrolled {
        self.resolve(ground)
    }

    fn table(config: &Uncontrolled) -> RawEthernetFile {
        RawEthernetFile::of(config)
    }
}

impl Rival for Rocev2File {
    type Config = Uncontrolled;
    const STACK: EthernetStack = EthernetStack::ROCE;

    fn train(config: &Uncontrolled, bytes: Bytes) -> Train {
        uncontrolled::train(config, Framing::Roce, bytes)
    }

    fn full(config: &Uncontrolled) -> Bytes {
        config.mtu
    }

    fn parameters(&self, ground: &Ground) -> Uncontrolled {
        self.resolve(ground)
    }

    fn table(config: &Uncontrolled) -> Rocev2File {
        Rocev2File::of(config)
    }
}

impl Rival for HardwareTcpFile {
    type Config = Uncontrolled;
    const STACK: EthernetStack = EthernetStack::TCP;

    fn train(config: &Uncontrolled, bytes: Bytes) -> Train {
        uncontrolled::train(config, Framing::Tcp, bytes)
    }

    fn full(config: &Uncontrolled) -> Bytes {
        config.mtu
    }

    fn parameters(&self, ground: &Ground) -> Uncontrolled {
        self.resolve(ground)
    }

    fn table(config: &Uncontrolled) -> HardwareTcpFile {
        HardwareTcpFile::of(config)
    }
}
