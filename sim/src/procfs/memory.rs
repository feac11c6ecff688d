//! Memory: `meminfo`, `vmstat`.

use crate::host::HostState;

pub(super) fn meminfo(state: &HostState) -> String {
    let kib = |bytes: u64| bytes / 1024;
    let cached = kib(state.memory_cached);
    let anonymous = kib(state.memory_anonymous);
    let rows = [
        ("MemTotal", kib(state.memory_total)),
        ("MemFree", kib(state.memory_free)),
        ("MemAvailable", kib(state.memory_available)),
        ("Buffers", 412_160),
        ("Cached", cached.saturating_sub(412_160)),
        ("SwapCached", 0),
        ("Active", anonymous / 3 + cached / 3),
        ("Inactive", anonymous / 3 * 2 + cached / 3 * 2),
        ("Active(anon)", anonymous / 3),
        ("Inactive(anon)", anonymous / 3 * 2),
        ("Active(file)", cached / 3),
        ("Inactive(file)", cached / 3 * 2),
        ("Unevictable", 24_816),
        ("Mlocked", 24_816),
        ("SwapTotal", 0),
        ("SwapFree", 0),
        ("Zswap", 0),
        ("Zswapped", 0),
        ("Dirty", 18_432),
        ("Writeback", 0),
        ("AnonPages", anonymous),
        ("Mapped", 4_210_688),
        ("Shmem", 1_048_576),
        ("KReclaimable", 3_145_728),
        ("Slab", 5_242_880),
        ("SReclaimable", 3_145_728),
        ("SUnreclaim", 2_097_152),
        ("KernelStack", 38_912),
        ("PageTables", anonymous / 512 + 40_960),
        ("NFS_Unstable", 0),
        ("Bounce", 0),
        ("WritebackTmp", 0),
        ("CommitLimit", kib(state.memory_total) / 2),
        ("Committed_AS", anonymous + anonymous / 8),
        ("VmallocTotal", 34_359_738_367),
        ("VmallocUsed", 912_384),
        ("VmallocChunk", 0),
        ("Percpu", 245_760),
        ("HardwareCorrupted", 0),
        ("AnonHugePages", anonymous / 4),
        ("ShmemHugePages", 0),
        ("FileHugePages", 0),
        ("Hugepagesize", 2048),
        ("Hugetlb", 0),
        ("DirectMap4k", 1_572_864),
        ("DirectMap2M", 41_943_040),
        ("DirectMap1G", kib(state.memory_total).saturating_sub(43_515_904)),
    ];
    let mut text: String = rows
        .iter()
        .map(|(name, kib)| format!("{:<16}{kib:>12} kB\n", format!("{name}:")))
        .collect();
    text.push_str(
        "HugePages_Total:       0\nHugePages_Free:        0\nHugePages_Rsvd:        0\nHugePages_Surp:        0\n",
    );
    text
}

pub(super) fn vmstat(state: &HostState) -> String {
    let busy = state.user_ticks + state.system_ticks;
    let rows = [
        ("nr_free_pages", state.memory_free / 4096),
        ("nr_anon_pages", state.memory_anonymous / 4096),
        ("nr_file_pages", state.memory_cached / 4096),
        ("nr_dirty", 4_608),
        ("nr_writeback", 0),
        ("pgpgin", state.disk_read / 1024),
        ("pgpgout", state.disk_written / 1024),
        ("pswpin", 0),
        ("pswpout", 0),
        ("pgfault", busy * 620),
        ("pgmajfault", busy / 50 + state.memory_stall_us / 900),
        ("pgscan_kswapd", state.memory_stall_us * 3),
        ("pgsteal_kswapd", state.memory_stall_us * 2),
        ("oom_kill", state.oom_kills),
    ];
    rows.iter().map(|(name, value)| format!("{name} {value}\n")).collect()
}
