// SPDX-License-Identifier: Apache-2.0
//! PHY and MAC of a device that has them on its board: state of the link and counters, out of the MAC block of BAR0.

use std::fmt;

use openrnic_spec::{PhyState, PhyStatus, regs};

use crate::bus::Bus;
use crate::device::{Device, lock};
use crate::error::{Error, Result};

/// What PHY and MAC tell. Counters count frames, wrap at the width of their register, begin when the board is switched on and go on through resets of the
/// function; each stands as it was when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MacStatus {
    /// How the PHY stands.
    pub phy_state: PhyState,
    /// The PHY's address on MDIO: found when the state is neither RESET nor NONE.
    pub phy_address: u8,
    /// Received well. A received frame counts once: here, or in the first that holds of `rx_er`, `rx_oversize`, `rx_runt`, `rx_fcs`.
    pub rx_good: u32,
    /// Received with a wrong FCS.
    pub rx_fcs: u16,
    /// Shorter than 64 bytes with FCS.
    pub rx_runt: u16,
    /// Longer than the MAC takes.
    pub rx_oversize: u16,
    /// The PHY told an error within it.
    pub rx_er: u16,
    /// Carrier without a start of frame.
    pub rx_junk: u16,
    /// Found no room; counted above as well.
    pub rx_drop: u16,
    /// Sent.
    pub tx_sent: u32,
    /// Ended with a wrong FCS for want of their next word.
    pub tx_underrun: u16,
    /// Thrown away for want of a link.
    pub tx_no_link: u16,
    /// Longer than the MAC takes: not sent.
    pub tx_long: u16,
}

impl<B: Bus> Device<B> {
    /// PHY and MAC; `None` where they are not on the board beside the core.
    ///
    /// # Errors
    /// Those of the bus; [`Error::Protocol`] when the PHY's state is none of [`PhyState`].
    pub fn mac_status(&self) -> Result<Option<MacStatus>> {
        let mut core = lock(&self.core)?;
        let status = PhyStatus(core.read32(regs::MAC_PHY_STATUS)?.to_le_bytes());
        if !status.present() {
            return Ok(None);
        }
        let phy_state = PhyState::try_from(status.state())
            .map_err(|e| Error::protocol(format!("MAC.PHY_STATUS has state {}: {e}", status.state())))?;
        let mut read = |register| core.read32(register);
        let rx_good = read(regs::MAC_RX_GOOD)?;
        let tx_sent = read(regs::MAC_TX_SENT)?;
        let mut short = |register| read(register).map(|count| count as u16);
        Ok(Some(MacStatus {
            phy_state,
            phy_address: status.address(),
            rx_good,
            rx_fcs: short(regs::MAC_RX_FCS)?,
            rx_runt: short(regs::MAC_RX_RUNT)?,
            rx_oversize: short(regs::MAC_RX_OVERSIZE)?,
            rx_er: short(regs::MAC_RX_ER)?,
            rx_junk: short(regs::MAC_RX_JUNK)?,
            rx_drop: short(regs::MAC_RX_DROP)?,
            tx_sent,
            tx_underrun: short(regs::MAC_TX_UNDERRUN)?,
            tx_no_link: short(regs::MAC_TX_NO_LINK)?,
            tx_long: short(regs::MAC_TX_LONG)?,
        }))
    }
}

impl fmt::Display for MacStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PHY {}", self.phy_state.name())?;
        if !matches!(self.phy_state, PhyState::Reset | PhyState::None) {
            write!(f, " at MDIO address {}", self.phy_address)?;
        }
        write!(
            f,
            "; received {} (bad: FCS {}, runt {}, oversize {}, RX_ER {}; junk {}; no room {}), sent {} (underrun {}, no link {}, too long {})",
            self.rx_good,
            self.rx_fcs,
            self.rx_runt,
            self.rx_oversize,
            self.rx_er,
            self.rx_junk,
            self.rx_drop,
            self.tx_sent,
            self.tx_underrun,
            self.tx_no_link,
            self.tx_long
        )
    }
}
