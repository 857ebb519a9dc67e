// SPDX-License-Identifier: Apache-2.0
// Golden bytes of every structure and header, written by hand from the tables of spec/*.toml, and the
// value of each field in them. `00x56` stands for 56 zero bytes. The tests of the Rust types and of the
// RTL package both take this file in, each with a `goldens!` macro of its own.

goldens! {
    // structures in memory
    CmdHeader [
        "45 12 ef be  c3 b2 a1 00  00x56"
    ] {
        opcode, with_opcode = 0x45;
        flags, with_flags = 0x12;
        tag, with_tag = 0xbeef;
        handle, with_handle = 0x00a1_b2c3;
    }
    CmdPort [
        "08 00 01 00  01 00 00 00  02 00 5e 10 20 30  05 01  00x48"
    ] {
        opcode, with_opcode = 0x08;
        flags, with_flags = 0;
        tag, with_tag = 1;
        handle, with_handle = 1;
        mac, with_mac = [0x02, 0x00, 0x5e, 0x10, 0x20, 0x30];
        mtu, with_mtu = 5;
        up, with_up = true;
    }
    CmdGid [
        "09 00 02 00  03 00 00 00  00x8  00 00 00 00 00 00 00 00 00 00 ff ff 0a 00 01 02  00x32"
    ] {
        opcode, with_opcode = 0x09;
        flags, with_flags = 0;
        tag, with_tag = 2;
        handle, with_handle = 3;
        gid, with_gid = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 1, 2];
    }
    CmdPkey [
        "0a 00 03 00  02 00 00 00  23 81  00x54"
    ] {
        opcode, with_opcode = 0x0a;
        flags, with_flags = 0;
        tag, with_tag = 3;
        handle, with_handle = 2;
        pkey, with_pkey = 0x8123;
    }
    CmdMr [
        "18 00 04 00  00 00 00 00  02 01 0f a5  02 0c 05 00  88 77 66 55 44 33 22 11"
        "01 00 10 00 00 00 00 00  00 ba dc fe 01 00 00 00  78 06 00 00  00x20"
    ] {
        opcode, with_opcode = 0x18;
        flags, with_flags = 0;
        tag, with_tag = 4;
        handle, with_handle = 0;
        pd, with_pd = 0x0102;
        access, with_access = 0x0f;
        key, with_key = 0xa5;
        kind, with_kind = 2;
        log_page, with_log_page = 12;
        change, with_change = 5;
        va, with_va = 0x1122_3344_5566_7788;
        length, with_length = 0x10_0001;
        host_addr, with_host_addr = 0x1_fedc_ba00;
        page_offset, with_page_offset = 0x678;
    }
    CmdCq [
        "20 00 05 00  00 00 00 00  0c 02 1f  00  34 12 cd 0a  00 50 34 12 00 00 00 00  00x40"
    ] {
        opcode, with_opcode = 0x20;
        flags, with_flags = 0;
        tag, with_tag = 5;
        handle, with_handle = 0;
        log_size, with_log_size = 12;
        eq, with_eq = 2;
        uar, with_uar = 31;
        event_count, with_event_count = 0x1234;
        event_period, with_event_period = 0x0acd;
        base, with_base = 0x1234_5000;
    }
    CmdSrq [
        "32 00 09 00  3f 00 00 00  34 12 1d 4c  0b 0a 00x2  40 10 32 54 76 98 ba 00  00x40"
    ] {
        opcode, with_opcode = 0x32;
        flags, with_flags = 0;
        tag, with_tag = 9;
        handle, with_handle = 0x3f;
        pd, with_pd = 0x1234;
        uar, with_uar = 0x1d;
        log_size, with_log_size = 12;
        log_stride, with_log_stride = 4;
        limit, with_limit = 0x0a0b;
        base, with_base = 0x00ba_9876_5432_1040;
    }
    CmdEq [
        "28 00 06 00  03 00 00 00  0a 00x7  40 00 00 00 ff 00 00 00  00x40"
    ] {
        opcode, with_opcode = 0x28;
        flags, with_flags = 0;
        tag, with_tag = 6;
        handle, with_handle = 3;
        log_size, with_log_size = 10;
        base, with_base = 0xff_0000_0040;
    }
    CmdQp [
        "44 05 07 00  02 00 01 00  00 04 00 62  b1 00 c2 00  c3 01 d4 02  1e 87 31 2c"
        "00 78 56 34 12 00 00 00  40 01 ef cd ab 00 00 00  00 20 01 00 40 08 00 00"
        "40 00 00 00 00 00 00 10  80 00 00 00 00 00 00 20"
    ] {
        opcode, with_opcode = 0x44;
        flags, with_flags = 0x05;
        tag, with_tag = 7;
        handle, with_handle = 0x0001_0002;
        count, with_count = 0x400;
        qp_type, with_qp_type = 2;
        align_log2, with_align_log2 = 6;
        pd, with_pd = 0xb1;
        send_cq, with_send_cq = 0xc2;
        recv_cq, with_recv_cq = 0x1c3;
        srq, with_srq = 0x2d4;
        uar, with_uar = 0x1e;
        log_sq, with_log_sq = 7;
        log_rq, with_log_rq = 8;
        log_sq_stride, with_log_sq_stride = 1;
        log_rq_stride, with_log_rq_stride = 3;
        state, with_state = 4;
        by_state, with_by_state = true;
        by_type, with_by_type = false;
        by_pd, with_by_pd = true;
        sq_base, with_sq_base = 0x12_3456_7800;
        rq_base, with_rq_base = 0xab_cdef_0140;
        sq_pitch, with_sq_pitch = 0x1_2000;
        rq_pitch, with_rq_pitch = 0x840;
        list_addr, with_list_addr = 0x1000_0000_0000_0040;
        attr_addr, with_attr_addr = 0x2000_0000_0000_0080;
    }
    CmdOut [
        "02 00 08 00  00 00 00 00  00x48  c0 ff 00 00 00 00 00 80"
    ] {
        opcode, with_opcode = 0x02;
        flags, with_flags = 0;
        tag, with_tag = 8;
        handle, with_handle = 0;
        out_addr, with_out_addr = 0x8000_0000_0000_ffc0;
    }
    DeviceCaps [
        "11 00 00 00 12 00 00 00 13 00 00 00 14 00 00 00 15 00 00 00 16 00 00 00 17 00 00 00 18 00 00 00 19 00 00 00 1a 00 00 00 1b 00 00 00 1c 00 00 00 1d 00 00 00 1e 00 00 00 1f 00 00 00 20 00 00 00 21 00 00 00 22 00 00 00 23 00 00 00 24 00 00 00"
        "25 00 00 00 26 00 00 00 27 00 00 00 28 00 00 00 00x32"
    ] {
        log_qp, with_log_qp = 0x11;
        num_cq, with_num_cq = 0x12;
        num_mr, with_num_mr = 0x13;
        num_pd, with_num_pd = 0x14;
        num_eq, with_num_eq = 0x15;
        num_uar, with_num_uar = 0x16;
        data_w, with_data_w = 0x17;
        clk_period_ps, with_clk_period_ps = 0x18;
        dma_tags, with_dma_tags = 0x19;
        max_sge, with_max_sge = 0x1a;
        max_inline, with_max_inline = 0x1b;
        qp_types, with_qp_types = 0x1c;
        qp_types_data, with_qp_types_data = 0x1d;
        max_rd_atomic, with_max_rd_atomic = 0x1e;
        num_ports, with_num_ports = 0x1f;
        num_gid, with_num_gid = 0x20;
        num_pkey, with_num_pkey = 0x21;
        wqe_opcodes, with_wqe_opcodes = 0x22;
        max_sq_stride, with_max_sq_stride = 0x23;
        max_rq_stride, with_max_rq_stride = 0x24;
        num_srq, with_num_srq = 0x25;
        num_xrcd, with_num_xrcd = 0x26;
        features, with_features = 0x27;
        local_mem_log_size, with_local_mem_log_size = 0x28;
    }
    CmdCompletion [
        "34 12 41 80  07 03 00 00  03 02 01 00  11 00 00 00  cc bb aa 00  80 91 12 00  05 00 00 00"
        "02 01 00 00"
    ] {
        tag, with_tag = 0x1234;
        opcode, with_opcode = 0x41;
        phase, with_phase = true;
        status, with_status = 7;
        rule, with_rule = 3;
        handle, with_handle = 0x0001_0203;
        count, with_count = 0x11;
        offender, with_offender = 0x00aa_bbcc;
        detail, with_detail = 0x0012_9180;
        offender_index, with_offender_index = 5;
        exec_cycles, with_exec_cycles = 0x102;
    }
    QpAttr [
        "ff d1 12 00  5a 2e 07 01  01 05 0e 07  06 0c 10 08  ef cd ab 00  56 34 12 00  ba dc fe 00"
        "00 00 01 80  fe 80 00 00 00 00 00 00 02 00 5e ff fe 10 20 30  02 00 5e 10 20 30  64 a0"
        "03 40 6a 01  de bc 0a 01"
    ] {
        mask, with_mask = 0x0012_d1ff;
        qp_state, with_qp_state = 2;
        en_sqd_async_notify, with_en_sqd_async_notify = true;
        cur_qp_state, with_cur_qp_state = 5;
        access_flags, with_access_flags = 0xe;
        path_mig_state, with_path_mig_state = 2;
        pkey_index, with_pkey_index = 0x107;
        port, with_port = 1;
        path_mtu, with_path_mtu = 5;
        timeout, with_timeout = 14;
        retry_cnt, with_retry_cnt = 7;
        rnr_retry, with_rnr_retry = 6;
        min_rnr_timer, with_min_rnr_timer = 12;
        max_rd_atomic, with_max_rd_atomic = 16;
        max_dest_rd_atomic, with_max_dest_rd_atomic = 8;
        rq_psn, with_rq_psn = 0x00ab_cdef;
        sq_psn, with_sq_psn = 0x0012_3456;
        dest_qpn, with_dest_qpn = 0x00fe_dcba;
        qkey, with_qkey = 0x8001_0000;
        dgid, with_dgid = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x02, 0x00, 0x5e, 0xff, 0xfe, 0x10, 0x20, 0x30];
        dmac, with_dmac = [0x02, 0x00, 0x5e, 0x10, 0x20, 0x30];
        vlan, with_vlan = 0xa064;
        sgid_index, with_sgid_index = 3;
        hop_limit, with_hop_limit = 64;
        traffic_class, with_traffic_class = 0x6a;
        av_port, with_av_port = 1;
        flow_label, with_flow_label = 0xa_bcde;
        is_global, with_is_global = true;
    }
    QpInit [
        "02 01 00 00  02 04 0d 1d  11 00 22 00  33 01 44 02  65 21 00 00  fe ca 00 00"
        "00 10 00 00 00 00 00 00  00 cd ab 89 67 45 23 01  00x24"
    ] {
        qpn, with_qpn = 0x102;
        qp_type, with_qp_type = 2;
        qp_state, with_qp_state = 4;
        sq_sig_all, with_sq_sig_all = true;
        has_srq, with_has_srq = false;
        sq_draining, with_sq_draining = true;
        fast_reg, with_fast_reg = true;
        uar, with_uar = 0x1d;
        pd, with_pd = 0x11;
        send_cq, with_send_cq = 0x22;
        recv_cq, with_recv_cq = 0x133;
        srq, with_srq = 0x244;
        log_sq, with_log_sq = 5;
        log_rq, with_log_rq = 6;
        log_sq_stride, with_log_sq_stride = 1;
        log_rq_stride, with_log_rq_stride = 2;
        epoch, with_epoch = 0xcafe;
        sq_base, with_sq_base = 0x1000;
        rq_base, with_rq_base = 0x0123_4567_89ab_cd00;
    }
    SqWqe [
        "03 0b 02 00  01 02 03 04  88 77 66 55 44 33 22 11  b6 a5 00 00  20 00 00 00"
        "08 07 06 05 04 03 02 01  00 10 00 00 00 00 00 00  00 02 00 00  ab 12 00 00"
        "f8 ff ff ff ff ff ff ff  08 00 00 00  21 43 65 87"
    ] {
        opcode, with_opcode = 3;
        signaled, with_signaled = true;
        solicited, with_solicited = true;
        fence, with_fence = false;
        inline_data, with_inline_data = true;
        num_sge, with_num_sge = 2;
        imm, with_imm = 0x0403_0201;
        remote_va, with_remote_va = 0x1122_3344_5566_7788;
        rkey, with_rkey = 0xa5b6;
        inline_length, with_inline_length = 32;
        swap_add, with_swap_add = 0x0102_0304_0506_0708;
        sge0_addr, with_sge0_addr = 0x1000;
        sge0_length, with_sge0_length = 0x200;
        sge0_lkey, with_sge0_lkey = 0x12ab;
        sge1_addr, with_sge1_addr = 0xffff_ffff_ffff_fff8;
        sge1_length, with_sge1_length = 8;
        sge1_lkey, with_sge1_lkey = 0x8765_4321;
    }
    SqWqeMr [
        "07 05 00x6  88 77 66 55 44 33 22 11  b6 a5 00 00  00x12  00 ba dc fe 01 00 00 00"
        "01 00 10 00 00 00 00 00  21 43 65 87  78 06 00 00  13 0c  00x6"
    ] {
        opcode, with_opcode = 7;
        signaled, with_signaled = true;
        fence, with_fence = true;
        va, with_va = 0x1122_3344_5566_7788;
        rkey, with_rkey = 0xa5b6;
        host_addr, with_host_addr = 0x1_fedc_ba00;
        length, with_length = 0x10_0001;
        lkey, with_lkey = 0x8765_4321;
        page_offset, with_page_offset = 0x678;
        access, with_access = 0x13;
        log_page, with_log_page = 12;
    }
    RqWqe [
        "01 00 0d 02 00x12  10 00 00 80 00 00 00 00  00 10 00 00  cd ab 00 00"
    ] {
        num_sge, with_num_sge = 1;
        next, with_next = 0x020d;
        sge0_addr, with_sge0_addr = 0x8000_0010;
        sge0_length, with_sge0_length = 0x1000;
        sge0_lkey, with_sge0_lkey = 0xabcd;
    }
    Sge [
        "01 02 03 04 05 06 07 08  00 00 00 80  99 00 00 00"
    ] {
        addr, with_addr = 0x0807_0605_0403_0201;
        length, with_length = 0x8000_0000;
        lkey, with_lkey = 0x99;
    }
    Cqe [
        "ef cd ab 80  fe ff 05 8b  04 03 02 01  11 22 33 44  03 02 01 99  00x4"
        "ef be ad de 00 00 00 00"
    ] {
        qpn, with_qpn = 0xab_cdef;
        opcode, with_opcode = 0x80;
        wqe_index, with_wqe_index = 0xfffe;
        status, with_status = 5;
        grh, with_grh = true;
        has_imm, with_has_imm = true;
        has_inv, with_has_inv = true;
        phase, with_phase = true;
        byte_len, with_byte_len = 0x0102_0304;
        imm, with_imm = 0x4433_2211;
        src_qpn, with_src_qpn = 0x01_0203;
        vendor_err, with_vendor_err = 0x99;
        timestamp, with_timestamp = 0xdead_beef;
    }
    Eqe [
        "10 00 00 80  02 01 00 00  00x16  01 00 00 00 00 00 00 40"
    ] {
        event_, with_event = 16;
        phase, with_phase = true;
        number, with_number = 0x102;
        timestamp, with_timestamp = 0x4000_0000_0000_0001;
    }
    DbQueue [
        "ef cd ab 00  34 12 00 00"
    ] {
        qpn, with_qpn = 0xab_cdef;
        producer, with_producer = 0x1234;
    }
    DbSrq [
        "2a 01 00 00  fe ff 00 00"
    ] {
        srqn, with_srqn = 0x12a;
        producer, with_producer = 0xfffe;
    }
    DbCq [
        "23 01 00 03  fe ff ff 00"
    ] {
        cqn, with_cqn = 0x123;
        arm, with_arm = true;
        solicited_only, with_solicited_only = true;
        consumer, with_consumer = 0xff_fffe;
    }
    DbEq [
        "03 00 00 01  02 00 00 00"
    ] {
        eqn, with_eqn = 3;
        arm, with_arm = true;
        consumer, with_consumer = 2;
    }
    DiagSelect [
        "56 34 12 05"
    ] {
        qpn, with_qpn = 0x12_3456;
        word, with_word = 5;
    }
    DiagStatus [
        "01 a5 00 00"
    ] {
        busy, with_busy = true;
        reads, with_reads = 0xa5;
    }
    PhyStatus [
        "03 15 00 80"
    ] {
        state, with_state = 3;
        address, with_address = 0x15;
        present, with_present = true;
    }
    LinkHead [
        "05 7e fe 03  10 01 04 00"
    ] {
        kind, with_kind = 5;
        session, with_session = 0x7e;
        seq, with_seq = 0xfe;
        ack, with_ack = 3;
        payload_len, with_payload_len = 0x110;
        window, with_window = 4;
    }
    LinkWelcome [
        "52 4c 4b 31  40 1f 00 00"
    ] {
        magic, with_magic = 0x314b_4c52;
        clk_period_ps, with_clk_period_ps = 8000;
    }
    LinkControl [
        "03 00 00 00  00 00 00 00"
    ] {
        run, with_run = true;
        bus_master, with_bus_master = true;
    }
    QpLive [
        "f0 cd ab aa aa 0a 3c 14  6e b4 8a 82 a8 50 c8 1e
         ea ec 72 b1 0e bb 1e 42  34 89 ca 64 b2 f3 cd 00
         42 5e d1 76 ac fa 28 04  1e 97 80 79 05 00 00 00
         5a 65 2c 2a 36 09 df 02  d0 a5 20 74 72 42 8e 41"
    ] {
        qpn, with_qpn = 0xabcdf0;
        state, with_state = 0x2;
        sq_draining, with_sq_draining = true;
        valid, with_valid = false;
        live, with_live = true;
        halted, with_halted = false;
        enabled, with_enabled = true;
        resync, with_resync = false;
        rnr_wait, with_rnr_wait = true;
        timer_on, with_timer_on = false;
        rem_fail, with_rem_fail = true;
        loc_fail, with_loc_fail = false;
        alone, with_alone = true;
        records_full, with_records_full = false;
        stopped, with_stopped = true;
        wqe_here, with_wqe_here = false;
        wqe_pending, with_wqe_pending = true;
        tx_waiting, with_tx_waiting = false;
        rx_waiting, with_rx_waiting = true;
        records, with_records = 0x3c;
        rd_count, with_rd_count = 0x14;
        sq_prod, with_sq_prod = 0xb46e;
        sq_cons, with_sq_cons = 0x828a;
        sq_fresh, with_sq_fresh = 0x50a8;
        snd_wqe, with_snd_wqe = 0x1ec8;
        snd_off, with_snd_off = 0xb172ecea;
        msg_len, with_msg_len = 0x421ebb0e;
        next_psn, with_next_psn = 0xca8934;
        retries, with_retries = 0x4;
        rnr_tries, with_rnr_tries = 0x6;
        una_psn, with_una_psn = 0xcdf3b2;
        retry_cnt, with_retry_cnt = 0x0;
        rnr_retry, with_rnr_retry = 0x0;
        top_psn, with_top_psn = 0xd15e42;
        max_rd_atomic, with_max_rd_atomic = 0x76;
        rd_psn, with_rd_psn = 0x28faac;
        timeout, with_timeout = 0x4;
        late, with_late = 0x57980971e;
        epsn, with_epsn = 0x2c655a;
        recv_live, with_recv_live = false;
        recv_halted, with_recv_halted = true;
        nak_sent, with_nak_sent = false;
        in_send, with_in_send = true;
        in_write, with_in_write = false;
        ack_waiting, with_ack_waiting = true;
        msn, with_msn = 0xdf0936;
        rd_waiting, with_rd_waiting = 0x2;
        rq_prod, with_rq_prod = 0xa5d0;
        rq_next, with_rq_next = 0x7420;
        msg_done, with_msg_done = 0x418e4272;
    }
    CqHdr [
        "08 00 01 00 00 00 00 00  02 b4 3f 00  a5 02 00 01"
    ] {
        addr, with_addr = 0x1_0008;
        dw_len, with_dw_len = 0x402;
        wr, with_wr = true;
        poisoned, with_poisoned = true;
        bar, with_bar = 2;
        first_be, with_first_be = 0xf;
        last_be, with_last_be = 3;
        tag, with_tag = 0x2a5;
        requester_id, with_requester_id = 0x100;
    }
    CcHdr [
        "44 00 04 10  04 00 00 00  01 00 00 00  ff 03 08 02"
    ] {
        lower_addr, with_lower_addr = 0x44;
        byte_count, with_byte_count = 0x1004;
        status, with_status = 4;
        dw_len, with_dw_len = 1;
        tag, with_tag = 0x3ff;
        requester_id, with_requester_id = 0x208;
    }
    RqHdr [
        "90 78 56 34 12 00 00 00  00 14 1c 00  3f 00 00 00"
    ] {
        addr, with_addr = 0x12_3456_7890;
        dw_len, with_dw_len = 0x400;
        wr, with_wr = true;
        first_be, with_first_be = 0xc;
        last_be, with_last_be = 1;
        tag, with_tag = 0x3f;
    }
    RcHdr [
        "7c 00 bc 0a  01 01 00 00  af 02 00 00  55 01 00 00"
    ] {
        lower_addr, with_lower_addr = 0x7c;
        byte_count, with_byte_count = 0xabc;
        status, with_status = 1;
        poisoned, with_poisoned = true;
        dw_len, with_dw_len = 0x2af;
        tag, with_tag = 0x155;
    }
    // wire headers
    EthHdr [
        "02 00 5e 10 20 30  06 11 22 33 44 55  86 dd"
    ] {
        dst_mac, with_dst_mac = [0x02, 0x00, 0x5e, 0x10, 0x20, 0x30];
        src_mac, with_src_mac = [0x06, 0x11, 0x22, 0x33, 0x44, 0x55];
        ethertype, with_ethertype = 0x86dd;
    }
    VlanTag [
        "ba bc 08 00"
    ] {
        pcp, with_pcp = 5;
        dei, with_dei = true;
        vid, with_vid = 0xabc;
        ethertype, with_ethertype = 0x0800;
    }
    Ipv4Hdr [
        "45 69 05 dc  be ef 50 05  40 11 a5 2f  c0 a8 01 01  c0 a8 01 02"
    ] {
        version, with_version = 4;
        ihl, with_ihl = 5;
        dscp, with_dscp = 26;
        ecn, with_ecn = 1;
        total_length, with_total_length = 1500;
        identification, with_identification = 0xbeef;
        df, with_df = true;
        mf, with_mf = false;
        fragment_offset, with_fragment_offset = 0x1005;
        ttl, with_ttl = 64;
        protocol, with_protocol = 17;
        checksum, with_checksum = 0xa52f;
        src_addr, with_src_addr = 0xc0a8_0101;
        dst_addr, with_dst_addr = 0xc0a8_0102;
    }
    Ipv6Hdr [
        "6b aa bc de  00 20 11 40  fe 80 00 00 00 00 00 00 00 00 00 00 00 00 00 01"
        "fe 80 00 00 00 00 00 00 02 00 5e ff fe 10 20 30"
    ] {
        version, with_version = 6;
        dscp, with_dscp = 46;
        ecn, with_ecn = 2;
        flow_label, with_flow_label = 0xa_bcde;
        payload_length, with_payload_length = 32;
        next_header, with_next_header = 17;
        hop_limit, with_hop_limit = 64;
        src_addr, with_src_addr = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        dst_addr, with_dst_addr = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x02, 0x00, 0x5e, 0xff, 0xfe, 0x10, 0x20, 0x30];
    }
    UdpHdr [
        "c1 23 12 b7  00 20 6a 82"
    ] {
        src_port, with_src_port = 0xc123;
        dst_port, with_dst_port = 4791;
        length, with_length = 32;
        checksum, with_checksum = 0x6a82;
    }
    Bth [
        "05 e3 80 01  40 ab cd ef  80 12 34 56"
    ] {
        opcode, with_opcode = 5;
        se, with_se = true;
        mig_req, with_mig_req = true;
        pad_cnt, with_pad_cnt = 2;
        tver, with_tver = 3;
        pkey, with_pkey = 0x8001;
        fecn, with_fecn = false;
        becn, with_becn = true;
        dest_qp, with_dest_qp = 0xab_cdef;
        ack_req, with_ack_req = true;
        psn, with_psn = 0x12_3456;
    }
    Reth [
        "11 22 33 44 55 66 77 88  00 00 a5 b6  00 00 10 01"
    ] {
        va, with_va = 0x1122_3344_5566_7788;
        rkey, with_rkey = 0xa5b6;
        dma_length, with_dma_length = 0x1001;
    }
    Aeth [
        "60 ab cd ef"
    ] {
        syndrome, with_syndrome = 0x60;
        msn, with_msn = 0xab_cdef;
    }
    AtomicEth [
        "00 00 00 00 00 00 10 08  12 34 56 78  01 02 03 04 05 06 07 08  f1 f2 f3 f4 f5 f6 f7 f8"
    ] {
        va, with_va = 0x1008;
        rkey, with_rkey = 0x1234_5678;
        swap_add, with_swap_add = 0x0102_0304_0506_0708;
        compare, with_compare = 0xf1f2_f3f4_f5f6_f7f8;
    }
    AtomicAckEth [
        "de ad be ef 00 00 00 01"
    ] {
        orig_data, with_orig_data = 0xdead_beef_0000_0001;
    }
    ImmDt [
        "01 02 03 04"
    ] {
        imm, with_imm = 0x0102_0304;
    }
    Ieth [
        "00 00 a5 b6"
    ] {
        rkey, with_rkey = 0xa5b6;
    }
    Deth [
        "80 01 00 00  00 00 00 01"
    ] {
        qkey, with_qkey = 0x8001_0000;
        src_qp, with_src_qp = 1;
    }
    XrcEth [
        "00 ab cd ef"
    ] {
        xrc_srq, with_xrc_srq = 0xab_cdef;
    }
    CnpBody [
        "00x16"
    ] {
    }
}
