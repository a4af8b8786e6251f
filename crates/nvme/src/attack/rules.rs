//! What specifications demand of a target, in our words; `rackweave attack --explain` shows it
//! beside each script.

/// A demand and its clause.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Document and section.
    pub source: &'static str,
    /// The demand.
    pub text: &'static str,
}

macro_rules! rules {
    ($($name:ident = $source:literal, $text:literal;)*) => {
        $(pub(super) const $name: &Rule = &Rule { source: $source, text: $text };)*
    };
}

rules! {
    INITIALIZATION = "NVMe/TCP Transport 1.0, 3.1 and 3.6.2.2",
        "The first PDU of a connection is one ICReq of 128 bytes with format version 0 and an \
         alignment of 31 at most. Anything else is a fatal transport error: the controller \
         ends the connection, by C2HTermReq or without it.";
    HEADER = "NVMe/TCP Transport 1.0, 3.6.1 (PDU-Type, HLEN, PDO, PLEN) and 3.6.2.4 (Invalid PDU Header Field)",
        "The type says how long the header is, PDO where data begin, PLEN where the PDU ends. \
         A header that contradicts itself is a fatal transport error: the controller ends the \
         connection and processes nothing of the PDU.";
    SEQUENCE = "NVMe/TCP Transport 1.0, 3.6.2.4 (PDU Sequence Error)",
        "A PDU of a type that only controllers send, or that may not come now, is a fatal \
         transport error: the controller ends the connection.";
    TERMINATION = "NVMe/TCP Transport 1.0, 3.6.2.4 (H2CTermReq)",
        "Behind H2CTermReq the connection is over: the controller processes nothing more and \
         closes it.";
    HEADER_DIGEST = "NVMe/TCP Transport 1.0, 3.6.1 (HDGSTF) and 3.6.2.4 (Header Digest Error)",
        "Where header digests were agreed on every capsule and data PDU has one; a missing or \
         wrong one is a fatal transport error.";
    DATA_DIGEST = "NVMe/TCP Transport 1.0, 3.6.1 (DDGSTF); NVM Express Base 2.0, 4.2.3.1 (Transient Transport Error)",
        "A wrong data digest is no fatal error: the controller completes the command once \
         with Transient Transport Error, and the queue works on.";
    STREAM = "NVMe/TCP Transport 1.0, 3.3",
        "PDUs are a stream of bytes: how TCP cuts it into segments means nothing.";
    LOSS = "NVMe/TCP Transport 1.0, 3.5",
        "A connection may be lost at any time: the controller frees what it held and serves \
         other hosts on.";
    TRANSFER = "NVMe/TCP Transport 1.0, 3.3.2 and 3.6.2.7 (H2CData)",
        "H2CData name an R2T that is open, and the next bytes of what it asked for. Others \
         are a fatal transport error (Data Transfer Out of Range, Invalid PDU Header Field): \
         no byte of them is stored or taken for another command's.";
    APART = "NVMe/TCP Transport 1.0, 3.3.2; NVM Express Base 2.0, 4.1.2 (Transport SGL Data Block)",
        "A transport descriptor says that the data do not lie in the capsule, however few \
         they are: the controller asks for them by R2T.";
    COMMAND_ID = "NVM Express Base 2.0, 4.2.3.1 (Command ID Conflict)",
        "The id of a command that is outstanding may not be used for another: the controller \
         fails the second.";
    DESCRIPTOR = "NVM Express Base 2.0, 4.1.2 and 4.2.3.1 (SGL Descriptor Type Invalid, Data SGL Length Invalid)",
        "A descriptor of a type that the transport does not know, or of a length that is not \
         the command's, fails the command; nothing is transferred.";
    IN_CAPSULE = "NVM Express Base 2.0, 4.1.2 (subtype Offset) and 4.2.3.1 (SGL Offset Invalid); NVMe/TCP Transport 1.0, 3.6.1 (PLEN)",
        "A descriptor of data in the capsule names bytes of this capsule: its offset and \
         length lie within what PLEN leaves behind PDO. Otherwise the command fails; the \
         controller neither waits for more bytes nor takes others.";
    CONNECT = "NVM Express Base 2.0, 6.3 and Figure 380",
        "Connect names a subsystem that is there, a host that may use it, and for an I/O \
         queue the controller of this very host; its queue has two entries at least. \
         Otherwise it fails (Connect Invalid Parameters, Connect Invalid Host).";
    QUEUE_ORDER = "NVM Express Base 2.0, 3.3.2 and 6.3",
        "A queue is connected once and before any other command; commands but Connect and \
         properties wait for CSTS.RDY.";
    QUEUE_SIZE = "NVM Express Base 2.0, 3.3.2",
        "A host has fewer commands outstanding than a queue has entries. A controller that is \
         sent more fails them or ends the connection: it does not take memory for all that \
         come.";
    EVENTS = "NVM Express Base 2.0, 5.2 (Asynchronous Event Request Limit Exceeded)",
        "Event requests that are outstanding beyond those that AERL allows fail, each by \
         itself.";
    BLOCK_RANGE = "NVM Command Set 1.0, 3.2 (LBA Out of Range)",
        "A range of blocks that leaves the namespace, or whose end wraps, fails the command \
         and changes no block.";
    TRANSFER_SIZE = "NVM Express Base 2.0, Figure 275 (MDTS)",
        "A transfer of more than MDTS fails the command.";
    NAMESPACE = "NVM Express Base 2.0, 3.2.1 and 4.2.3.1 (Invalid Namespace or Format)",
        "A command for a namespace id that is 0, above NN or that of all, where it may not \
         be, fails.";
    OPCODE = "NVM Express Base 2.0, 4.2.3.1 (Invalid Command Opcode, Invalid Field in Command)",
        "An opcode that a queue does not know, or a field that cannot be, fails the command.";
    FUSED = "NVM Express Base 2.0, 3.4.2 (Command Aborted due to Missing Fused Command)",
        "Half of a fused pair without the other fails.";
    LOG = "NVM Express Base 2.0, 5.16 (Get Log Page)",
        "A log that is not there, an offset behind its end and a length beyond the descriptor \
         fail the command; no other memory is shown.";
    IDENTIFY = "NVM Express Base 2.0, 5.17 (Identify)",
        "A structure that is not there fails; a namespace id above NN fails with Invalid \
         Namespace or Format (5.17.2.1).";
    PROPERTY = "NVM Express Base 2.0, 3.1.3 and 6.4 (Property Set)",
        "A property that is not there or cannot be written fails the command.";
    ABORT = "NVM Express Base 2.0, 5.1 (Abort)",
        "Abort succeeds, and says in bit 0 of its result whether anything was aborted.";
    COPY = "NVM Command Set 1.0, 3.2.2 (Copy) and 3.2.3 (Dataset Management)",
        "Ranges are taken from the command's data; more of them than data, or blocks that are \
         not there, fail the command.";
}
