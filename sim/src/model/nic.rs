// SPDX-License-Identifier: Apache-2.0
//! A whole NIC: the Verilated top of one data width behind the [`Device`] pins.

use std::ffi::c_void;
use std::path::PathBuf;

use super::build::{BuildSpec, Effort, Variant};
use super::instance::{Instance, InstanceParams, storage_bytes};
use super::{ModelError, rtl};
use crate::device::{BadKeep, Device, MacBeat, TlpBeat, TlpIn, TlpOut};

/// What unused byte lanes carry, so that a design that looks at them is found out.
const JUNK: u8 = 0xdb;

/// Widths of the data path that there are tops for, in bits.
pub const DATA_WIDTHS: [usize; 4] = [64, 128, 256, 512];

/// Which NIC to build.
#[derive(Debug, Clone)]
pub struct NicSpec {
    /// Width of the data path in bits: one of [`DATA_WIDTHS`].
    pub data_width: usize,
    /// Top module; `rnic_top_<width>` when `None`.
    pub top: Option<String>,
    /// Sources outside of `rtl/`.
    pub sources: Vec<PathBuf>,
    /// Parameter overrides.
    pub params: Vec<(String, String)>,
    /// Preprocessor symbols: switches that leave features out.
    pub defines: Vec<String>,
    /// Build with tracing.
    pub trace: bool,
    /// Start registers at random by the instance's seed.
    pub random_init: bool,
}

impl NicSpec {
    /// The NIC of this width as it is, without tracing.
    pub fn new(data_width: usize) -> Self {
        Self {
            data_width,
            top: None,
            sources: Vec::new(),
            params: Vec::new(),
            defines: Vec::new(),
            trace: false,
            random_init: false,
        }
    }

    /// Clock period in picoseconds: 8000 at 64 bits, 4000 from 128 on, unless the parameter ClkPeriodPs
    /// says otherwise.
    pub fn clk_period_ps(&self) -> u64 {
        let overridden = self
            .params
            .iter()
            .find(|(name, _)| name == "ClkPeriodPs")
            .and_then(|(_, v)| v.parse().ok());
        overridden.unwrap_or(if self.data_width <= 64 { 8000 } else { 4000 })
    }

    fn build_spec(&self) -> Result<BuildSpec, ModelError> {
        let top = self
            .top
            .clone()
            .unwrap_or_else(|| format!("rnic_top_{}", self.data_width));
        Ok(BuildSpec {
            sources: rtl::closure(&top, &self.sources)?,
            top,
            params: self.params.clone(),
            defines: self.defines.clone(),
            variant: if self.trace { Variant::Trace } else { Variant::Fast },
            // With a feature taken out it is built for a test that is soon over.
            effort: if self.defines.is_empty() {
                Effort::Full
            } else {
                Effort::Quick
            },
            random_init: self.random_init,
        })
    }
}

/// An input of one bit.
#[derive(Clone, Copy)]
struct BitIn(*mut u8);

impl BitIn {
    fn set(self, on: bool) {
        // SAFETY: storage of a live one-bit input (checked when found): a byte, only touched by this thread.
        unsafe { self.0.write(u8::from(on)) }
    }
}

/// The sample of an output of one bit.
#[derive(Clone, Copy)]
struct BitOut(*const u8);

impl BitOut {
    fn get(self) -> bool {
        // SAFETY: sample of a live one-bit output (checked when found): a byte, only touched by this thread.
        unsafe { self.0.read() != 0 }
    }
}

/// An input of whole bytes. Verilator keeps ports in words of the host's (little-endian) order.
#[derive(Clone, Copy)]
struct BytesIn {
    ptr: *mut u8,
    len: usize,
}

impl BytesIn {
    /// Sets the first bytes to `data` and the rest to junk.
    fn set(self, data: &[u8]) {
        let taken = data.len().min(self.len);
        // SAFETY: storage of a live input of that many bytes (checked when found), only touched by this
        // thread; `data` is memory of Rust and does not overlap it.
        unsafe {
            self.ptr.copy_from_nonoverlapping(data.as_ptr(), taken);
            self.ptr.add(taken).write_bytes(JUNK, self.len - taken);
        }
    }
}

/// The sample of an output of whole bytes.
#[derive(Clone, Copy)]
struct BytesOut {
    ptr: *const u8,
    len: usize,
}

impl BytesOut {
    fn get<'a>(self) -> &'a [u8] {
        // SAFETY: sample of a live output of that many bytes (checked when found). It changes only in
        // clock() and settle(), which need the model mutably; the callers below bind the lifetime to a
        // borrow of the model.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

struct InPins {
    valid: BitIn,
    header: BytesIn,
    data: BytesIn,
    last: BitIn,
    ready: BitOut,
}

struct OutPins {
    valid: BitOut,
    header: BytesOut,
    data: BytesOut,
    last: BitOut,
    ready: BitIn,
}

/// A Verilated NIC.
pub struct NicModel {
    width: usize,
    reset: BitIn,
    bus_master: BitIn,
    port_up: BitIn,
    cq: InPins,
    rc: InPins,
    cc: OutPins,
    rq: OutPins,
    rx_valid: BitIn,
    rx_ready: BitOut,
    rx_data: BytesIn,
    rx_keep: BytesIn,
    rx_last: BitIn,
    rx_error: BitIn,
    tx_valid: BitOut,
    tx_ready: BitIn,
    tx_data: BytesOut,
    tx_keep: BytesOut,
    tx_last: BitOut,
    /// Last, as the pins point into it.
    instance: Instance,
}

impl NicModel {
    /// Builds (or finds in the cache) and makes a NIC. With a peer, both share time and trace.
    ///
    /// # Errors
    /// See [`ModelError`]; also when a port is missing or has another width than the data width asks for.
    pub fn new(spec: &NicSpec, name: &str, seed: u64, peer: Option<&Self>) -> Result<Self, ModelError> {
        let params = InstanceParams {
            name: name.to_owned(),
            period_ps: spec.clk_period_ps(),
            seed,
        };
        let instance = Instance::with_peer(&spec.build_spec()?, &params, peer.map(|p| &p.instance))?;
        let pins = Pins(&instance);
        let width = spec.data_width / 8;
        let input = |stream: &str| -> Result<InPins, ModelError> {
            Ok(InPins {
                valid: pins.bit_in(&format!("{stream}_valid_i"))?,
                header: pins.bytes_in(&format!("{stream}_hdr_i"), 128)?,
                data: pins.bytes_in(&format!("{stream}_data_i"), spec.data_width)?,
                last: pins.bit_in(&format!("{stream}_last_i"))?,
                ready: pins.bit_out(&format!("{stream}_ready_o"))?,
            })
        };
        let output = |stream: &str| -> Result<OutPins, ModelError> {
            Ok(OutPins {
                valid: pins.bit_out(&format!("{stream}_valid_o"))?,
                header: pins.bytes_out(&format!("{stream}_hdr_o"), 128)?,
                data: pins.bytes_out(&format!("{stream}_data_o"), spec.data_width)?,
                last: pins.bit_out(&format!("{stream}_last_o"))?,
                ready: pins.bit_in(&format!("{stream}_ready_i"))?,
            })
        };
        Ok(Self {
            width,
            reset: pins.bit_in("rst_i")?,
            bus_master: pins.bit_in("bus_master_en_i")?,
            port_up: pins.bit_in("port_up_i")?,
            cq: input("cq")?,
            rc: input("rc")?,
            cc: output("cc")?,
            rq: output("rq")?,
            rx_valid: pins.bit_in("mac_rx_valid_i")?,
            rx_ready: pins.bit_out("mac_rx_ready_o")?,
            rx_data: pins.bytes_in("mac_rx_data_i", spec.data_width)?,
            rx_keep: pins.bytes_in("mac_rx_keep_i", width)?,
            rx_last: pins.bit_in("mac_rx_last_i")?,
            rx_error: pins.bit_in("mac_rx_err_i")?,
            tx_valid: pins.bit_out("mac_tx_valid_o")?,
            tx_ready: pins.bit_in("mac_tx_ready_i")?,
            tx_data: pins.bytes_out("mac_tx_data_o", spec.data_width)?,
            tx_keep: pins.bytes_out("mac_tx_keep_o", width)?,
            tx_last: pins.bit_out("mac_tx_last_o")?,
            instance,
        })
    }

    /// The instance, for its trace.
    pub fn instance(&mut self) -> &mut Instance {
        &mut self.instance
    }

    fn in_pins(&self, stream: TlpIn) -> &InPins {
        match stream {
            TlpIn::Cq => &self.cq,
            TlpIn::Rc => &self.rc,
        }
    }

    fn out_pins(&self, stream: TlpOut) -> &OutPins {
        match stream {
            TlpOut::Cc => &self.cc,
            TlpOut::Rq => &self.rq,
        }
    }
}

/// Finds ports and checks direction and width.
struct Pins<'a>(&'a Instance);

impl Pins<'_> {
    fn find(&self, name: &str, width: usize, output: bool) -> Result<*mut c_void, ModelError> {
        let port = self.0.port(name)?;
        if port.width as usize != width || port.is_output != output {
            let kind = if output { "output" } else { "input" };
            return Err(self.0.no_port(format!("{kind} {name} of {width} bits")));
        }
        Ok(if output { port.sampled_ptr() } else { port.value_ptr() })
    }

    fn bit_in(&self, name: &str) -> Result<BitIn, ModelError> {
        Ok(BitIn(self.find(name, 1, false)?.cast()))
    }

    fn bit_out(&self, name: &str) -> Result<BitOut, ModelError> {
        Ok(BitOut(self.find(name, 1, true)?.cast()))
    }

    fn bytes_in(&self, name: &str, width: usize) -> Result<BytesIn, ModelError> {
        Ok(BytesIn {
            ptr: self.find(name, width, false)?.cast(),
            len: storage_bytes(width as u32),
        })
    }

    fn bytes_out(&self, name: &str, width: usize) -> Result<BytesOut, ModelError> {
        Ok(BytesOut {
            ptr: self.find(name, width, true)?.cast(),
            len: storage_bytes(width as u32),
        })
    }
}

/// Number of leading lanes that a keep mask names; `None` when it has holes.
fn lanes(keep: &[u8]) -> Option<usize> {
    let mut count = 0;
    let mut ended = false;
    for byte in keep {
        let ones = byte.trailing_ones() as usize;
        if (*byte as u32) >> ones != 0 || ended && ones != 0 {
            return None;
        }
        count += ones;
        ended |= ones < 8;
    }
    Some(count)
}

impl Device for NicModel {
    fn data_bytes(&self) -> usize {
        self.width
    }

    fn set_reset(&mut self, on: bool) {
        self.reset.set(on);
    }

    fn set_bus_master(&mut self, on: bool) {
        self.bus_master.set(on);
    }

    fn set_port_up(&mut self, up: bool) {
        self.port_up.set(up);
    }

    fn set_tlp(&mut self, stream: TlpIn, beat: Option<TlpBeat<'_>>) {
        let pins = self.in_pins(stream);
        pins.valid.set(beat.is_some());
        if let Some(beat) = beat {
            pins.header.set(beat.header);
            pins.data.set(beat.data);
            pins.last.set(beat.last);
        }
    }

    fn tlp_ready(&self, stream: TlpIn) -> bool {
        self.in_pins(stream).ready.get()
    }

    fn set_tlp_ready(&mut self, stream: TlpOut, ready: bool) {
        self.out_pins(stream).ready.set(ready);
    }

    fn tlp(&self, stream: TlpOut) -> Option<TlpBeat<'_>> {
        let pins = self.out_pins(stream);
        if !pins.valid.get() {
            return None;
        }
        let header = pins.header.get().first_chunk()?;
        Some(TlpBeat {
            header,
            data: pins.data.get(),
            last: pins.last.get(),
        })
    }

    fn set_mac_rx(&mut self, beat: Option<MacBeat<'_>>) {
        self.rx_valid.set(beat.is_some());
        if let Some(beat) = beat {
            self.rx_data.set(beat.data);
            let keep = if beat.data.len() >= 64 {
                u64::MAX
            } else {
                (1 << beat.data.len()) - 1
            };
            self.rx_keep.set(&keep.to_le_bytes()[..self.rx_keep.len]);
            self.rx_last.set(beat.last);
            self.rx_error.set(beat.error);
        }
    }

    fn mac_rx_ready(&self) -> bool {
        self.rx_ready.get()
    }

    fn set_mac_tx_ready(&mut self, ready: bool) {
        self.tx_ready.set(ready);
    }

    fn mac_tx(&self) -> Result<Option<MacBeat<'_>>, BadKeep> {
        if !self.tx_valid.get() {
            return Ok(None);
        }
        let last = self.tx_last.get();
        let count = lanes(self.tx_keep.get()).ok_or(BadKeep)?;
        if count == 0 || !last && count != self.width {
            return Err(BadKeep);
        }
        Ok(Some(MacBeat {
            data: &self.tx_data.get()[..count],
            last,
            error: false,
        }))
    }

    fn clock(&mut self) -> Result<(), ModelError> {
        self.instance.clock(1)
    }

    fn settle(&mut self) -> Result<(), ModelError> {
        self.instance.settle()
    }

    fn edge(&mut self) -> Result<(), ModelError> {
        self.instance.edge()
    }
}

#[cfg(test)]
mod tests {
    use super::lanes;

    #[test]
    fn keep_masks_count_leading_lanes_and_refuse_holes() {
        assert_eq!(lanes(&[0xff]), Some(8));
        assert_eq!(lanes(&[0x07]), Some(3));
        assert_eq!(lanes(&[0xff, 0x01]), Some(9));
        assert_eq!(lanes(&[0x00, 0x00]), Some(0));
        assert_eq!(lanes(&[0x05]), None);
        assert_eq!(lanes(&[0x7f, 0x01]), None);
        assert_eq!(lanes(&[0x00, 0x01]), None);
    }
}
