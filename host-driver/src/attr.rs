// SPDX-License-Identifier: Apache-2.0
//! Attributes of a queue pair, and what the Linux user interface does to them before the device sees
//! them.

use openrnic_spec::{self as spec, Access, Mtu, QpAttrBit, QpState, QpType};

use crate::error::{Error, Result};
use crate::types::{Gid, Psn, Qpn};

/// Where packets of a QP go, as ibv_ah_attr on RoCE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressVector {
    /// GID of the peer.
    pub dgid: Gid,
    /// MAC address of the peer or the next hop; `None`: from the neighbour table.
    pub dmac: Option<[u8; 6]>,
    /// Index of the own GID.
    pub sgid_index: u8,
    /// TTL.
    pub hop_limit: u8,
    /// TOS or traffic class.
    pub traffic_class: u8,
    /// 20 bits; 0 lets the UDP source port come from the QPNs.
    pub flow_label: u32,
    /// VLAN tag: PCP in bits 14:12, ID in 11:0.
    pub vlan: Option<u16>,
    /// Port.
    pub port: u8,
    /// A global route follows; RoCE knows no other.
    pub is_global: bool,
}

impl Default for AddressVector {
    fn default() -> Self {
        Self {
            dgid: Gid::default(),
            dmac: None,
            sgid_index: 0,
            hop_limit: 64,
            traffic_class: 0,
            flow_label: 0,
            vlan: None,
            port: 1,
            is_global: true,
        }
    }
}

/// Attributes of a queue pair, as ibv_qp_attr. Which of them count is said by a mask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QpAttr {
    /// STATE: the next state.
    pub qp_state: QpState,
    /// CUR_STATE: the state that the caller assumes.
    pub cur_qp_state: QpState,
    /// EN_SQD_ASYNC_NOTIFY.
    pub en_sqd_async_notify: bool,
    /// ACCESS_FLAGS.
    pub access_flags: Access,
    /// PKEY_INDEX.
    pub pkey_index: u16,
    /// PORT.
    pub port: u8,
    /// QKEY.
    pub qkey: u32,
    /// AV.
    pub av: AddressVector,
    /// PATH_MTU.
    pub path_mtu: Mtu,
    /// TIMEOUT: 4.096 us * 2^n; 0: none.
    pub timeout: u8,
    /// RETRY_CNT.
    pub retry_cnt: u8,
    /// RNR_RETRY; 7: endless.
    pub rnr_retry: u8,
    /// RQ_PSN.
    pub rq_psn: Psn,
    /// MAX_QP_RD_ATOMIC.
    pub max_rd_atomic: u8,
    /// MIN_RNR_TIMER.
    pub min_rnr_timer: u8,
    /// SQ_PSN.
    pub sq_psn: Psn,
    /// MAX_DEST_RD_ATOMIC.
    pub max_dest_rd_atomic: u8,
    /// PATH_MIG_STATE.
    pub path_mig_state: u8,
    /// DEST_QPN.
    pub dest_qpn: Qpn,
}

impl Default for QpAttr {
    /// What rdma-core's examples use.
    fn default() -> Self {
        Self {
            qp_state: QpState::Reset,
            cur_qp_state: QpState::Reset,
            en_sqd_async_notify: false,
            access_flags: Access::REMOTE_WRITE | Access::REMOTE_READ,
            pkey_index: 0,
            port: 1,
            qkey: 0x1111_1111,
            av: AddressVector::default(),
            path_mtu: Mtu::Mtu1024,
            timeout: 14,
            retry_cnt: 7,
            rnr_retry: 7,
            rq_psn: Psn::new(0),
            max_rd_atomic: 1,
            min_rnr_timer: 12,
            sq_psn: Psn::new(0),
            max_dest_rd_atomic: 1,
            path_mig_state: 0,
            dest_qpn: Qpn(0),
        }
    }
}

/// Mask of the RESET to INIT transition of a connected QP.
pub const INIT_MASK: QpAttrBit =
    QpAttrBit(QpAttrBit::STATE.0 | QpAttrBit::PKEY_INDEX.0 | QpAttrBit::PORT.0 | QpAttrBit::ACCESS_FLAGS.0);
/// Mask of the INIT to RTR transition of an RC QP.
pub const RTR_MASK: QpAttrBit = QpAttrBit(
    QpAttrBit::STATE.0
        | QpAttrBit::AV.0
        | QpAttrBit::PATH_MTU.0
        | QpAttrBit::DEST_QPN.0
        | QpAttrBit::RQ_PSN.0
        | QpAttrBit::MAX_DEST_RD_ATOMIC.0
        | QpAttrBit::MIN_RNR_TIMER.0,
);
/// Mask of the RTR to RTS transition of an RC QP.
pub const RTS_MASK: QpAttrBit = QpAttrBit(
    QpAttrBit::STATE.0
        | QpAttrBit::TIMEOUT.0
        | QpAttrBit::RETRY_CNT.0
        | QpAttrBit::RNR_RETRY.0
        | QpAttrBit::SQ_PSN.0
        | QpAttrBit::MAX_QP_RD_ATOMIC.0,
);

impl QpAttr {
    /// The record that the device reads. Fields that the mask does not name are zero.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a value that does not fit its field.
    pub fn record(&self, mask: QpAttrBit) -> Result<spec::QpAttr> {
        let has = |bit: QpAttrBit| mask.contains(bit);
        let fits = |what: &str, value: u32, max: u32| {
            if value <= max {
                Ok(())
            } else {
                Err(Error::invalid(format!("{what} {value:#x}: at most {max:#x} fits")))
            }
        };
        let mut r = spec::QpAttr::new().with_mask(mask.0);
        if has(QpAttrBit::STATE) {
            r.set_qp_state(self.qp_state.into());
        }
        if has(QpAttrBit::CUR_STATE) {
            r.set_cur_qp_state(self.cur_qp_state.into());
        }
        if has(QpAttrBit::EN_SQD_ASYNC_NOTIFY) {
            r.set_en_sqd_async_notify(self.en_sqd_async_notify);
        }
        if has(QpAttrBit::ACCESS_FLAGS) {
            fits("access_flags", self.access_flags.0, 0xf)?;
            r.set_access_flags(self.access_flags.0 as u8);
        }
        if has(QpAttrBit::PKEY_INDEX) {
            r.set_pkey_index(self.pkey_index);
        }
        if has(QpAttrBit::PORT) {
            r.set_port(self.port);
        }
        if has(QpAttrBit::QKEY) {
            r.set_qkey(self.qkey);
        }
        if has(QpAttrBit::AV) {
            fits("flow_label", self.av.flow_label, 0xf_ffff)?;
            fits("vlan", u32::from(self.av.vlan.unwrap_or(0)), 0x7fff)?;
            r.set_dgid(self.av.dgid.0);
            r.set_dmac(self.av.dmac.unwrap_or_default());
            r.set_vlan(self.av.vlan.map_or(0, |tag| tag | 0x8000));
            r.set_sgid_index(self.av.sgid_index);
            r.set_hop_limit(self.av.hop_limit);
            r.set_traffic_class(self.av.traffic_class);
            r.set_av_port(self.av.port);
            r.set_flow_label(self.av.flow_label);
            r.set_is_global(self.av.is_global);
        }
        if has(QpAttrBit::PATH_MTU) {
            r.set_path_mtu(self.path_mtu.into());
        }
        if has(QpAttrBit::TIMEOUT) {
            r.set_timeout(self.timeout);
        }
        if has(QpAttrBit::RETRY_CNT) {
            r.set_retry_cnt(self.retry_cnt);
        }
        if has(QpAttrBit::RNR_RETRY) {
            r.set_rnr_retry(self.rnr_retry);
        }
        if has(QpAttrBit::RQ_PSN) {
            r.set_rq_psn(self.rq_psn.get());
        }
        if has(QpAttrBit::MAX_QP_RD_ATOMIC) {
            r.set_max_rd_atomic(self.max_rd_atomic);
        }
        if has(QpAttrBit::MIN_RNR_TIMER) {
            r.set_min_rnr_timer(self.min_rnr_timer);
        }
        if has(QpAttrBit::SQ_PSN) {
            r.set_sq_psn(self.sq_psn.get());
        }
        if has(QpAttrBit::MAX_DEST_RD_ATOMIC) {
            r.set_max_dest_rd_atomic(self.max_dest_rd_atomic);
        }
        if has(QpAttrBit::PATH_MIG_STATE) {
            fits("path_mig_state", u32::from(self.path_mig_state), 3)?;
            r.set_path_mig_state(self.path_mig_state);
        }
        if has(QpAttrBit::DEST_QPN) {
            r.set_dest_qpn(self.dest_qpn.0);
        }
        Ok(r)
    }

    /// Reads a record written by the device.
    ///
    /// # Errors
    /// [`Error::Protocol`] for a state or MTU that does not exist.
    pub fn from_record(r: &spec::QpAttr) -> Result<Self> {
        let odd = |e: spec::UnknownValue| Error::protocol(format!("QUERY_QP: {e}"));
        // Before the path is known the MTU reads as zero.
        let path_mtu = match r.path_mtu() {
            0 => Mtu::Mtu256,
            code => Mtu::try_from(code).map_err(odd)?,
        };
        Ok(Self {
            qp_state: QpState::try_from(r.qp_state()).map_err(odd)?,
            cur_qp_state: QpState::try_from(r.cur_qp_state()).map_err(odd)?,
            en_sqd_async_notify: r.en_sqd_async_notify(),
            access_flags: Access(u32::from(r.access_flags())),
            pkey_index: r.pkey_index(),
            port: r.port(),
            qkey: r.qkey(),
            av: AddressVector {
                dgid: Gid(r.dgid()),
                dmac: Some(r.dmac()),
                sgid_index: r.sgid_index(),
                hop_limit: r.hop_limit(),
                traffic_class: r.traffic_class(),
                flow_label: r.flow_label(),
                vlan: (r.vlan() & 0x8000 != 0).then_some(r.vlan() & 0x7fff),
                port: r.av_port(),
                is_global: r.is_global(),
            },
            path_mtu,
            timeout: r.timeout(),
            retry_cnt: r.retry_cnt(),
            rnr_retry: r.rnr_retry(),
            rq_psn: Psn::new(r.rq_psn()),
            max_rd_atomic: r.max_rd_atomic(),
            min_rnr_timer: r.min_rnr_timer(),
            sq_psn: Psn::new(r.sq_psn()),
            max_dest_rd_atomic: r.max_dest_rd_atomic(),
            path_mig_state: r.path_mig_state(),
            dest_qpn: Qpn(r.dest_qpn()),
        })
    }
}

/// What the driver must know of a QP to act like the Linux user interface.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuirkContext {
    pub(crate) qp_type: QpType,
    pub(crate) state: QpState,
    pub(crate) port: u8,
    pub(crate) privileged_qkey: bool,
}

/// What the Linux user interface does before the check by mask (drivers/infiniband/core/uverbs_cmd.c and
/// verbs.c): PORT follows AV.port in SQD, masks of XRC QPs are cut, privileged Q_Keys are refused.
pub(crate) fn linux_quirks(attr: &QpAttr, mask: QpAttrBit, qp: QuirkContext) -> Result<(QpAttr, QpAttrBit)> {
    let mut attr = attr.clone();
    let mut mask = mask;
    let current = if mask.contains(QpAttrBit::CUR_STATE) {
        attr.cur_qp_state
    } else {
        qp.state
    };
    let next = if mask.contains(QpAttrBit::STATE) {
        attr.qp_state
    } else {
        current
    };
    if mask.contains(QpAttrBit::AV) {
        if mask.contains(QpAttrBit::PORT) && attr.port != attr.av.port {
            return Err(Error::invalid(format!(
                "PORT is {}, but AV names port {}: they must agree",
                attr.port, attr.av.port
            )));
        }
        match (current, next) {
            (QpState::Sqd, QpState::Sqd) if !mask.contains(QpAttrBit::PORT) => {
                attr.port = attr.av.port;
                mask |= QpAttrBit::PORT;
            }
            (QpState::Init, QpState::Rtr) if attr.av.port != qp.port => {
                return Err(Error::invalid(format!(
                    "AV names port {}, but the QP is on port {}: they must agree",
                    attr.av.port, qp.port
                )));
            }
            _ => {}
        }
    }
    if mask.contains(QpAttrBit::QKEY) && attr.qkey >> 31 != 0 && !qp.privileged_qkey {
        return Err(Error::invalid(format!(
            "Q_Key {:#010x} has bit 31 set, which takes privilege (OpenParams::privileged_qkey)",
            attr.qkey
        )));
    }
    mask = match qp.qp_type {
        QpType::XrcIni => mask.without(QpAttrBit::MAX_DEST_RD_ATOMIC | QpAttrBit::MIN_RNR_TIMER),
        QpType::XrcTgt => mask.without(QpAttrBit::MAX_QP_RD_ATOMIC | QpAttrBit::RETRY_CNT | QpAttrBit::RNR_RETRY),
        _ => mask,
    };
    Ok((attr, mask))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qp(qp_type: QpType, state: QpState) -> QuirkContext {
        QuirkContext {
            qp_type,
            state,
            port: 1,
            privileged_qkey: false,
        }
    }

    #[test]
    fn only_what_the_mask_names_is_in_the_record() {
        let attr = QpAttr {
            qp_state: QpState::Init,
            port: 1,
            timeout: 9,
            ..QpAttr::default()
        };
        let r = attr.record(INIT_MASK).unwrap();
        assert_eq!(
            (r.mask(), r.qp_state(), r.port(), r.timeout(), r.path_mtu()),
            (0x39, 1, 1, 0, 0)
        );
        assert!(r.rsvd_ok());
    }

    #[test]
    fn a_record_reads_back() {
        let attr = QpAttr {
            qp_state: QpState::Rtr,
            av: AddressVector {
                dgid: Gid::from_ipv4([10, 0, 0, 2]),
                dmac: Some([2, 0, 0, 0, 0, 1]),
                vlan: Some(0x3005),
                flow_label: 0x12345,
                ..AddressVector::default()
            },
            dest_qpn: Qpn(0x123),
            ..QpAttr::default()
        };
        let back = QpAttr::from_record(&attr.record(QpAttrBit::ALL).unwrap()).unwrap();
        assert_eq!(back, attr);
    }

    #[test]
    fn port_follows_the_address_vector_in_sqd_only() {
        let attr = QpAttr::default();
        let (_, mask) = linux_quirks(&attr, QpAttrBit::AV, qp(QpType::Rc, QpState::Sqd)).unwrap();
        assert_eq!(mask, QpAttrBit::AV | QpAttrBit::PORT);
        let (_, mask) = linux_quirks(&attr, QpAttrBit::AV, qp(QpType::Rc, QpState::Rts)).unwrap();
        assert_eq!(mask, QpAttrBit::AV);
    }

    #[test]
    fn xrc_masks_are_cut() {
        let (_, mask) = linux_quirks(&QpAttr::default(), RTR_MASK, qp(QpType::XrcIni, QpState::Init)).unwrap();
        assert_eq!(mask.0, 0x10_1181);
        let (_, mask) = linux_quirks(&QpAttr::default(), RTS_MASK, qp(QpType::XrcTgt, QpState::Rtr)).unwrap();
        assert_eq!(mask.0, 0x1_0201);
    }

    #[test]
    fn a_privileged_qkey_and_a_foreign_port_are_refused_by_the_driver() {
        let attr = QpAttr {
            qkey: 0x8000_0001,
            ..QpAttr::default()
        };
        assert!(linux_quirks(&attr, QpAttrBit::QKEY, qp(QpType::Ud, QpState::Init)).is_err());
        let attr = QpAttr {
            qp_state: QpState::Rtr,
            av: AddressVector {
                port: 2,
                ..Default::default()
            },
            ..QpAttr::default()
        };
        assert!(linux_quirks(&attr, RTR_MASK, qp(QpType::Rc, QpState::Init)).is_err());
    }
}
