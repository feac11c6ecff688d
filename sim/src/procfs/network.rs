//! Network: `net/dev`, `net/sockstat`, `net/snmp`, `net/netstat` and their like.

use std::fmt::Write as _;

use crate::host::HostState;
use crate::load::{float, round_u64};
use crate::scenario::Scenario;

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

pub(super) fn sockstat6() -> String {
    "TCP6: inuse 24\nUDP6: inuse 4\nUDPLITE6: inuse 0\nRAW6: inuse 1\nFRAG6: inuse 0 memory 0\n".into()
}

/// One line of hexadecimal numbers for each processor.
pub(super) fn softnet_stat(scenario: &Scenario, state: &HostState) -> String {
    let packets = float(state.net_received / 940 + state.net_sent / 3060);
    let mut text = String::new();
    for (cpu, share) in scenario.cpu_shares().into_iter().enumerate() {
        let processed = round_u64(packets * share) & 0xffff_ffff;
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{processed:08x} 00000000 {:08x} 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 \
             00000000 {cpu:08x} 00000000 00000000",
            processed >> 17
        );
    }
    text
}

pub(super) fn arp() -> String {
    let mut text = String::from("IP address       HW type     Flags       HW address            Mask     Device\n");
    for (address, device) in [(1, "eno1"), (17, "eno1"), (2, "docker0")] {
        let network = if device == "eno1" { "192.0.2" } else { "172.17.0" };
        let _ = writeln!(
            text,
            "{:<16} 0x1         0x2         02:00:00:00:00:{address:02x}     *        {device}",
            format!("{network}.{address}")
        );
    }
    text
}

pub(super) fn udp() -> String {
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
     \x20 131: 00000000:006F 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 23041 2 0000000000000000 0\n"
        .into()
}

pub(super) fn snmp6(state: &HostState) -> String {
    let (received, sent) = (state.net_received / 60_000, state.net_sent / 60_000);
    let rows = [
        ("Ip6InReceives", received),
        ("Ip6InDiscards", 0),
        ("Ip6OutRequests", sent),
        ("Ip6InOctets", received * 90),
        ("Ip6OutOctets", sent * 90),
        ("Icmp6InMsgs", 310),
        ("Icmp6InErrors", 0),
        ("Icmp6OutMsgs", 320),
        ("Udp6InDatagrams", received / 900),
        ("Udp6NoPorts", 0),
        ("Udp6InErrors", 0),
        ("Udp6OutDatagrams", sent / 900),
        ("Udp6RcvbufErrors", 0),
        ("Udp6SndbufErrors", 0),
    ];
    rows.iter()
        .map(|(name, value)| format!("{name:<32}\t{value}\n"))
        .collect()
}

/// One line of hexadecimal numbers for each processor; all quiet.
pub(super) fn conntrack(scenario: &Scenario) -> String {
    let mut text = String::from(
        "entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop \
         icmp_error  expect_new expect_create expect_delete search_restart\n",
    );
    for _ in 0..scenario.host().cpus {
        text.push_str(
            "000000b8  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 \
                       00000000 00000000 00000000  00000000 00000000 00000000 00000000\n",
        );
    }
    text
}
