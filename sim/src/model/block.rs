// SPDX-License-Identifier: Apache-2.0
//! A harness for benches of single RTL blocks: any module, ports by name.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use rustc_hash::FxHashMap;

use super::build::{BuildSpec, Effort, Variant};
use super::instance::{Instance, InstanceParams, PortInfo, read_small, write_small};
use super::{ModelError, rtl};

/// Describes a block to be built; see [`BlockModel::builder`].
#[derive(Debug, Clone)]
pub struct BlockBuilder {
    top: String,
    extra: Vec<PathBuf>,
    params: Vec<(String, String)>,
    defines: Vec<String>,
    seed: Option<u64>,
    trace_name: Option<String>,
    period_ps: u64,
    effort: Effort,
}

impl BlockBuilder {
    /// Adds a source file outside of `rtl/`: the bench's own wrapper. Relative to the project's root.
    pub fn source(mut self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.extra.push(if path.is_absolute() {
            path
        } else {
            rtl::project_root().join(path)
        });
        self
    }

    /// Overrides a parameter of the top with a SystemVerilog literal: `param("DataW", 512)`.
    pub fn param(mut self, name: &str, value: impl ToString) -> Self {
        self.params.push((name.to_owned(), value.to_string()));
        self
    }

    /// Defines a preprocessor symbol: `NAME` or `NAME=value`.
    pub fn define(mut self, define: &str) -> Self {
        self.defines.push(define.to_owned());
        self
    }

    /// Starts all registers and x values at random by this seed, to show what reset forgets.
    pub fn random_init(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Name of the trace file that WAVES=1 writes (`out/waves/<name>.fst`); by default
    /// `<test>.<number of the model in the test>-<block>`.
    pub fn trace_name(mut self, name: &str) -> Self {
        self.trace_name = Some(name.to_owned());
        self
    }

    /// How much the compiler shall do; [`Effort::Full`] pays off in long runs.
    pub fn effort(mut self, effort: Effort) -> Self {
        self.effort = effort;
        self
    }

    /// Clock period in trace time.
    pub fn period_ps(mut self, period_ps: u64) -> Self {
        self.period_ps = period_ps;
        self
    }

    /// Builds (or finds) the model and makes an instance. Ports start at 0; nothing is reset yet.
    ///
    /// # Errors
    /// See [`ModelError`].
    pub fn build(self) -> Result<BlockModel, ModelError> {
        let waves = std::env::var("WAVES").is_ok_and(|v| !v.is_empty() && v != "0");
        let spec = BuildSpec {
            sources: rtl::closure(&self.top, &self.extra)?,
            top: self.top.clone(),
            params: self.params,
            defines: self.defines,
            variant: if waves { Variant::Trace } else { Variant::Fast },
            effort: self.effort,
            random_init: self.seed.is_some(),
        };
        let params = InstanceParams {
            name: self.top.clone(),
            period_ps: self.period_ps,
            seed: self.seed.unwrap_or(1),
        };
        let mut instance = Instance::new(&spec, &params)?;
        if waves {
            let name = self.trace_name.unwrap_or_else(|| {
                // A test may make several models of a block, one after the other.
                static MADE: AtomicU32 = AtomicU32::new(0);
                let number = MADE.fetch_add(1, Ordering::Relaxed);
                let thread = std::thread::current();
                format!(
                    "{}.{number}-{}",
                    thread.name().unwrap_or("main").replace("::", "."),
                    self.top
                )
            });
            instance.trace_open(&rtl::project_root().join("out/waves").join(format!("{name}.fst")))?;
        }
        let index = instance
            .ports()
            .iter()
            .enumerate()
            .map(|(i, p)| (p.name.clone(), PortId(i)))
            .collect();
        Ok(BlockModel { instance, index })
    }
}

/// A port found by name once, for loops that touch it every cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortId(usize);

/// A Verilated block with its ports by name. Made for tests: a wrong port name or width and a failed
/// assertion panic with a message; [`BlockModel::try_clock`] gives the assertion as a value.
///
/// One cycle of a bench: set inputs, [`eval`](Self::eval) when combinational outputs (a ready) matter,
/// get outputs, [`clock`](Self::clock).
///
/// ```no_run
/// # fn main() -> Result<(), openrnic_sim::model::ModelError> {
/// use openrnic_sim::model::BlockModel;
/// let mut fifo = BlockModel::builder("rnic_fifo").param("Depth", 8).build()?;
/// fifo.reset(2);
/// fifo.set("in_valid_i", 1);
/// fifo.set_wide("in_data_i", &[1, 2, 3, 4]);
/// fifo.clock();
/// assert_eq!(fifo.get("out_valid_o"), 1);
/// # Ok(()) }
/// ```
pub struct BlockModel {
    instance: Instance,
    index: FxHashMap<String, PortId>,
}

impl BlockModel {
    /// Starts the description of a block: `top` is a module of `rtl/` or of an added source; the files
    /// that it needs are found by name.
    pub fn builder(top: &str) -> BlockBuilder {
        BlockBuilder {
            top: top.to_owned(),
            extra: Vec::new(),
            params: Vec::new(),
            defines: Vec::new(),
            seed: None,
            trace_name: None,
            period_ps: 8000,
            effort: Effort::Quick,
        }
    }

    /// All ports of the block.
    pub fn ports(&self) -> &[PortInfo] {
        self.instance.ports()
    }

    /// Finds a port.
    ///
    /// # Panics
    /// When there is no such port.
    #[track_caller]
    pub fn port(&self, name: &str) -> PortId {
        match self.index.get(name) {
            Some(id) => *id,
            None => panic!("{}", self.instance.no_port(format!("port {name}"))),
        }
    }

    #[track_caller]
    fn info(&self, id: PortId, narrow: bool, input: bool) -> &PortInfo {
        let port = &self.instance.ports()[id.0];
        assert!(
            !narrow || port.width <= 64,
            "{} has {} bits: use the wide call",
            port.name,
            port.width
        );
        assert!(
            !input || !port.is_output,
            "{} is an output: it cannot be set",
            port.name
        );
        port
    }

    /// Sets an input of at most 64 bits. Bits beyond its width must be 0.
    ///
    /// # Panics
    /// When it is no such input, or the value does not fit.
    #[track_caller]
    pub fn set(&mut self, name: &str, value: u64) {
        self.set_id(self.port(name), value);
    }

    /// As [`set`](Self::set), by id.
    ///
    /// # Panics
    /// As [`set`](Self::set).
    #[track_caller]
    pub fn set_id(&mut self, id: PortId, value: u64) {
        let port = self.info(id, true, true);
        assert!(
            port.width == 64 || value >> port.width == 0,
            "{value:#x} does not fit {}[{}]",
            port.name,
            port.width
        );
        // SAFETY: the storage of a live port, at most 64 bits wide, that is an input.
        unsafe { write_small(port.value_ptr(), port.width, value) }
    }

    /// Sets an input of any width from 32-bit words, least significant first; missing words are 0.
    ///
    /// # Panics
    /// When it is no such input, or the value does not fit.
    #[track_caller]
    pub fn set_wide(&mut self, name: &str, words: &[u32]) {
        let id = self.port(name);
        let port = self.info(id, false, true);
        let word = |i: usize| words.get(i).copied().unwrap_or(0);
        let spare = port.words() as u32 * 32 - port.width;
        assert!(
            words.iter().skip(port.words()).all(|w| *w == 0)
                && (spare == 0 || word(port.words() - 1) >> (32 - spare) == 0),
            "the value does not fit {}[{}]",
            port.name,
            port.width
        );
        if port.width <= 64 {
            return self.set_id(id, u64::from(word(0)) | u64::from(word(1)) << 32);
        }
        let ptr = port.value_ptr().cast::<u32>();
        for i in 0..port.words() {
            // SAFETY: a live input's array of that many words.
            unsafe { ptr.add(i).write(word(i)) }
        }
    }

    /// Value of a port of at most 64 bits, now: after a [`clock`](Self::clock) as the edge left it,
    /// after an [`eval`](Self::eval) as the inputs make it.
    ///
    /// # Panics
    /// When there is no such port or it is wider.
    #[track_caller]
    pub fn get(&self, name: &str) -> u64 {
        self.get_id(self.port(name))
    }

    /// As [`get`](Self::get), by id.
    ///
    /// # Panics
    /// When the port is wider than 64 bits.
    #[track_caller]
    pub fn get_id(&self, id: PortId) -> u64 {
        let port = self.info(id, true, false);
        // SAFETY: the storage of a live port, at most 64 bits wide.
        unsafe { read_small(port.value_ptr(), port.width) }
    }

    /// Value of an output of at most 64 bits just before the last rising edge: what the design's
    /// neighbours would have seen in that cycle.
    ///
    /// # Panics
    /// When there is no such output or it is wider.
    #[track_caller]
    pub fn sampled(&self, name: &str) -> u64 {
        let port = self.info(self.port(name), true, false);
        assert!(port.is_output, "{} is an input: it is not sampled", port.name);
        // SAFETY: the sample of a live output, at most 64 bits wide.
        unsafe { read_small(port.sampled_ptr(), port.width) }
    }

    /// Value of a port of any width, in 32-bit words, least significant first.
    ///
    /// # Panics
    /// When there is no such port.
    #[track_caller]
    pub fn get_wide(&self, name: &str) -> Vec<u32> {
        let port = self.info(self.port(name), false, false);
        read_words(port, port.value_ptr())
    }

    /// As [`sampled`](Self::sampled), for any width.
    ///
    /// # Panics
    /// When there is no such output.
    #[track_caller]
    pub fn sampled_wide(&self, name: &str) -> Vec<u32> {
        let port = self.info(self.port(name), false, false);
        assert!(port.is_output, "{} is an input: it is not sampled", port.name);
        read_words(port, port.sampled_ptr())
    }

    /// Sets bits `lsb .. lsb + width` of an input of any width, leaving the others: for a field of a
    /// packed struct.
    ///
    /// # Panics
    /// When it is no such input, the range lies outside it, or the value does not fit the range.
    #[track_caller]
    pub fn set_bits(&mut self, name: &str, lsb: u32, width: u32, value: u64) {
        let mut words = self.get_wide(name);
        let port = self.info(self.port(name), false, true);
        assert!(
            (1..=64).contains(&width) && lsb + width <= port.width,
            "bits {lsb} +: {width} are not in {}[{}]",
            name,
            port.width
        );
        assert!(
            width == 64 || value >> width == 0,
            "{value:#x} does not fit {width} bits of {name}"
        );
        for bit in 0..width {
            let at = lsb + bit;
            let word = &mut words[(at / 32) as usize];
            *word = *word & !(1 << (at % 32)) | (((value >> bit) & 1) as u32) << (at % 32);
        }
        self.set_wide(name, &words);
    }

    /// Bits `lsb .. lsb + width` of a port of any width.
    ///
    /// # Panics
    /// When there is no such port or the range lies outside it.
    #[track_caller]
    pub fn get_bits(&self, name: &str, lsb: u32, width: u32) -> u64 {
        let words = self.get_wide(name);
        let port = self.info(self.port(name), false, false);
        assert!(
            (1..=64).contains(&width) && lsb + width <= port.width,
            "bits {lsb} +: {width} are not in {}[{}]",
            name,
            port.width
        );
        (0..width).fold(0, |value, bit| {
            let at = lsb + bit;
            value | u64::from(words[(at / 32) as usize] >> (at % 32) & 1) << bit
        })
    }

    /// Lets changed inputs reach combinational outputs; no clock edge.
    ///
    /// # Panics
    /// When an assertion fails.
    #[track_caller]
    pub fn eval(&mut self) {
        if let Err(error) = self.instance.eval() {
            panic!("{error}");
        }
    }

    /// One clock cycle.
    ///
    /// # Panics
    /// When an assertion fails.
    #[track_caller]
    pub fn clock(&mut self) {
        self.clocks(1);
    }

    /// Several clock cycles with the same inputs.
    ///
    /// # Panics
    /// When an assertion fails.
    #[track_caller]
    pub fn clocks(&mut self, cycles: u64) {
        if let Err(error) = self.instance.clock(cycles) {
            panic!("{error}");
        }
    }

    /// One clock cycle; a failed assertion is a value. For tests that a contract is asserted.
    ///
    /// # Errors
    /// [`ModelError::Assertion`].
    pub fn try_clock(&mut self) -> Result<(), ModelError> {
        self.instance.clock(1)
    }

    /// Holds `rst_i` for some cycles.
    ///
    /// # Panics
    /// When the block has no `rst_i`, or an assertion fails.
    #[track_caller]
    pub fn reset(&mut self, cycles: u64) {
        self.set("rst_i", 1);
        self.clocks(cycles);
        self.set("rst_i", 0);
    }

    /// Clocks until `done` holds, at most `budget` cycles; returns the cycles it took.
    ///
    /// # Panics
    /// When the budget runs out (naming `what` was awaited), or an assertion fails.
    #[track_caller]
    pub fn clock_until(&mut self, what: &str, budget: u64, mut done: impl FnMut(&mut Self) -> bool) -> u64 {
        for cycle in 0..budget {
            if done(self) {
                return cycle;
            }
            self.clock();
        }
        assert!(
            done(self),
            "{}: waited {budget} cycles for {what}, in vain",
            self.instance.top()
        );
        budget
    }

    /// Clock cycles since the model was made.
    pub fn cycles(&self) -> u64 {
        self.instance.cycles()
    }
}

fn read_words(port: &PortInfo, ptr: *const std::ffi::c_void) -> Vec<u32> {
    if port.width <= 64 {
        // SAFETY: the storage or the sample of a live port, at most 64 bits wide.
        let value = unsafe { read_small(ptr, port.width) };
        return [value as u32, (value >> 32) as u32][..port.words()].to_vec();
    }
    // SAFETY: the storage or the sample of a live port is an array of that many words.
    unsafe { std::slice::from_raw_parts(ptr.cast::<u32>(), port.words()) }.to_vec()
}
