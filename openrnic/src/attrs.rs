// SPDX-License-Identifier: Apache-2.0
//! Attribute tables of scenarios turned into the records that the device reads, and back.

use openrnic_driver::Gid;
use openrnic_spec::{Access, Mtu, QpAttr, QpAttrBit, QpState};

use crate::scenario::{AttrDef, AvDef};

/// What a NIC is to its peers.
#[derive(Debug, Clone)]
pub struct NicAddress {
    /// Name.
    pub name: String,
    /// MAC address.
    pub mac: [u8; 6],
    /// GIDs.
    pub gids: Vec<Gid>,
}

/// The attributes that a table names.
pub fn named(attrs: &AttrDef) -> QpAttrBit {
    let pairs = [
        (attrs.cur_state.is_some(), QpAttrBit::CUR_STATE),
        (attrs.en_sqd_async_notify.is_some(), QpAttrBit::EN_SQD_ASYNC_NOTIFY),
        (attrs.access.is_some(), QpAttrBit::ACCESS_FLAGS),
        (attrs.pkey_index.is_some(), QpAttrBit::PKEY_INDEX),
        (attrs.port.is_some(), QpAttrBit::PORT),
        (attrs.qkey.is_some(), QpAttrBit::QKEY),
        (attrs.av.is_some(), QpAttrBit::AV),
        (
            attrs.path_mtu.is_some() || attrs.path_mtu_code.is_some(),
            QpAttrBit::PATH_MTU,
        ),
        (attrs.timeout.is_some(), QpAttrBit::TIMEOUT),
        (attrs.retry_cnt.is_some(), QpAttrBit::RETRY_CNT),
        (attrs.rnr_retry.is_some(), QpAttrBit::RNR_RETRY),
        (attrs.rq_psn.is_some(), QpAttrBit::RQ_PSN),
        (attrs.max_rd_atomic.is_some(), QpAttrBit::MAX_QP_RD_ATOMIC),
        (attrs.min_rnr_timer.is_some(), QpAttrBit::MIN_RNR_TIMER),
        (attrs.sq_psn.is_some(), QpAttrBit::SQ_PSN),
        (attrs.max_dest_rd_atomic.is_some(), QpAttrBit::MAX_DEST_RD_ATOMIC),
        (attrs.path_mig_state.is_some(), QpAttrBit::PATH_MIG_STATE),
        (attrs.dest.is_some() || attrs.dest_qpn.is_some(), QpAttrBit::DEST_QPN),
    ];
    pairs
        .iter()
        .filter(|(is, _)| *is)
        .fold(QpAttrBit::EMPTY, |mask, (_, bit)| mask | *bit)
}

/// The record of a transition. Attributes in the mask that the table does not give have usual values.
/// `dest`: what the table's `dest` stands for. `peer`: where the address vector leads by default.
pub fn record(
    attrs: &AttrDef,
    to: Option<QpState>,
    mask: QpAttrBit,
    dest: Option<u32>,
    nics: &[NicAddress],
    peer: usize,
) -> QpAttr {
    let has = |bit| mask.contains(bit);
    let mut r = QpAttr::new().with_mask(mask.0);
    if has(QpAttrBit::STATE) {
        r.set_qp_state(to.map_or(0, u8::from));
    }
    if has(QpAttrBit::CUR_STATE) {
        r.set_cur_qp_state(attrs.cur_state.map_or(0, |s| s.0.into()));
    }
    if has(QpAttrBit::EN_SQD_ASYNC_NOTIFY) {
        r.set_en_sqd_async_notify(attrs.en_sqd_async_notify.unwrap_or(true));
    }
    if has(QpAttrBit::ACCESS_FLAGS) {
        let access = attrs.access.map_or(Access::REMOTE_WRITE | Access::REMOTE_READ, |a| a.0);
        r.set_access_flags(access.0 as u8 & 0xf);
    }
    if has(QpAttrBit::PKEY_INDEX) {
        r.set_pkey_index(attrs.pkey_index.unwrap_or(0));
    }
    if has(QpAttrBit::PORT) {
        r.set_port(attrs.port.unwrap_or(1));
    }
    if has(QpAttrBit::QKEY) {
        r.set_qkey(attrs.qkey.unwrap_or(0x1111_1111));
    }
    if has(QpAttrBit::AV) {
        put_av(&mut r, attrs.av.as_ref().unwrap_or(&AvDef::default()), nics, peer);
    }
    if has(QpAttrBit::PATH_MTU) {
        let code = attrs.path_mtu.map_or(Mtu::Mtu1024, |m| m.0).into();
        r.set_path_mtu(attrs.path_mtu_code.unwrap_or(code));
    }
    if has(QpAttrBit::TIMEOUT) {
        r.set_timeout(attrs.timeout.unwrap_or(14));
    }
    if has(QpAttrBit::RETRY_CNT) {
        r.set_retry_cnt(attrs.retry_cnt.unwrap_or(7));
    }
    if has(QpAttrBit::RNR_RETRY) {
        r.set_rnr_retry(attrs.rnr_retry.unwrap_or(7));
    }
    if has(QpAttrBit::RQ_PSN) {
        r.set_rq_psn(attrs.rq_psn.unwrap_or(0));
    }
    if has(QpAttrBit::MAX_QP_RD_ATOMIC) {
        r.set_max_rd_atomic(attrs.max_rd_atomic.unwrap_or(1));
    }
    if has(QpAttrBit::MIN_RNR_TIMER) {
        r.set_min_rnr_timer(attrs.min_rnr_timer.unwrap_or(12));
    }
    if has(QpAttrBit::SQ_PSN) {
        r.set_sq_psn(attrs.sq_psn.unwrap_or(0));
    }
    if has(QpAttrBit::MAX_DEST_RD_ATOMIC) {
        r.set_max_dest_rd_atomic(attrs.max_dest_rd_atomic.unwrap_or(1));
    }
    if has(QpAttrBit::PATH_MIG_STATE) {
        r.set_path_mig_state(attrs.path_mig_state.as_ref().map_or(0, |m| m.get_ref() & 3));
    }
    if has(QpAttrBit::DEST_QPN) {
        r.set_dest_qpn(attrs.dest_qpn.or(dest).unwrap_or(0));
    }
    r
}

fn put_av(r: &mut QpAttr, av: &AvDef, nics: &[NicAddress], peer: usize) {
    let wanted = av
        .nic
        .as_ref()
        .and_then(|name| nics.iter().find(|n| n.name == *name.get_ref()));
    let address = wanted.or(nics.get(peer));
    let gid = address.and_then(|n| n.gids.first().copied()).unwrap_or_default();
    r.set_dgid(av.gid.map_or(gid, |g| g.0).0);
    r.set_dmac(av.mac.map_or_else(|| address.map_or([0; 6], |n| n.mac), |m| m.0));
    r.set_vlan(av.vlan.as_ref().map_or(0, |v| v.get_ref() & 0x7fff | 0x8000));
    r.set_sgid_index(av.sgid_index.unwrap_or(0));
    r.set_hop_limit(av.hop_limit.unwrap_or(64));
    r.set_traffic_class(av.traffic_class.unwrap_or(0));
    r.set_av_port(av.port.unwrap_or(1));
    r.set_flow_label(av.flow_label.as_ref().map_or(0, |f| f.get_ref() & 0xf_ffff));
    r.set_is_global(av.is_global.unwrap_or(true));
}

/// How two records differ in the attributes of a mask: `name: wanted, got`.
pub fn differences(want: &QpAttr, got: &QpAttr, mask: QpAttrBit) -> Vec<String> {
    let mut out = Vec::new();
    let mut compare = |bit: QpAttrBit, name: &str, w: String, g: String| {
        if mask.contains(bit) && w != g {
            out.push(format!("{name}: expected {w}, is {g}"));
        }
    };
    macro_rules! fields {
        ($($bit:ident $field:ident),*) => {
            $(compare(QpAttrBit::$bit, stringify!($field), format!("{:?}", want.$field()), format!("{:?}", got.$field()));)*
        };
    }
    fields!(
        EN_SQD_ASYNC_NOTIFY en_sqd_async_notify, PKEY_INDEX pkey_index, PORT port, QKEY qkey, AV dgid, AV dmac, AV vlan,
        AV sgid_index, AV hop_limit, AV traffic_class, AV flow_label, PATH_MTU path_mtu, TIMEOUT timeout, RETRY_CNT retry_cnt,
        RNR_RETRY rnr_retry, RQ_PSN rq_psn, MAX_QP_RD_ATOMIC max_rd_atomic, MIN_RNR_TIMER min_rnr_timer, SQ_PSN sq_psn,
        MAX_DEST_RD_ATOMIC max_dest_rd_atomic, PATH_MIG_STATE path_mig_state, DEST_QPN dest_qpn
    );
    // LOCAL_WRITE is accepted and has no effect on a QP.
    let remote = |r: &QpAttr| {
        Access(u32::from(r.access_flags()))
            .without(Access::LOCAL_WRITE)
            .to_string()
    };
    compare(QpAttrBit::ACCESS_FLAGS, "access", remote(want), remote(got));
    out
}
