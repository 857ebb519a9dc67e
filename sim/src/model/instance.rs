// SPDX-License-Identifier: Apache-2.0
//! One instance of a loaded model: its ports as pointers, its clock, its trace.

use std::ffi::{CStr, CString, c_void};
use std::path::Path;

use super::build::{Api, BuildSpec, RawPort, load};
use super::{ModelError, Variant};

/// A port of a design.
#[derive(Debug, Clone)]
pub struct PortInfo {
    /// Name in the top module.
    pub name: String,
    /// Width in bits.
    pub width: u32,
    /// Output of the design.
    pub is_output: bool,
    value: *mut c_void,
    sampled: *mut c_void,
}

/// How an instance starts.
#[derive(Debug, Clone)]
pub struct InstanceParams {
    /// Name in traces and messages.
    pub name: String,
    /// Length of a clock cycle in picoseconds of trace time.
    pub period_ps: u64,
    /// Seed of what starts at random (with [`BuildSpec::random_init`]).
    pub seed: u64,
}

impl Default for InstanceParams {
    fn default() -> Self {
        Self {
            name: "dut".to_owned(),
            period_ps: 8000,
            seed: 1,
        }
    }
}

/// An instance of a Verilated design. Lives on the thread that made it.
pub struct Instance {
    api: &'static Api,
    handle: *mut c_void,
    top: String,
    name: String,
    variant: Variant,
    ports: Vec<PortInfo>,
}

impl Drop for Instance {
    fn drop(&mut self) {
        (self.api.destroy)(self.handle);
    }
}

impl Instance {
    /// Builds the design if the cache lacks it, and makes an instance.
    ///
    /// # Errors
    /// What [`ModelError`] lists under building and loading.
    pub fn new(spec: &BuildSpec, params: &InstanceParams) -> Result<Self, ModelError> {
        Self::with_peer(spec, params, None)
    }

    /// As [`new`](Self::new), but sharing time and trace with another instance of the same build. The
    /// trace is opened on the first of them, which dumps for all ([`trace_dump`](Self::trace_dump));
    /// open it after all were made.
    ///
    /// # Errors
    /// As [`new`](Self::new); also when the peer is of another build.
    pub fn with_peer(spec: &BuildSpec, params: &InstanceParams, peer: Option<&Self>) -> Result<Self, ModelError> {
        let api = load(spec)?;
        let bad = |message: String| ModelError::Load {
            top: spec.top.clone(),
            message,
        };
        let name = CString::new(params.name.as_str()).map_err(|_| bad("its name contains a zero byte".to_owned()))?;
        // Verilator's seed is a positive 31-bit number; 0 would mean "take the clock".
        let seed = ((params.seed ^ (params.seed >> 31)) & 0x7fff_ffff).max(1) as i32;
        let reset = if spec.random_init { 2 } else { 0 };
        if peer.is_some_and(|peer| !std::ptr::eq(peer.api, api)) {
            return Err(bad("only instances of one build can share a trace".to_owned()));
        }
        let peer = peer.map_or(std::ptr::null_mut(), |peer| peer.handle);
        let handle = (api.create)(name.as_ptr(), params.period_ps, reset, seed, peer);
        let mut ports = Vec::with_capacity(api.ports as usize);
        for index in 0..api.ports {
            let mut raw = RawPort {
                name: std::ptr::null(),
                width: 0,
                is_output: 0,
                value: std::ptr::null_mut(),
                sampled: std::ptr::null_mut(),
            };
            if (api.port)(handle, index, &mut raw) == 0 {
                (api.destroy)(handle);
                return Err(bad(format!("port {index} is missing")));
            }
            // SAFETY: the shim gives a string literal.
            let port_name = unsafe { CStr::from_ptr(raw.name) }.to_string_lossy().into_owned();
            ports.push(PortInfo {
                name: port_name,
                width: raw.width,
                is_output: raw.is_output != 0,
                value: raw.value,
                sampled: raw.sampled,
            });
        }
        Ok(Self {
            api,
            handle,
            top: spec.top.clone(),
            name: params.name.clone(),
            variant: spec.variant,
            ports,
        })
    }

    /// All ports of the top module.
    pub fn ports(&self) -> &[PortInfo] {
        &self.ports
    }

    /// Top module.
    pub fn top(&self) -> &str {
        &self.top
    }

    /// The port of this name.
    ///
    /// # Errors
    /// [`ModelError::Port`] when there is none.
    pub fn port(&self, name: &str) -> Result<&PortInfo, ModelError> {
        self.ports
            .iter()
            .find(|p| p.name == name)
            .ok_or_else(|| self.no_port(format!("port {name}")))
    }

    pub(super) fn no_port(&self, wanted: String) -> ModelError {
        let list: Vec<String> = self
            .ports
            .iter()
            .map(|p| {
                format!(
                    "{} {}[{}]",
                    if p.is_output { "output" } else { "input" },
                    p.name,
                    p.width
                )
            })
            .collect();
        ModelError::Port {
            top: self.top.clone(),
            wanted,
            has: list.join(", "),
        }
    }

    /// Lets changed inputs reach combinational outputs; the clock stands still.
    ///
    /// # Errors
    /// [`ModelError::Assertion`].
    pub fn eval(&mut self) -> Result<(), ModelError> {
        (self.api.eval)(self.handle);
        if (self.api.stopped)(self.handle) != 0 {
            Err(self.stopped())
        } else {
            Ok(())
        }
    }

    /// Runs whole clock cycles: settles the inputs, samples the outputs, and gives the rising edge.
    ///
    /// # Errors
    /// [`ModelError::Assertion`]; the model then stands in the failing cycle.
    pub fn clock(&mut self, cycles: u64) -> Result<(), ModelError> {
        if (self.api.clock)(self.handle, cycles) != 0 {
            Err(self.stopped())
        } else {
            Ok(())
        }
    }

    /// First half of a cycle: settles the inputs and samples the outputs. No trace is written.
    ///
    /// # Errors
    /// [`ModelError::Assertion`].
    pub fn settle(&mut self) -> Result<(), ModelError> {
        if (self.api.settle)(self.handle) != 0 {
            Err(self.stopped())
        } else {
            Ok(())
        }
    }

    /// Second half of a cycle: the rising edge. No trace is written.
    ///
    /// # Errors
    /// [`ModelError::Assertion`].
    pub fn edge(&mut self) -> Result<(), ModelError> {
        if (self.api.edge)(self.handle) != 0 {
            Err(self.stopped())
        } else {
            Ok(())
        }
    }

    /// Writes the state of this instance and its peers into the open trace. Times must grow.
    pub fn trace_dump(&mut self, time_ps: u64) {
        (self.api.trace_dump)(self.handle, time_ps);
    }

    #[cold]
    fn stopped(&mut self) -> ModelError {
        self.trace_flush();
        // SAFETY: the shim returns the text of a string that it holds and changes only while evaluating.
        let place = unsafe { CStr::from_ptr((self.api.stop_place)(self.handle)) }
            .to_string_lossy()
            .into_owned();
        let hint = match self.variant {
            Variant::Fast => "run again with WAVES=1 for a trace".to_owned(),
            Variant::Trace => "the trace ends in that cycle".to_owned(),
        };
        ModelError::Assertion {
            model: format!("{} ({})", self.name, self.top),
            place,
            cycle: self.cycles(),
            hint,
        }
    }

    /// Clock cycles run.
    pub fn cycles(&self) -> u64 {
        (self.api.cycles)(self.handle)
    }

    /// Starts an FST of everything from here on.
    ///
    /// # Errors
    /// [`ModelError::Trace`] when the model was built without tracing, a trace is open already, or the
    /// file cannot be written.
    pub fn trace_open(&mut self, path: &Path) -> Result<(), ModelError> {
        let failed = |message| ModelError::Trace {
            path: path.to_path_buf(),
            message,
        };
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(ModelError::io("creating", dir))?;
        }
        let text =
            CString::new(path.as_os_str().as_encoded_bytes()).map_err(|_| failed("the name contains a zero byte"))?;
        match (self.api.trace_open)(self.handle, text.as_ptr()) {
            0 => Ok(()),
            1 => Err(failed("the model was built without tracing (Variant::Trace)")),
            2 => Err(failed("a trace of this model is already open")),
            _ => Err(failed("the file cannot be written")),
        }
    }

    /// Makes what was traced so far readable in the file.
    pub fn trace_flush(&mut self) {
        (self.api.trace_flush)(self.handle);
    }

    /// Ends the trace, if one is open.
    pub fn trace_close(&mut self) {
        (self.api.trace_close)(self.handle);
    }
}

/// Bytes that Verilator gives a port: 1, 2, 4, 8, or whole 32-bit words.
pub(super) fn storage_bytes(width: u32) -> usize {
    match width {
        0..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        33..=64 => 8,
        _ => width.div_ceil(32) as usize * 4,
    }
}

impl PortInfo {
    /// Words of 32 bits that hold the port.
    pub fn words(&self) -> usize {
        self.width.div_ceil(32) as usize
    }

    pub(super) fn value_ptr(&self) -> *mut c_void {
        self.value
    }

    pub(super) fn sampled_ptr(&self) -> *mut c_void {
        self.sampled
    }
}

/// Reads a port of at most 64 bits.
///
/// # Safety
/// `ptr` is the storage of a live port of that width.
pub(super) unsafe fn read_small(ptr: *const c_void, width: u32) -> u64 {
    // SAFETY: the caller's promise; Verilator aligns each type naturally.
    unsafe {
        match storage_bytes(width) {
            1 => u64::from(ptr.cast::<u8>().read()),
            2 => u64::from(ptr.cast::<u16>().read()),
            4 => u64::from(ptr.cast::<u32>().read()),
            _ => ptr.cast::<u64>().read(),
        }
    }
}

/// Writes a port of at most 64 bits; bits beyond the width are cut off.
///
/// # Safety
/// `ptr` is the storage of a live input of that width.
pub(super) unsafe fn write_small(ptr: *mut c_void, width: u32, value: u64) {
    let value = if width < 64 { value & ((1 << width) - 1) } else { value };
    // SAFETY: the caller's promise; Verilator aligns each type naturally.
    unsafe {
        match storage_bytes(width) {
            1 => ptr.cast::<u8>().write(value as u8),
            2 => ptr.cast::<u16>().write(value as u16),
            4 => ptr.cast::<u32>().write(value as u32),
            _ => ptr.cast::<u64>().write(value),
        }
    }
}
