// SPDX-License-Identifier: Apache-2.0
//! Which QPs there are, as the device tells: LIST_QP.

use openrnic_spec::{CmdOpcode, CmdQp, QpState, QpType};

use crate::bus::Bus;
use crate::device::{Device, lock};
use crate::error::{Doing, Error, Result};
use crate::types::{PdHandle, Qpn};

/// Which QPs a list shall name; the default is all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QpFilter {
    /// Only QPs in this state.
    pub state: Option<QpState>,
    /// Only QPs of this type.
    pub qp_type: Option<QpType>,
    /// Only QPs of this protection domain.
    pub pd: Option<PdHandle>,
}

/// Most QPNs asked for by one command.
const CHUNK: u32 = 256;

impl<B: Bus> Device<B> {
    /// The numbers of all QPs that `filter` lets through, in the order of the device's table. A QP that another owner of the
    /// device creates or moves meanwhile may or may not be among them.
    ///
    /// # Errors
    /// Those of commands.
    pub fn list_qps(&self, filter: QpFilter) -> Result<Vec<Qpn>> {
        let mut core = lock(&self.core)?;
        // A device lists no more at once than its table holds.
        let chunk = CHUNK.min(1 << core.info.caps.log_qp.min(31));
        let mut out = Vec::new();
        let mut index = 0;
        loop {
            let buf = core
                .bus
                .dma_alloc(4 * chunk as usize, 64)
                .doing("allocating a list of QPNs")?;
            let command = CmdQp::new()
                .with_opcode(CmdOpcode::ListQp.into())
                .with_handle(index)
                .with_count(chunk)
                .with_by_state(filter.state.is_some())
                .with_state(filter.state.map_or(0, Into::into))
                .with_by_type(filter.qp_type.is_some())
                .with_qp_type(filter.qp_type.map_or(0, Into::into))
                .with_by_pd(filter.pd.is_some())
                .with_pd(filter.pd.map_or(0, |pd| pd.0))
                .with_list_addr(buf.addr);
            let mut bytes = vec![0; 4 * chunk as usize];
            let result = core.command_with(command.0, 1, buf, |core, buf, _| {
                core.bus.dma_read(buf.addr, &mut bytes).doing("reading a list of QPNs")
            })?;
            if result.count > chunk || (result.handle != 0 && result.handle <= index) {
                return Err(Error::protocol(format!(
                    "LIST_QP from index {index} returned {} QPNs and index {}",
                    result.count, result.handle
                )));
            }
            let listed = bytes.chunks_exact(4).take(result.count as usize);
            out.extend(listed.map(|c| Qpn(c.first_chunk().map_or(0, |b| u32::from_le_bytes(*b)))));
            index = result.handle;
            if index == 0 {
                return Ok(out);
            }
        }
    }
}
