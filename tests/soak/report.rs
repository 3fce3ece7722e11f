//! The report of a soak.

use std::{sync::atomic::Ordering, time::Duration};

use crate::{
    arguments::Arguments,
    faults::FaultCounts,
    ledger::{Fault, Ledger},
    leftovers::Sample,
};

pub struct Report<'a> {
    pub arguments: &'a Arguments,
    pub took: Duration,
    /// Calls that servers have executed.
    pub executed: u64,
    pub before: Sample,
    pub last: Sample,
    /// Growth of resident memory in kilobytes per hour.
    pub growth: f64,
}

impl Report<'_> {
    pub fn print(&self, ledger: &Ledger, counts: &FaultCounts, tokens: u64) {
        let Self { arguments, took, executed, before, last, growth } = self;
        let (answered, failed) = ledger.ended();
        let read = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        println!("soak of {:.1} min, seed {}", took.as_secs_f64() / 60.0, arguments.seed);
        println!("  hosts                 {}", read(&ledger.hosts));
        println!("  errands               {}", ledger.started());
        for (errand, count) in ledger.errands() {
            println!("    {errand:<19} {count}");
        }
        println!("  answered              {answered}");
        println!("  failed or cancelled   {failed}");
        println!("  executed by servers   {executed}");
        println!("  notifications         {}", read(&ledger.notified));
        println!("  questions             {}", read(&ledger.questions));
        println!("  servers killed        {}", read(&counts.killed));
        println!("  servers stopped       {}", read(&counts.stopped));
        println!("  daemons killed        {}", read(&counts.daemons_killed));
        println!("  daemons restarted     {}", read(&counts.daemons_restarted));
        println!("  daemons upgraded      {}", read(&counts.daemons_upgraded));
        println!("  configs written       {}", read(&counts.edited));
        println!("  tokens given          {tokens}");
        println!("  memory before, after  {}, {} kB", before.resident, last.resident);
        println!("  memory growth         {growth:.0} kB/h");
        println!("  descriptors           {}, {}", before.descriptors, last.descriptors);
        for fault in Fault::ALL {
            println!("  {:<21} {}", format!("{fault:?}").to_lowercase(), ledger.count(fault));
        }
        for (fault, what) in ledger.findings() {
            println!("{}: {what}", format!("{fault:?}").to_lowercase());
        }
    }
}
