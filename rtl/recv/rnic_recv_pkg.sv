// SPDX-License-Identifier: Apache-2.0
// What the rooms of the responder hand to each other.
package rnic_recv_pkg;
  // Verdict on a request (rnic_resp_check): one of the first nine.
  typedef struct packed {
    logic drop;                  // silently, counted
    logic ignore;                // silently, as if lost
    logic gap;                   // PSN ahead of the expected one
    logic dup_ack;               // duplicate: acknowledge again
    logic dup_read;              // duplicate READ: execute again
    logic dup_atomic;            // duplicate atomic: answer with the result it had
    logic nak;                   // invalid request
    logic rnr;                   // no receive WQE
    logic exec;
    logic dup;                   // any duplicate, for the counter
    logic psns_more;             // PSNs that the request takes: one more than the next field when it is set
    logic [23:0] psns;
  } verdict_t;
endpackage
