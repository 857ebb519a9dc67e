// SPDX-License-Identifier: Apache-2.0
//! Step `command`: a command as its bits are, with what it reads and writes in host memory, and all that its completion says. So
//! written, a difference between RTL and reference model is a scenario (`make soak`).

use anyhow::{Context, Result, bail, ensure};
use openrnic_driver::Bus;
use openrnic_sim::pcie::{CompletionFault, Which};
use openrnic_spec::{self as spec, CmdStatus};
use serde::Deserialize;
use toml::Spanned;

use crate::run::{Run, expect_status};
use crate::scenario::table;
use crate::value::{Hex, Named};

/// What can be made unreadable.
pub const BUFFERS: [&str; 2] = ["records", "list"];

/// Where a command has the address of its QPN list and of its records.
const LIST_ADDR: usize = 48;
const ATTR_ADDR: usize = 56;

table! {
    /// Step `command`: 64 raw bytes into the command ring (the driver sets the tag).
    Command {
        /// NIC.
        nic: Spanned<String>,
        /// The bytes; what is missing at the end is zero.
        hex: Spanned<Hex>,
        /// Status; by default OK.
        #[serde(default)]
        status: Option<Named<spec::CmdStatus>>,
        /// The rule of a refusal by the gate.
        #[serde(default)]
        rule: Option<Named<spec::GateRule>>,
        /// Further fields of the completion.
        #[serde(default)]
        handle: Option<u32>,
        /// Number of QPs.
        #[serde(default)]
        qps: Option<u32>,
        /// First queue pair refused.
        #[serde(default)]
        offender: Option<u32>,
        /// Its place in the batch.
        #[serde(default)]
        offender_index: Option<u32>,
        /// Attributes, or offset of a bad parameter.
        #[serde(default)]
        detail: Option<u32>,
        /// Records of 64 bytes: they stand in host memory, their address is put into bytes 56 to 63 (to what is there already).
        #[serde(default)]
        records: Vec<Spanned<Hex>>,
        /// QPNs: they stand in host memory, their address is put into bytes 48 to 55.
        #[serde(default)]
        list: Vec<u32>,
        /// Room for so many QPNs that the command writes there.
        #[serde(default)]
        list_room: usize,
        /// One of [`BUFFERS`]: reads of it fail.
        #[serde(default)]
        unreadable: Option<Spanned<String>>,
        /// What stands at the place of the records afterwards; by default what stood there before.
        #[serde(default)]
        gets: Option<Spanned<Hex>>,
        /// What stands in the list afterwards; by default what stood there before.
        #[serde(default)]
        gets_list: Option<Vec<u32>>,
    }
}

impl Command {
    /// What is wrong with the step, apart from names.
    pub fn mistake(&self) -> Option<(std::ops::Range<usize>, String)> {
        let hex = self.hex.get_ref().0.len();
        if hex > 64 {
            return Some((self.hex.span(), format!("{hex} bytes: a command has 64")));
        }
        for record in &self.records {
            let n = record.get_ref().0.len();
            if n != 64 {
                return Some((record.span(), format!("{n} bytes: a record has 64")));
            }
        }
        if let Some(u) = &self.unreadable
            && !BUFFERS.contains(&u.get_ref().as_str())
        {
            return Some((u.span(), format!("`{}`: it is one of {BUFFERS:?}", u.get_ref())));
        }
        if self
            .gets_list
            .as_ref()
            .is_some_and(|g| g.len() > self.list.len().max(self.list_room))
        {
            return Some((
                self.hex.span(),
                "`gets_list` is longer than `list` and `list_room`".into(),
            ));
        }
        None
    }
}

fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

impl Run<'_> {
    pub(crate) fn raw_command(&mut self, nic: usize, c: &Command) -> Result<()> {
        let mut raw = [0u8; 64];
        for (place, byte) in raw.iter_mut().zip(&c.hex.get_ref().0) {
            *place = *byte;
        }
        let records: Vec<u8> = c.records.iter().flat_map(|r| r.get_ref().0.clone()).collect();
        let list = bytes_of(&c.list);
        let sizes = [
            records.len().max(c.gets.as_ref().map_or(0, |g| g.get_ref().0.len())),
            list.len().max(4 * c.list_room),
        ];
        // Whatever the command's own bits say of the address is an offset in the buffer.
        let device = self.nics[nic].device.clone();
        let mut buffers = Vec::new();
        for (at, (content, size)) in [ATTR_ADDR, LIST_ADDR]
            .into_iter()
            .zip([&records, &list].into_iter().zip(sizes))
        {
            if size == 0 {
                buffers.push(None);
                continue;
            }
            let mut offset = [0u8; 8];
            offset.copy_from_slice(&raw[at..at + 8]);
            let offset = u64::from_le_bytes(offset);
            ensure!(
                offset < 4096,
                "{offset:#x} at byte {at} of `hex` is no offset in a buffer"
            );
            let buf = device.with_bus(|bus| bus.dma_alloc(size + offset as usize, 4096))??;
            let mut before = content.clone();
            before.resize(size, 0);
            device.with_bus(|bus| bus.dma_write(buf.addr + offset, &before))??;
            raw[at..at + 8].copy_from_slice(&(buf.addr + offset).to_le_bytes());
            buffers.push(Some((buf, buf.addr + offset, before)));
        }
        if let Some(which) = &c.unreadable {
            let place = usize::from(which.get_ref() == "list");
            let Some((_, start, content)) = &buffers[place] else {
                bail!("`unreadable`: the command has no {}", which.get_ref());
            };
            let which = Which::Range {
                start: *start,
                len: content.len() as u64,
                times: 1,
            };
            self.sim.host_fault(nic, which, CompletionFault::Abort)?;
        }

        // A command of which nothing but the status is asked may also find the device dead.
        let plain = buffers.iter().all(Option::is_none) && c.rule.is_none();
        let wanted = c.status.map_or(CmdStatus::Ok, |s| s.0);
        if plain && wanted == CmdStatus::Fatal {
            return expect_status(device.command(raw).map(drop), Some(wanted));
        }
        let got = device.raw_command(raw)?;
        let mut wrong = Vec::new();
        let status = CmdStatus::try_from(got.status());
        if status.as_ref().ok() != Some(&wanted) {
            let told = status.map_or_else(|_| got.status().to_string(), |s| s.to_string());
            wrong.push(format!("status {told}, expected {wanted}"));
        }
        let fields = [
            ("rule", c.rule.map(|r| u32::from(u8::from(r.0))), u32::from(got.rule())),
            ("handle", c.handle, got.handle()),
            ("qps", c.qps, got.count()),
            ("offender", c.offender, got.offender()),
            ("offender_index", c.offender_index, got.offender_index()),
            ("detail", c.detail, got.detail()),
        ];
        for (name, want, is) in fields {
            if let Some(want) = want
                && want != is
            {
                wrong.push(format!("{name} {is:#x}, expected {want:#x}"));
            }
        }
        let after = [
            c.gets.as_ref().map(|g| g.get_ref().0.clone()),
            c.gets_list.as_deref().map(bytes_of),
        ];
        for ((name, buffer), after) in ["records", "list"].into_iter().zip(&buffers).zip(after) {
            let Some((buf, addr, before)) = buffer else { continue };
            let mut want = before.clone();
            for (place, byte) in want.iter_mut().zip(after.unwrap_or_default()) {
                *place = byte;
            }
            let mut is = vec![0; want.len()];
            device.with_bus(|bus| bus.dma_read(*addr, &mut is))??;
            if let Some(i) = (0..is.len()).find(|i| is[*i] != want[*i]) {
                wrong.push(format!("{name}: byte {i} is {:#04x}, expected {:#04x}", is[i], want[i]));
            }
            device.with_bus(|bus| bus.dma_free(*buf))?.context("freeing a buffer")?;
        }
        ensure!(wrong.is_empty(), "the command's completion: {}", wrong.join("; "));
        Ok(())
    }
}
