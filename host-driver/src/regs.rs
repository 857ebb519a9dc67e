// SPDX-License-Identifier: Apache-2.0
//! BAR0: the blocks that describe themselves, and the capabilities.

use std::collections::BTreeMap;

use openrnic_spec::{BLOCKS, DEV_MAGIC, DEV_VERSION, Feature, MAX_LOG_RING, QpType, RegAccess, WqeOpcode, regs};

use crate::bus::Bus;
use crate::error::{Doing, Error, Result};

/// Most blocks that a device may have; a longer list is a loop.
const MAX_BLOCKS: usize = 64;

/// A block of registers as the device describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundBlock {
    /// Byte offset in BAR0.
    pub base: u32,
    /// Type.
    pub block_type: u16,
    /// Version of the block.
    pub version: u16,
    /// Name; empty for a block that the driver does not know.
    pub name: &'static str,
}

/// Where the registers are.
#[derive(Debug, Clone, Default)]
pub(crate) struct RegMap {
    pub(crate) blocks: Vec<FoundBlock>,
    /// Start of a block in the specification -> start in this device.
    moved: BTreeMap<u32, u32>,
}

impl RegMap {
    /// Walks the block list.
    pub(crate) fn discover<B: Bus>(bus: &mut B, bar_bytes: u64) -> Result<(Self, u32)> {
        let mut read = |off: u32| bus.mmio_read32(u64::from(off)).doing("identifying the device");
        let magic = read(regs::ID_MAGIC)?;
        if magic != DEV_MAGIC {
            return Err(Error::BadDevice {
                what: format!("magic {magic:#010x}, expected {DEV_MAGIC:#010x}"),
            });
        }
        let version = read(regs::ID_VERSION)?;
        if version >> 16 != DEV_VERSION >> 16 {
            return Err(Error::BadDevice {
                what: format!(
                    "interface version {}.x, this driver knows {}.x",
                    version >> 16,
                    DEV_VERSION >> 16
                ),
            });
        }
        let mut map = Self::default();
        let mut base = 0u32;
        for _ in 0..MAX_BLOCKS {
            if !base.is_multiple_of(4) || u64::from(base) + 8 > bar_bytes {
                return Err(Error::BadDevice {
                    what: format!("the block list leads to offset {base:#x}, BAR0 has {bar_bytes:#x} bytes"),
                });
            }
            let word = read(base)?;
            let (block_type, block_version) = (word as u16, (word >> 16) as u16);
            let known = BLOCKS.iter().find(|b| b.block_type == block_type);
            if let Some(known) = known {
                map.moved.entry(known.base).or_insert(base);
            }
            map.blocks.push(FoundBlock {
                base,
                block_type,
                version: block_version,
                name: known.map_or("", |b| b.name),
            });
            base = read(base + 4)?;
            if base == 0 {
                break;
            }
        }
        if base != 0 {
            return Err(Error::BadDevice {
                what: format!("the block list has more than {MAX_BLOCKS} entries"),
            });
        }
        if let Some(missing) = BLOCKS.iter().find(|b| !map.moved.contains_key(&b.base)) {
            return Err(Error::BadDevice {
                what: format!("the block list lacks {}", missing.name),
            });
        }
        Ok((map, version))
    }

    /// Where a register of the specification is in this device.
    pub(crate) fn at(&self, reg: u32) -> u64 {
        match self.moved.range(..=reg).next_back() {
            Some((spec, here)) => u64::from(reg - spec) + u64::from(*here),
            None => u64::from(reg),
        }
    }
}

/// Every readable register of the specification with its name and value, for a dump.
pub(crate) fn dump<B: Bus>(bus: &mut B, map: &RegMap) -> Result<Vec<(String, u64)>> {
    let mut out = Vec::new();
    for block in BLOCKS {
        for reg in block.regs {
            if reg.access == RegAccess::WriteOnly {
                continue;
            }
            let at = map.at(reg.offset);
            let value = match reg.width {
                64 => bus.mmio_read64(at),
                _ => bus.mmio_read32(at).map(u64::from),
            }
            .doing("reading a register")?;
            out.push((format!("{}.{}", block.name, reg.name), value));
        }
    }
    Ok(out)
}

/// Capabilities of the device as built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceCaps {
    /// log2 of the entries of the QP table.
    pub log_qp: u32,
    /// Completion queues.
    pub num_cq: u32,
    /// Memory regions.
    pub num_mr: u32,
    /// Protection domains.
    pub num_pd: u32,
    /// Event queues.
    pub num_eq: u32,
    /// Doorbell pages.
    pub num_uar: u32,
    /// Width of the data path in bits.
    pub data_width: u32,
    /// Clock period in picoseconds.
    pub clk_period_ps: u32,
    /// DMA read tags.
    pub dma_tags: u32,
    /// SGEs per work request.
    pub max_sge: u32,
    /// Inline bytes per work request.
    pub max_inline: u32,
    /// Bit n: QPs of type n can be created.
    pub qp_types: u32,
    /// Bit n: QPs of type n have a data path.
    pub qp_types_data: u32,
    /// Largest max_rd_atomic and max_dest_rd_atomic.
    pub max_rd_atomic: u32,
    /// Ports.
    pub num_ports: u32,
    /// Entries of the GID table.
    pub num_gid: u32,
    /// Entries of the P_Key table.
    pub num_pkey: u32,
    /// Bit n: WQE opcode n can be posted.
    pub wqe_opcodes: u32,
    /// Largest log_sq_stride.
    pub max_sq_stride: u32,
    /// Largest log_rq_stride.
    pub max_rq_stride: u32,
    /// Shared receive queues.
    pub num_srq: u32,
    /// XRC domains.
    pub num_xrcd: u32,
    /// What a build may leave out.
    pub features: Feature,
    /// log2 of the bytes of the memory on the board at [`LOCAL_MEM_BASE`](openrnic_spec::LOCAL_MEM_BASE); 0: there is none.
    pub local_mem_log_size: u32,
}

impl DeviceCaps {
    /// Bytes of the memory on the board, 0 without one.
    pub fn local_mem_bytes(&self) -> u64 {
        match self.local_mem_log_size {
            0 => 0,
            log => 1 << log.min(63),
        }
    }

    pub(crate) fn read<B: Bus>(bus: &mut B, map: &RegMap) -> Result<Self> {
        let mut get = |reg: u32| bus.mmio_read32(map.at(reg)).doing("reading the capabilities");
        let caps = Self {
            log_qp: get(regs::CAPS_LOG_QP)?,
            num_cq: get(regs::CAPS_NUM_CQ)?,
            num_mr: get(regs::CAPS_NUM_MR)?,
            num_pd: get(regs::CAPS_NUM_PD)?,
            num_eq: get(regs::CAPS_NUM_EQ)?,
            num_uar: get(regs::CAPS_NUM_UAR)?,
            data_width: get(regs::CAPS_DATA_W)?,
            clk_period_ps: get(regs::CAPS_CLK_PERIOD_PS)?,
            dma_tags: get(regs::CAPS_DMA_TAGS)?,
            max_sge: get(regs::CAPS_MAX_SGE)?,
            max_inline: get(regs::CAPS_MAX_INLINE)?,
            qp_types: get(regs::CAPS_QP_TYPES)?,
            qp_types_data: get(regs::CAPS_QP_TYPES_DATA)?,
            max_rd_atomic: get(regs::CAPS_MAX_RD_ATOMIC)?,
            num_ports: get(regs::CAPS_NUM_PORTS)?,
            num_gid: get(regs::CAPS_NUM_GID)?,
            num_pkey: get(regs::CAPS_NUM_PKEY)?,
            wqe_opcodes: get(regs::CAPS_WQE_OPCODES)?,
            max_sq_stride: get(regs::CAPS_MAX_SQ_STRIDE)?,
            max_rq_stride: get(regs::CAPS_MAX_RQ_STRIDE)?,
            num_srq: get(regs::CAPS_NUM_SRQ)?,
            num_xrcd: get(regs::CAPS_NUM_XRCD)?,
            features: Feature(get(regs::CAPS_FEATURES)?),
            local_mem_log_size: get(regs::CAPS_LOCAL_MEM_LOG_SIZE)?,
        };
        caps.check()?;
        Ok(caps)
    }

    /// What no device can have: such numbers would make the driver allocate or count nonsense.
    fn check(&self) -> Result<()> {
        let ranges: [(&str, u32, u32, u32); 10] = [
            ("LOG_QP", self.log_qp, 2, 23),
            ("NUM_CQ", self.num_cq, 1, 65_536),
            ("NUM_EQ", self.num_eq, 1, 256),
            ("NUM_UAR", self.num_uar, 1, 256),
            ("MAX_SGE", self.max_sge, 1, 255),
            ("MAX_INLINE", self.max_inline, 0, 4096),
            ("MAX_SQ_STRIDE", self.max_sq_stride, 0, 6),
            ("MAX_RQ_STRIDE", self.max_rq_stride, 0, 6),
            ("NUM_SRQ", self.num_srq, 0, 65_536),
            ("NUM_XRCD", self.num_xrcd, 0, 65_536),
        ];
        for (name, value, low, high) in ranges {
            if !(low..=high).contains(&value) {
                return Err(Error::BadDevice {
                    what: format!("capability {name} is {value}, expected {low} to {high}"),
                });
            }
        }
        Ok(())
    }

    /// Most entries of a send or receive queue. A shared receive queue holds one work request less.
    pub fn max_qp_wr(&self) -> u32 {
        1 << MAX_LOG_RING
    }

    /// Whether QPs of the type can be created.
    pub fn supports_type(&self, qp_type: QpType) -> bool {
        self.qp_types >> (qp_type as u32) & 1 != 0
    }

    /// Whether work can be posted on QPs of the type.
    pub fn has_data_path(&self, qp_type: QpType) -> bool {
        self.qp_types_data >> (qp_type as u32) & 1 != 0
    }

    /// Whether the operation can be posted.
    pub fn supports_opcode(&self, opcode: WqeOpcode) -> bool {
        // REG_MR has a number beyond the mask; it comes with LOCAL_INV.
        let bit = if opcode == WqeOpcode::RegMr {
            WqeOpcode::LocalInv
        } else {
            opcode
        } as u32;
        bit < 32 && self.wqe_opcodes >> bit & 1 != 0
    }
}
