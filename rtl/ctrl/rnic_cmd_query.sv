// SPDX-License-Identifier: Apache-2.0
// Writes the result of QUERY_DEVICE (DeviceCaps, a constant of the build) or QUERY_COUNTERS (all counters, 64 bits each) to the host.
// Contract: start_i while idle; done_o marks the cycle in which the last beat is accepted. Counters are read one after the other: each is
// right, the set of them is no snapshot. A counter's value is expected one cycle after its index.
module rnic_cmd_query
  import rnic_spec_pkg::*;
  import rnic_pkg::*;
#(
    parameter int unsigned DataW = 64
) (
    input  logic clk_i,
    input  logic rst_i,
    input  caps_t caps_i,
    input  logic start_i,
    input  logic counters_i,
    input  logic [63:0] addr_i,              // held from start to done
    output logic done_o,
    output logic [6:0] cnt_rd_idx_o,
    input  logic [63:0] cnt_rd_i,
    output logic wr_valid_o,
    input  logic wr_ready_i,
    output dma_wr_hdr_t wr_hdr_o,
    output logic [DataW-1:0] wr_data_o,
    output logic wr_last_o
);
  localparam int unsigned Lanes = DataW / 64;
  localparam int unsigned LaneW = (Lanes > 1) ? $clog2(Lanes) : 1;
  localparam int unsigned CapsBeats = 1024 / DataW;
  localparam int unsigned BeatW = $clog2(CapsBeats);

  typedef enum logic [1:0] {
    ST_IDLE,
    ST_ASK,      // a counter's index stands
    ST_TAKE,     // its value is here
    ST_SEND      // a beat is offered
  } state_e;
  state_e state_q;
  logic counters_q;
  logic [6:0] idx_q;                         // counter
  logic [LaneW-1:0] lane_q;
  logic [BeatW-1:0] beat_q;                  // of the capabilities
  logic [DataW-1:0] data_q;
  logic all;
  logic [1023:0] caps;
  assign caps = 1024'(caps_i);
  assign cnt_rd_idx_o = idx_q;
  assign all          = counters_q ? idx_q == 7'(NUM_CNT) : beat_q == BeatW'(CapsBeats - 1);
  assign wr_valid_o   = state_q == ST_SEND;
  assign wr_hdr_o     = '{addr: addr_i, len: counters_q ? 16'(8 * NUM_CNT) : 16'(DEVICE_CAPS_BYTES)};
  assign wr_data_o    = counters_q ? data_q : caps[32'(beat_q)*DataW+:DataW];
  assign wr_last_o    = all;
  assign done_o       = wr_valid_o && wr_ready_i && all;

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      ST_IDLE: begin
        idx_q      <= '0;
        lane_q     <= '0;
        beat_q     <= '0;
        counters_q <= counters_i;
        if (start_i) state_q <= counters_i ? ST_ASK : ST_SEND;
      end
      ST_ASK: state_q <= ST_TAKE;
      ST_TAKE: begin
        data_q[((Lanes > 1) ? 32'(lane_q) : 0)*64+:64] <= cnt_rd_i;
        idx_q   <= idx_q + 7'd1;
        lane_q  <= (lane_q == LaneW'(Lanes - 1)) ? '0 : lane_q + LaneW'(1);
        state_q <= (lane_q == LaneW'(Lanes - 1) || idx_q == 7'(NUM_CNT - 1)) ? ST_SEND : ST_ASK;
      end
      default: begin
        if (wr_ready_i) begin
          beat_q  <= beat_q + BeatW'(1);
          state_q <= all ? ST_IDLE : counters_q ? ST_ASK : ST_SEND;
        end
      end
    endcase
    if (rst_i) state_q <= ST_IDLE;
    if (!rst_i && start_i) a_start_when_idle : assert (state_q == ST_IDLE);
  end
endmodule
