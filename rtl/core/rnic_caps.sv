// SPDX-License-Identifier: Apache-2.0
// What this build can do: the registers of the CAPS block in their order, the first in bits 31:0.
module rnic_caps
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64,
    parameter int unsigned QpIdxW = 10,
    parameter int unsigned NumCq = 256,
    parameter int unsigned NumMr = 1024,
    parameter int unsigned NumSrq = 64,
    parameter int unsigned DmaTags = 64,
    parameter int unsigned ClkPeriodPs = 8000,
    parameter int unsigned MaxSqStride = 4,
    parameter int unsigned MaxRqStride = 4,
    parameter int unsigned MaxRd = MAX_RD_ATOMIC,
    parameter bit Ipv6 = 1'b1,
    parameter int unsigned LocalMemLog = 0
) (
    output caps_t caps_o
);
  // Every type can be created and moved.
  localparam logic [31:0] QpTypes = (32'd1 << QP_TYPE_GSI) | (32'd1 << QP_TYPE_RC) | (32'd1 << QP_TYPE_UC) | (32'd1 << QP_TYPE_UD) |
      (32'd1 << QP_TYPE_DCI) | (32'd1 << QP_TYPE_DCT) | (32'd1 << QP_TYPE_RAW_PACKET) | (32'd1 << QP_TYPE_XRC_INI) | (32'd1 << QP_TYPE_XRC_TGT);
  localparam logic [31:0] QpTypesData = 32'd1 << QP_TYPE_RC;
  localparam logic [31:0] WqeOpcodes = (32'd1 << WQE_OPCODE_RDMA_WRITE) | (32'd1 << WQE_OPCODE_RDMA_WRITE_WITH_IMM) | (32'd1 << WQE_OPCODE_SEND) |
      (32'd1 << WQE_OPCODE_SEND_WITH_IMM) | (32'd1 << WQE_OPCODE_RDMA_READ) | (32'd1 << WQE_OPCODE_ATOMIC_CMP_AND_SWP) |
      (32'd1 << WQE_OPCODE_ATOMIC_FETCH_AND_ADD) | (32'd1 << WQE_OPCODE_SEND_WITH_INV) | (32'd1 << WQE_OPCODE_LOCAL_INV) | (32'd1 << WQE_OPCODE_BIND_MW);
  localparam logic [31:0] MaxInline = (32'd64 << MaxSqStride) - 32'd32;
  localparam logic [31:0] Features = 32'(Ipv6) << FEATURE_IPV6;
  assign caps_o = {
    32'(LocalMemLog), Features, 32'(NUM_XRCD), 32'(NumSrq), 32'(MaxRqStride), 32'(MaxSqStride), WqeOpcodes,
    32'(NUM_PKEY), 32'(NUM_GID), 32'(NUM_PORTS), 32'(MaxRd), QpTypesData, QpTypes, MaxInline,
    32'(MAX_SGE), 32'(DmaTags), 32'(ClkPeriodPs), 32'(DataW), 32'(NUM_UAR), 32'(NUM_EQ), 32'(NUM_PD), 32'(NumMr), 32'(NumCq), 32'(QpIdxW)
  };
endmodule
