//! What libfabric 1.x and 2.x agree on with its callers: the parts that this crate uses.
//!
//! The names and the order of fields are those of `rdma/*.h` of libfabric 1.17, without their
//! prefix. libfabric adds fields at the end only. A test compares sizes and places with the headers
//! of the machine, where these are installed.

use libc::{c_char, c_int, c_void, iovec, size_t, ssize_t};

/// The interface that is asked for, 1.9: it has all that is used here.
pub const VERSION: u32 = 1 << 16 | 9;

pub const RMA: u64 = 1 << 2;
pub const ATOMIC: u64 = 1 << 4;
pub const READ: u64 = 1 << 8;
pub const WRITE: u64 = 1 << 9;
pub const RECV: u64 = 1 << 10;
pub const TRANSMIT: u64 = 1 << 11;
pub const REMOTE_READ: u64 = 1 << 12;
pub const REMOTE_WRITE: u64 = 1 << 13;
pub const COMPLETION: u64 = 1 << 24;
pub const DELIVERY_COMPLETE: u64 = 1 << 28;
pub const SOURCE: u64 = 1 << 57;

pub const MR_LOCAL: c_int = 1 << 2;
pub const MR_VIRT_ADDR: c_int = 1 << 4;
pub const MR_ALLOCATED: c_int = 1 << 5;
pub const MR_PROV_KEY: c_int = 1 << 6;

pub const ORDER_RAR: u64 = 1 << 0;
pub const ORDER_RMA_RAR: u64 = 1 << 32;
pub const ORDER_ATOMIC_RAR: u64 = 1 << 36;

pub const EP_RDM: c_int = 3;
pub const CQ_FORMAT_CONTEXT: c_int = 1;
pub const WAIT_FD: c_int = 3;
pub const GETWAIT: c_int = 5;
pub const ENABLE: c_int = 6;
pub const UINT64: c_int = 7;
pub const ATOMIC_READ: c_int = 10;
pub const CSWAP: c_int = 12;
pub const MSWAP: c_int = 18;

pub const EAGAIN: c_int = 11;
pub const EAVAIL: c_int = 259;

/// Any object of libfabric.
#[repr(C)]
pub struct Fid {
    pub fclass: size_t,
    pub context: *mut c_void,
    pub ops: *const Ops,
}

#[repr(C)]
pub struct Ops {
    pub size: size_t,
    pub close: unsafe extern "C" fn(*mut Fid) -> c_int,
    pub bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
    pub control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
}

#[repr(C)]
pub struct Info {
    pub next: *mut Info,
    pub caps: u64,
    pub mode: u64,
    pub addr_format: u32,
    pub src_addrlen: size_t,
    pub dest_addrlen: size_t,
    pub src_addr: *mut c_void,
    pub dest_addr: *mut c_void,
    pub handle: *mut Fid,
    pub tx_attr: *mut TxAttr,
    pub rx_attr: *mut c_void,
    pub ep_attr: *mut EpAttr,
    pub domain_attr: *mut DomainAttr,
    pub fabric_attr: *mut FabricAttr,
}

#[repr(C)]
pub struct TxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub inject_size: size_t,
    pub size: size_t,
}

#[repr(C)]
pub struct EpAttr {
    pub kind: c_int,
}

#[repr(C)]
pub struct DomainAttr {
    pub domain: *mut c_void,
    pub name: *mut c_char,
    pub threading: c_int,
    pub control_progress: c_int,
    pub data_progress: c_int,
    pub resource_mgmt: c_int,
    pub av_type: c_int,
    pub mr_mode: c_int,
    pub mr_key_size: size_t,
}

#[repr(C)]
pub struct FabricAttr {
    pub fabric: *mut c_void,
    pub name: *mut c_char,
    pub prov_name: *mut c_char,
}

#[repr(C)]
pub struct Fabric {
    pub fid: Fid,
    pub ops: *const OpsFabric,
}

#[repr(C)]
pub struct OpsFabric {
    pub size: size_t,
    pub domain: unsafe extern "C" fn(*mut Fabric, *mut Info, *mut *mut Domain, *mut c_void) -> c_int,
    pub passive_ep: *const c_void,
    pub eq_open: *const c_void,
    pub wait_open: *const c_void,
    pub trywait: unsafe extern "C" fn(*mut Fabric, *mut *mut Fid, c_int) -> c_int,
}

#[repr(C)]
pub struct Domain {
    pub fid: Fid,
    pub ops: *const OpsDomain,
    pub mr: *const OpsMr,
}

#[repr(C)]
pub struct OpsDomain {
    pub size: size_t,
    pub av_open: unsafe extern "C" fn(*mut Domain, *mut AvAttr, *mut *mut Av, *mut c_void) -> c_int,
    pub cq_open: unsafe extern "C" fn(*mut Domain, *mut CqAttr, *mut *mut Cq, *mut c_void) -> c_int,
    pub endpoint: unsafe extern "C" fn(*mut Domain, *mut Info, *mut *mut Ep, *mut c_void) -> c_int,
}

#[repr(C)]
pub struct OpsMr {
    pub size: size_t,
    pub reg:
        unsafe extern "C" fn(*mut Fid, *const c_void, size_t, u64, u64, u64, u64, *mut *mut Mr, *mut c_void) -> c_int,
}

#[repr(C)]
pub struct Mr {
    pub fid: Fid,
    pub mem_desc: *mut c_void,
    pub key: u64,
}

#[repr(C)]
pub struct AvAttr {
    pub kind: c_int,
    pub rx_ctx_bits: c_int,
    pub count: size_t,
    pub ep_per_node: size_t,
    pub name: *const c_char,
    pub map_addr: *mut c_void,
    pub flags: u64,
}

#[repr(C)]
pub struct Av {
    pub fid: Fid,
    pub ops: *const OpsAv,
}

#[repr(C)]
pub struct OpsAv {
    pub size: size_t,
    pub insert: unsafe extern "C" fn(*mut Av, *const c_void, size_t, *mut u64, u64, *mut c_void) -> c_int,
}

#[repr(C)]
pub struct CqAttr {
    pub size: size_t,
    pub flags: u64,
    pub format: c_int,
    pub wait_obj: c_int,
    pub signaling_vector: c_int,
    pub wait_cond: c_int,
    pub wait_set: *mut c_void,
}

#[repr(C)]
pub struct Cq {
    pub fid: Fid,
    pub ops: *const OpsCq,
}

#[repr(C)]
pub struct OpsCq {
    pub size: size_t,
    pub read: unsafe extern "C" fn(*mut Cq, *mut c_void, size_t) -> ssize_t,
    pub readfrom: *const c_void,
    pub readerr: unsafe extern "C" fn(*mut Cq, *mut CqErrEntry, u64) -> ssize_t,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CqEntry {
    pub op_context: *mut c_void,
}

#[repr(C)]
pub struct CqErrEntry {
    pub op_context: *mut c_void,
    pub flags: u64,
    pub len: size_t,
    pub buf: *mut c_void,
    pub data: u64,
    pub tag: u64,
    pub olen: size_t,
    pub err: c_int,
    pub prov_errno: c_int,
    pub err_data: *mut c_void,
    pub err_data_size: size_t,
    /// Room for what later versions add.
    pub later: [u64; 8],
}

#[repr(C)]
pub struct Ep {
    pub fid: Fid,
    pub ops: *const c_void,
    pub cm: *const OpsCm,
    pub msg: *const c_void,
    pub rma: *const OpsRma,
    pub tagged: *const c_void,
    pub atomic: *const OpsAtomic,
}

#[repr(C)]
pub struct OpsCm {
    pub size: size_t,
    pub setname: *const c_void,
    pub getname: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut size_t) -> c_int,
}

#[repr(C)]
pub struct OpsRma {
    pub size: size_t,
    pub read: unsafe extern "C" fn(*mut Ep, *mut c_void, size_t, *mut c_void, u64, u64, u64, *mut c_void) -> ssize_t,
    pub readv: *const c_void,
    pub readmsg: *const c_void,
    pub write: *const c_void,
    pub writev: *const c_void,
    pub writemsg: unsafe extern "C" fn(*mut Ep, *const MsgRma, u64) -> ssize_t,
}

#[repr(C)]
pub struct RmaIov {
    pub addr: u64,
    pub len: size_t,
    pub key: u64,
}

#[repr(C)]
pub struct MsgRma {
    pub msg_iov: *const iovec,
    pub desc: *mut *mut c_void,
    pub iov_count: size_t,
    pub addr: u64,
    pub rma_iov: *const RmaIov,
    pub rma_iov_count: size_t,
    pub context: *mut c_void,
    pub data: u64,
}

#[repr(C)]
pub struct OpsAtomic {
    pub size: size_t,
    pub write: *const c_void,
    pub writev: *const c_void,
    pub writemsg: *const c_void,
    pub inject: *const c_void,
    pub readwrite: unsafe extern "C" fn(
        *mut Ep,
        *const c_void,
        size_t,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        u64,
        u64,
        u64,
        c_int,
        c_int,
        *mut c_void,
    ) -> ssize_t,
    pub readwritev: *const c_void,
    pub readwritemsg: *const c_void,
    pub compwrite: unsafe extern "C" fn(
        *mut Ep,
        *const c_void,
        size_t,
        *mut c_void,
        *const c_void,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        u64,
        u64,
        u64,
        c_int,
        c_int,
        *mut c_void,
    ) -> ssize_t,
    pub compwritev: *const c_void,
    pub compwritemsg: *const c_void,
    pub writevalid: *const c_void,
    pub readwritevalid: unsafe extern "C" fn(*mut Ep, c_int, c_int, *mut size_t) -> c_int,
    pub compwritevalid: unsafe extern "C" fn(*mut Ep, c_int, c_int, *mut size_t) -> c_int,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;
    use std::process::Command;

    macro_rules! places {
        ($all:ident: $($c:literal $rust:ident { $($field:ident $(as $its:literal)?),* })*) => {
            $($(
                let name = [$($its,)? stringify!($field)][0];
                $all.push((format!("offsetof(struct {}, {name})", $c), offset_of!($rust, $field)));
            )*)*
        };
    }
    macro_rules! sizes {
        ($all:ident: $($c:literal $rust:ident),*) => {
            $($all.push((concat!("sizeof(struct ", $c, ")").into(), size_of::<$rust>()));)*
        };
    }
    macro_rules! numbers {
        ($all:ident: $($name:ident),*) => {
            $($all.push((concat!("FI_", stringify!($name)).into(), $name as usize));)*
        };
    }

    /// What C calls a size, a place or a number, and what it is here.
    fn known() -> Vec<(String, usize)> {
        let mut all = objects();
        places!(all:
            "fi_info" Info { next, caps, mode, addr_format, src_addrlen, dest_addrlen, src_addr, dest_addr, handle,
                tx_attr, rx_attr, ep_attr, domain_attr, fabric_attr }
            "fi_tx_attr" TxAttr { caps, mode, op_flags, msg_order, comp_order, inject_size, size }
            "fi_ep_attr" EpAttr { kind as "type" }
            "fi_domain_attr" DomainAttr { domain, name, threading, control_progress, data_progress, resource_mgmt,
                av_type, mr_mode, mr_key_size }
            "fi_fabric_attr" FabricAttr { fabric, name, prov_name }
            "fi_av_attr" AvAttr { kind as "type", rx_ctx_bits, count, ep_per_node, name, map_addr, flags }
            "fi_cq_attr" CqAttr { size, flags, format, wait_obj, signaling_vector, wait_cond, wait_set }
            "fi_cq_entry" CqEntry { op_context }
            "fi_cq_err_entry" CqErrEntry { op_context, flags, len, buf, data, tag, olen, err, prov_errno, err_data,
                err_data_size }
            "fi_rma_iov" RmaIov { addr, len, key }
            "fi_msg_rma" MsgRma { msg_iov, desc, iov_count, addr, rma_iov, rma_iov_count, context, data }
        );
        // Those that callers make, whole. The library makes the others, and may make them longer.
        sizes!(all: "fi_av_attr" AvAttr, "fi_cq_attr" CqAttr, "fi_cq_entry" CqEntry, "fi_rma_iov" RmaIov,
            "fi_msg_rma" MsgRma);
        numbers!(all: RMA, ATOMIC, READ, WRITE, RECV, TRANSMIT, REMOTE_READ, REMOTE_WRITE, COMPLETION,
            DELIVERY_COMPLETE, SOURCE, MR_LOCAL, MR_VIRT_ADDR, MR_ALLOCATED, MR_PROV_KEY, ORDER_RAR, ORDER_RMA_RAR,
            ORDER_ATOMIC_RAR, EP_RDM, CQ_FORMAT_CONTEXT, WAIT_FD, GETWAIT, ENABLE, UINT64, ATOMIC_READ, CSWAP, MSWAP, EAGAIN,
            EAVAIL);
        all.push(("FI_VERSION(1, 9)".into(), VERSION as usize));
        all
    }

    fn objects() -> Vec<(String, usize)> {
        let mut all = Vec::new();
        places!(all:
            "fid" Fid { fclass, context, ops }
            "fi_ops" Ops { size, close, bind, control }
            "fid_fabric" Fabric { fid, ops }
            "fi_ops_fabric" OpsFabric { size, domain, passive_ep, eq_open, wait_open, trywait }
            "fid_domain" Domain { fid, ops, mr }
            "fi_ops_domain" OpsDomain { size, av_open, cq_open, endpoint }
            "fi_ops_mr" OpsMr { size, reg }
            "fid_mr" Mr { fid, mem_desc, key }
            "fid_av" Av { fid, ops }
            "fi_ops_av" OpsAv { size, insert }
            "fid_cq" Cq { fid, ops }
            "fi_ops_cq" OpsCq { size, read, readfrom, readerr }
            "fid_ep" Ep { fid, ops, cm, msg, rma, tagged, atomic }
            "fi_ops_cm" OpsCm { size, setname, getname }
            "fi_ops_rma" OpsRma { size, read, readv, readmsg, write, writev, writemsg }
            "fi_ops_atomic" OpsAtomic { size, write, writev, writemsg, inject, readwrite, readwritev, readwritemsg,
                compwrite, compwritev, compwritemsg, writevalid, readwritevalid, compwritevalid }
        );
        all
    }

    #[test]
    fn sizes_places_and_numbers_are_those_of_the_headers() {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, program) = (folder.path().join("layout.c"), folder.path().join("layout"));
        let prints: String = known().iter().map(|(name, _)| format!("  print((size_t)({name}));\n")).collect();
        let text = format!(
            "#include <stddef.h>\n#include <stdio.h>\n#include <rdma/fabric.h>\n#include <rdma/fi_atomic.h>\n\
             #include <rdma/fi_cm.h>\n#include <rdma/fi_domain.h>\n#include <rdma/fi_endpoint.h>\n\
             #include <rdma/fi_eq.h>\n#include <rdma/fi_rma.h>\n\
             static void print(size_t n) {{ printf(\"%zu\\n\", n); }}\nint main(void) {{\n{prints}}}\n"
        );
        std::fs::write(&source, text).expect("there is room");
        let compiled = Command::new("cc").arg(&source).arg("-o").arg(&program).output();
        let compiled = compiled.map(|output| (output.status.success(), String::from_utf8_lossy(&output.stderr).into()));
        let (is_compiled, why): (bool, String) = compiled.unwrap_or_else(|error| (false, error.to_string()));
        if !is_compiled {
            let is_missing = why.contains("rdma/fabric.h: No such file") || !why.contains("layout.c");
            assert!(is_missing && std::env::var_os("CI").is_none(), "{why}");
            return eprintln!("SKIPPED: no headers of libfabric or no compiler (apt-get install libfabric-dev gcc)");
        }
        let printed = Command::new(&program).output().expect("it runs").stdout;
        let theirs: Vec<usize> =
            String::from_utf8_lossy(&printed).lines().map(|line| line.parse().expect("a number")).collect();
        let ours = known();
        assert_eq!(ours.len(), theirs.len());
        for ((name, here), there) in ours.iter().zip(theirs) {
            assert_eq!(*here, there, "{name}");
        }
    }
}
