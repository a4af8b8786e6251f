//! The objects that both ends have: a fabric, a domain, addresses, a queue of completions, an
//! endpoint, and registered memory.

use crate::abi::{self, Av, AvAttr, Cq, CqAttr, CqEntry, CqErrEntry, Domain, Ep, Fabric, Fid, Info, Mr};
use crate::library::{FabricError, Library};
use libc::{c_int, c_void};
use std::ffi::CString;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr::{NonNull, null, null_mut};

/// Completions that are taken at a time.
const TAKEN: usize = 64;
/// Bytes of an address at most: those of sockets have 28.
const ADDRESS_MAX: usize = 256;
/// Kinds of memory that this crate can register.
const MR_MODE: c_int = abi::MR_LOCAL | abi::MR_VIRT_ADDR | abi::MR_ALLOCATED | abi::MR_PROV_KEY;
const CAPS: u64 = abi::RMA | abi::ATOMIC | abi::READ | abi::WRITE | abi::REMOTE_READ | abi::REMOTE_WRITE;

/// The name of a provider in libfabric: endpoints that are connected need the utility `ofi_rxm`
/// above them.
pub fn full_name(provider: &str) -> String {
    match provider {
        "tcp" | "verbs" => format!("{provider};ofi_rxm"),
        other => other.to_owned(),
    }
}

/// Where an end is, or its peer.
pub enum Where<'a> {
    /// This end has this address; port 0 takes a free one.
    Here(SocketAddr),
    /// The other end has this address, in this format.
    There(u32, &'a [u8]),
}

/// Owns every object. All of them are closed by [`Self::close`], or when it is dropped.
pub struct End {
    pub library: &'static Library,
    pub provider: String,
    info: NonNull<Info>,
    fabric: Option<NonNull<Fabric>>,
    domain: Option<NonNull<Domain>>,
    av: Option<NonNull<Av>>,
    cq: Option<NonNull<Cq>>,
    pub ep: Option<NonNull<Ep>>,
    pub mr: Option<NonNull<Mr>>,
    fd: RawFd,
}

// An end belongs to one thread at a time, and its objects are those of no other one.
#[expect(unsafe_code, reason = "pointers are no threads'")]
// SAFETY: libfabric's objects may be used by any thread; `&mut self` keeps calls apart.
unsafe impl Send for End {}

impl End {
    /// Opens all objects but registered memory.
    ///
    /// # Errors
    /// When the library has no such provider here, or a call fails.
    pub fn open(provider: &str, place: &Where<'_>) -> Result<End, FabricError> {
        let library = Library::open()?;
        let provider = full_name(provider);
        let info = found(library, &provider, place)?;
        let mut end =
            End { library, provider, info, fabric: None, domain: None, av: None, cq: None, ep: None, mr: None, fd: -1 };
        end.build()?;
        Ok(end)
    }

    #[expect(unsafe_code, reason = "functions of the library")]
    fn build(&mut self) -> Result<(), FabricError> {
        let (library, info) = (self.library, self.info.as_ptr());
        let check = |what, number: c_int| if number == 0 { Ok(()) } else { Err(library.failed(what, number.into())) };
        let (mut fabric, mut domain, mut av, mut cq, mut ep) =
            (null_mut(), null_mut(), null_mut(), null_mut(), null_mut());
        // SAFETY: `info` is the library's own. Every object is made by the one before it, and a
        // call that returns zero has filled its pointer. Attributes live while they are read.
        unsafe {
            check("opening the fabric", (library.fabric)((*info).fabric_attr, &mut fabric, null_mut()))?;
            self.fabric = NonNull::new(fabric);
            check("opening the domain", ((*(*fabric).ops).domain)(fabric, info, &mut domain, null_mut()))?;
            self.domain = NonNull::new(domain);
            let ops = &*(*domain).ops;
            check("opening addresses", (ops.av_open)(domain, &mut of_addresses(), &mut av, null_mut()))?;
            self.av = NonNull::new(av);
            check("opening completions", (ops.cq_open)(domain, &mut of_completions(), &mut cq, null_mut()))?;
            self.cq = NonNull::new(cq);
            check("opening the endpoint", (ops.endpoint)(domain, info, &mut ep, null_mut()))?;
            self.ep = NonNull::new(ep);
            let ops = &*(*ep).fid.ops;
            check("binding addresses", (ops.bind)(ep.cast(), av.cast(), 0))?;
            check("binding completions", (ops.bind)(ep.cast(), cq.cast(), abi::TRANSMIT | abi::RECV))?;
            check("enabling the endpoint", (ops.control)(ep.cast(), abi::ENABLE, null_mut()))?;
            let ops = &*(*cq).fid.ops;
            check("asking how to wait", (ops.control)(cq.cast(), abi::GETWAIT, (&raw mut self.fd).cast()))
        }
    }

    /// Registers memory, with a key where the provider lets us choose it.
    ///
    /// # Safety
    /// The memory must be valid until [`Self::close`] has returned `true`.
    ///
    /// # Errors
    /// When the provider does not take it.
    #[expect(unsafe_code, reason = "a function of the library, for memory of the caller")]
    pub unsafe fn register(
        &mut self,
        memory: *mut c_void,
        bytes: usize,
        access: u64,
        key: u64,
    ) -> Result<u64, FabricError> {
        let domain = self.domain.expect("it is open").as_ptr();
        let mut mr = null_mut();
        // SAFETY: the domain is open, and the caller answers for the memory.
        let number =
            unsafe { ((*(*domain).mr).reg)(domain.cast(), memory, bytes, access, 0, key, 0, &mut mr, null_mut()) };
        self.mr = NonNull::new(mr);
        match self.mr {
            // SAFETY: it is open.
            Some(mr) if number == 0 => Ok(unsafe { (*mr.as_ptr()).key }),
            _ => Err(self.library.failed("registering memory", number.into())),
        }
    }

    /// Whether the provider wants something of registered memory.
    #[expect(unsafe_code, reason = "a field of the library")]
    pub fn wants(&self, mode: c_int) -> bool {
        // SAFETY: it is the library's own.
        unsafe { (*(*self.info.as_ptr()).domain_attr).mr_mode & mode != 0 }
    }

    /// Bytes of a key that we may choose.
    #[expect(unsafe_code, reason = "a field of the library")]
    pub fn key_bytes(&self) -> usize {
        // SAFETY: it is the library's own.
        unsafe { (*(*self.info.as_ptr()).domain_attr).mr_key_size }
    }

    /// Whether reads of one kind are executed in the order in which they were posted.
    #[expect(unsafe_code, reason = "a field of the library")]
    pub fn orders_reads(&self, order: u64) -> bool {
        // SAFETY: it is the library's own.
        unsafe { (*(*self.info.as_ptr()).tx_attr).msg_order & (order | abi::ORDER_RAR) != 0 }
    }

    /// The format of addresses.
    #[expect(unsafe_code, reason = "a field of the library")]
    pub fn format(&self) -> u32 {
        // SAFETY: it is the library's own.
        unsafe { (*self.info.as_ptr()).addr_format }
    }

    /// The address of this end.
    ///
    /// # Errors
    /// When the call fails.
    #[expect(unsafe_code, reason = "a function of the library")]
    pub fn address(&self) -> Result<Vec<u8>, FabricError> {
        let ep = self.ep.expect("it is open").as_ptr();
        let mut address = vec![0; ADDRESS_MAX];
        let mut length = address.len();
        // SAFETY: it writes so many bytes at most.
        let number = unsafe { ((*(*ep).cm).getname)(ep.cast(), address.as_mut_ptr().cast(), &mut length) };
        if number != 0 || length > address.len() {
            return Err(self.library.failed("asking for the address", number.into()));
        }
        address.truncate(length);
        Ok(address)
    }

    /// Takes in the address of a peer.
    ///
    /// # Errors
    /// When it is none.
    #[expect(unsafe_code, reason = "a function of the library")]
    pub fn insert(&mut self, address: &[u8]) -> Result<u64, FabricError> {
        let av = self.av.expect("it is open").as_ptr();
        let mut peer = u64::MAX;
        // An address that is shorter than the provider's is read beyond its end otherwise.
        let mut padded = address.to_vec();
        padded.resize(padded.len().max(ADDRESS_MAX), 0);
        // SAFETY: it reads one address, of its own length.
        let count = unsafe { ((*(*av).ops).insert)(av, padded.as_ptr().cast(), 1, &mut peer, 0, null_mut()) };
        if count == 1 { Ok(peer) } else { Err(self.library.failed("taking in an address", count.into())) }
    }

    /// Has the provider work, and takes what is done: the contexts of operations.
    ///
    /// # Errors
    /// When an operation has failed: which one, and why.
    #[expect(unsafe_code, reason = "functions of the library")]
    pub fn take(&mut self, done: &mut Vec<usize>) -> Result<(), FabricError> {
        let cq = self.cq.expect("it is open").as_ptr();
        let mut entries = [CqEntry { op_context: null_mut() }; TAKEN];
        loop {
            // SAFETY: it writes so many entries at most.
            let count = unsafe { ((*(*cq).ops).read)(cq, entries.as_mut_ptr().cast(), TAKEN) };
            match usize::try_from(count) {
                Ok(count) => done.extend(entries[..count].iter().map(|entry| entry.op_context.addr())),
                Err(_) if count == -(abi::EAGAIN as isize) => return Ok(()),
                Err(_) if count == -(abi::EAVAIL as isize) => return Err(self.failure(cq)),
                Err(_) => return Err(self.library.failed("taking completions", count as i64)),
            }
            if count != TAKEN as isize {
                return Ok(());
            }
        }
    }

    #[expect(unsafe_code, reason = "a function of the library")]
    fn failure(&self, cq: *mut Cq) -> FabricError {
        // SAFETY: zeros are an entry, whose lengths say that there is no room behind it.
        let mut entry: CqErrEntry = unsafe { std::mem::zeroed() };
        // SAFETY: it writes one entry.
        let count = unsafe { ((*(*cq).ops).readerr)(cq, &mut entry, 0) };
        let number = if count == 1 { i64::from(entry.err) } else { count as i64 };
        self.library.failed("an operation", number)
    }

    /// Whether a thread may wait for [`Self::fd`]: there is nothing to take before.
    #[expect(unsafe_code, reason = "a function of the library")]
    pub fn may_sleep(&mut self) -> bool {
        let (fabric, cq) = (self.fabric.expect("it is open").as_ptr(), self.cq.expect("it is open"));
        let mut fids: [*mut Fid; 1] = [cq.as_ptr().cast()];
        // SAFETY: both are open, and it reads one pointer.
        unsafe { ((*(*fabric).ops).trywait)(fabric, fids.as_mut_ptr(), 1) == 0 }
    }

    /// A file that is readable when there may be something to do.
    #[expect(unsafe_code, reason = "a file of the library")]
    pub fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the queue of completions owns it, and is open.
        unsafe { BorrowedFd::borrow_raw(self.fd) }
    }

    /// Closes all. Returns whether nothing is left that may touch registered memory.
    pub fn close(&mut self) -> bool {
        let ep = closed(&mut self.ep);
        let mr = closed(&mut self.mr);
        let rest = [closed(&mut self.cq), closed(&mut self.av), closed(&mut self.domain), closed(&mut self.fabric)];
        // Without an endpoint nobody reaches what is registered; the rest is of no harm.
        let _ = rest;
        ep && mr
    }
}

/// One peer at most, in the form that the provider likes best.
fn of_addresses() -> AvAttr {
    AvAttr { kind: 0, rx_ctx_bits: 0, count: 1, ep_per_node: 0, name: null(), map_addr: null_mut(), flags: 0 }
}

/// Contexts alone, and a file to wait for.
fn of_completions() -> CqAttr {
    let (format, wait_obj) = (abi::CQ_FORMAT_CONTEXT, abi::WAIT_FD);
    CqAttr { size: 0, flags: 0, format, wait_obj, signaling_vector: 0, wait_cond: 0, wait_set: null_mut() }
}

/// Closes an object, which begins with a `Fid`.
#[expect(unsafe_code, reason = "a function of the library")]
fn closed<T>(object: &mut Option<NonNull<T>>) -> bool {
    let Some(object) = object.take() else { return true };
    let fid: *mut Fid = object.as_ptr().cast();
    // SAFETY: it was open, and nobody has its pointer any more.
    unsafe { ((*(*fid).ops).close)(fid) == 0 }
}

impl Drop for End {
    #[expect(unsafe_code, reason = "a function of the library")]
    fn drop(&mut self) {
        self.close();
        // SAFETY: it is the library's own, and used no more.
        unsafe { (self.library.freeinfo)(self.info.as_ptr()) };
    }
}

/// What the library offers for a provider at a place.
#[expect(unsafe_code, reason = "functions of the library")]
fn found(library: &Library, provider: &str, place: &Where<'_>) -> Result<NonNull<Info>, FabricError> {
    let name = text(provider);
    let mut found = null_mut();
    // SAFETY: all parts of the hints are there. They are given texts and an address of ours for the
    // time of the call, and are freed without them.
    let number = unsafe {
        let hints = library.hints();
        (*hints).caps = CAPS;
        (*(*hints).ep_attr).kind = abi::EP_RDM;
        (*(*hints).domain_attr).mr_mode = MR_MODE;
        (*(*hints).fabric_attr).prov_name = name.as_ptr().cast_mut();
        let number = match place {
            Where::Here(address) => {
                let (node, service) = (text(&address.ip().to_string()), text(&address.port().to_string()));
                (library.getinfo)(abi::VERSION, node.as_ptr(), service.as_ptr(), abi::SOURCE, hints, &mut found)
            }
            Where::There(format, address) => {
                (*hints).addr_format = *format;
                (*hints).dest_addr = address.as_ptr().cast_mut().cast();
                (*hints).dest_addrlen = address.len();
                (library.getinfo)(abi::VERSION, null(), null(), 0, hints, &mut found)
            }
        };
        (*hints).dest_addr = null_mut();
        (*hints).dest_addrlen = 0;
        (*(*hints).fabric_attr).prov_name = null_mut();
        (library.freeinfo)(hints);
        number
    };
    NonNull::new(found).filter(|_| number == 0).ok_or_else(|| FabricError::Provider {
        version: library.version(),
        provider: provider.to_owned(),
        place: match place {
            Where::Here(address) => address.to_string(),
            Where::There(..) => "the address of the other end".to_owned(),
        },
        reason: library.meaning(number.into()),
    })
}

/// A text for C. Nothing that is passed has a zero inside; one that has is empty, and not found.
fn text(text: &str) -> CString {
    CString::new(text).unwrap_or_else(|_| c"none".to_owned())
}
