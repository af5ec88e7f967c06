//! Loads `libnvidia-ml.so.1` at run time: the five functions that are needed, with the types of
//! NVIDIA's nvml.h. No other module calls into it.

use std::{
    ffi::{CStr, CString, c_int, c_uint, c_ulonglong, c_void},
    path::Path,
    ptr,
};

use super::{Gpus, NvmlError};

/// The name by which the dynamic linker finds it.
pub const NAME: &str = "libnvidia-ml.so.1";
/// What the driver says of itself, where it is loaded.
const DRIVER: &str = "/proc/driver/nvidia/version";
/// Why a static program, which loads no library, cannot use it.
const STATIC: &str = "this joular-bpf is a static program: install the Debian package, or build from source";

/// More GPUs than a machine has.
const MAX_GPUS: u32 = 256;

/// `nvmlDevice_t`: names a GPU until the library is shut down.
#[derive(Clone, Copy)]
struct Handle(*mut c_void);

// SAFETY: a handle is a name that only the library looks behind, and NVML's
// functions may be called from any thread (NVML API reference, "thread safety").
unsafe impl Send for Handle {}

type NoArguments = unsafe extern "C" fn() -> c_int;
type GetCount = unsafe extern "C" fn(*mut c_uint) -> c_int;
type GetHandle = unsafe extern "C" fn(c_uint, *mut *mut c_void) -> c_int;
type GetEnergy = unsafe extern "C" fn(*mut c_void, *mut c_ulonglong) -> c_int;

/// The library, initialised. It is shut down when dropped and stays loaded:
/// threads of its own may still run in it.
pub struct Library {
    handles: Vec<Result<Handle, NvmlError>>,
    get_energy: GetEnergy,
    shut_down: NoArguments,
}

impl Library {
    /// Loads and initialises `library`, a name or a path.
    ///
    /// # Errors
    /// If it is not there, lacks a function, or finds no driver.
    pub fn load(library: &str) -> Result<Self, NvmlError> {
        let loaded = Loaded::open(library)?;
        let initialise = loaded.function(c"nvmlInit_v2")?;
        let shut_down = loaded.function(c"nvmlShutdown")?;
        let get_count = loaded.function(c"nvmlDeviceGetCount_v2")?;
        let get_handle = loaded.function(c"nvmlDeviceGetHandleByIndex_v2")?;
        let get_energy = loaded.function(c"nvmlDeviceGetTotalEnergyConsumption")?;
        // SAFETY: nvml.h has it as `nvmlReturn_t nvmlInit_v2(void)`.
        let initialise = unsafe { std::mem::transmute::<*mut c_void, NoArguments>(initialise) };
        // SAFETY: `nvmlReturn_t nvmlShutdown(void)`.
        let shut_down = unsafe { std::mem::transmute::<*mut c_void, NoArguments>(shut_down) };
        // SAFETY: `nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *deviceCount)`.
        let get_count = unsafe { std::mem::transmute::<*mut c_void, GetCount>(get_count) };
        // SAFETY: `nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)`.
        let get_handle = unsafe { std::mem::transmute::<*mut c_void, GetHandle>(get_handle) };
        // SAFETY: `nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *energy)`.
        let get_energy = unsafe { std::mem::transmute::<*mut c_void, GetEnergy>(get_energy) };
        // SAFETY: it takes nothing and may be called at any time.
        check("nvmlInit_v2", unsafe { initialise() })?;
        // From here on dropping it shuts the library down.
        let mut initialised = Self { handles: Vec::new(), get_energy, shut_down };
        let mut count = 0;
        // SAFETY: the library is initialised, and `count` is where it may write.
        check("nvmlDeviceGetCount_v2", unsafe { get_count(&raw mut count) })?;
        initialised.handles = (0..count.min(MAX_GPUS)).map(|index| handle(get_handle, index)).collect();
        Ok(initialised)
    }
}

fn handle(get_handle: GetHandle, index: u32) -> Result<Handle, NvmlError> {
    let mut handle = ptr::null_mut();
    // SAFETY: the library is initialised, and `handle` is where it may write.
    check("nvmlDeviceGetHandleByIndex_v2", unsafe { get_handle(index, &raw mut handle) })?;
    Ok(Handle(handle))
}

impl Gpus for Library {
    fn count(&self) -> u32 {
        u32::try_from(self.handles.len()).unwrap_or(MAX_GPUS)
    }

    fn energy_mj(&self, gpu: u32) -> Result<u64, NvmlError> {
        let unknown = NvmlError::Call { function: "nvmlDeviceGetHandleByIndex_v2", code: super::code::NOT_FOUND };
        let handle = self.handles.get(gpu as usize).cloned().unwrap_or(Err(unknown))?;
        let mut energy_mj = 0;
        // SAFETY: the library gave the handle and is not shut down while `self`
        // lives; `energy_mj` is where it may write.
        check("nvmlDeviceGetTotalEnergyConsumption", unsafe { (self.get_energy)(handle.0, &raw mut energy_mj) })?;
        Ok(energy_mj)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the library is initialised, and no handle is used afterwards.
        unsafe { (self.shut_down)() };
    }
}

const fn check(function: &'static str, code: c_int) -> Result<(), NvmlError> {
    if code == 0 { Ok(()) } else { Err(NvmlError::Call { function, code }) }
}

/// A library in this process's memory, to stay.
struct Loaded<'a> {
    name: &'a str,
    handle: *mut c_void,
}

impl<'a> Loaded<'a> {
    fn open(name: &'a str) -> Result<Self, NvmlError> {
        let no_library = || NvmlError::NoLibrary { library: name.to_owned() };
        if cfg!(target_env = "musl") {
            let is_there = Path::new(DRIVER).exists();
            return Err(if is_there { bad_library(name, STATIC.to_owned()) } else { no_library() });
        }
        let path = CString::new(name).map_err(|_| no_library())?;
        // SAFETY: the path ends with a zero. Loading runs the library's
        // initialisers: it is the driver's library, found where root has put it.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if !handle.is_null() {
            return Ok(Self { name, handle });
        }
        let cause = last_error();
        if is_absent(name, &cause) { Err(no_library()) } else { Err(bad_library(name, cause)) }
    }

    /// The address of a function; never null.
    fn function(&self, symbol: &CStr) -> Result<*mut c_void, NvmlError> {
        // SAFETY: the handle is of a library that stays loaded.
        let address = unsafe { libc::dlsym(self.handle, symbol.as_ptr()) };
        if address.is_null() { Err(bad_library(self.name, last_error())) } else { Ok(address) }
    }
}

/// Whether the dynamic linker did not find the library itself, rather than one
/// that it needs, which it names instead.
fn is_absent(name: &str, cause: &str) -> bool {
    cause.strip_prefix(name).is_some_and(|rest| rest.starts_with(": cannot open") && rest.contains("No such file"))
}

fn bad_library(name: &str, cause: String) -> NvmlError {
    NvmlError::BadLibrary { library: name.to_owned(), cause }
}

/// What the dynamic linker has to say about its last failure in this thread.
fn last_error() -> String {
    // SAFETY: it takes nothing; the text it gives is this thread's.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "unknown error".to_owned();
    }
    // SAFETY: not null, so it ends with a zero; it lives until the next call.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::is_absent;

    #[test]
    fn only_the_library_itself_can_be_absent() {
        for (cause, expected) in [
            ("libnvidia-ml.so.1: cannot open shared object file: No such file or directory", true),
            ("libcuda.so.1: cannot open shared object file: No such file or directory", false),
            ("libnvidia-ml.so.1: cannot open shared object file: Permission denied", false),
            ("libnvidia-ml.so.1: file too short", false),
            ("", false),
        ] {
            assert_eq!(is_absent("libnvidia-ml.so.1", cause), expected, "{cause}");
        }
    }
}
