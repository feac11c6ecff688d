//! Network: `net/dev`, `net/sockstat`, `net/snmp`, `net/netstat`.

use crate::host::HostState;

pub(super) fn dev(state: &HostState) -> String {
    let mut text = String::from(
        "Inter-|   Receive                                                |  Transmit\n \
         face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n",
    );
    let local = state.net_sent / 3;
    for (name, received, sent) in [
        ("lo", local, local),
        ("eno1", state.net_received, state.net_sent),
        ("docker0", state.net_received / 4, state.net_sent / 4),
    ] {
        text.push_str(&format!(
            "{name:>6}: {received} {} 0 0 0 0 0 {} {sent} {} 0 0 0 0 0 0\n",
            received / 940,
            received / 2_000_000,
            sent / 1020
        ));
    }
    text
}

pub(super) fn sockstat(state: &HostState) -> String {
    format!(
        "sockets: used {}\nTCP: inuse {} orphan 0 tw 12 alloc {} mem 210\nUDP: inuse 9 mem 3\nUDPLITE: inuse 0\nRAW: inuse 0\nFRAG: inuse 0 memory 0\n",
        640 + state.running,
        120 + state.running,
        150 + state.running
    )
}

pub(super) fn snmp(state: &HostState) -> String {
    let (received, sent) = (state.net_received / 940, state.net_sent / 1020);
    format!(
        "Ip: Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors ForwDatagrams InUnknownProtos InDiscards InDelivers OutRequests OutDiscards OutNoRoutes\n\
         Ip: 1 64 {received} 0 0 0 0 0 {received} {sent} 0 0\n\
         Icmp: InMsgs InErrors OutMsgs\nIcmp: 210 0 212\n\
         Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors\n\
         Tcp: 1 200 120000 -1 {} {} 14 220 {} {received} {sent} {} 0 310 0\n\
         Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti\n\
         Udp: {} 21 0 {} 0 0 0 0\n",
        sent / 900,
        received / 800,
        90 + state.running,
        sent / 20_000,
        received / 500,
        sent / 500,
    )
}

pub(super) fn netstat(state: &HostState) -> String {
    format!(
        "TcpExt: SyncookiesSent SyncookiesRecv SyncookiesFailed ListenOverflows ListenDrops TCPSynRetrans TCPTimeouts TCPRcvQDrop TCPOFOQueue\n\
         TcpExt: 0 0 0 0 0 {} {} 0 {}\n\
         IpExt: InNoRoutes InTruncatedPkts InOctets OutOctets\nIpExt: 0 0 {} {}\n",
        state.net_sent / 90_000_000,
        state.net_sent / 80_000_000,
        state.net_received / 70_000_000,
        state.net_received,
        state.net_sent,
    )
}
