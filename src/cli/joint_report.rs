//! One report for each process, from the reports for each of its hosts.

use crate::{
    catalog::ToolCounts,
    control::{ServerReport, StatusReport},
    upstream::Phase,
};

/// Joins the reports that are of the same process.
pub(super) fn by_process(reports: &[StatusReport]) -> Vec<StatusReport> {
    let mut joined: Vec<StatusReport> = Vec::new();
    for report in reports {
        let is_same = |known: &&mut StatusReport| known.pid.is_some() && known.pid == report.pid;
        match joined.iter_mut().find(is_same) {
            Some(known) => add_host(known, report),
            None => joined.push(report.clone()),
        }
    }
    joined
}

/// Joins the reports of all processes; `None` without any.
pub(super) fn over_processes(reports: &[StatusReport]) -> Option<StatusReport> {
    let (first, others) = reports.split_first()?;
    let mut joined = first.clone();
    for report in others {
        add_host(&mut joined, report);
    }
    Some(joined)
}

fn add_host(report: &mut StatusReport, of_host: &StatusReport) {
    report.hosts += of_host.hosts;
    report.clients.extend(of_host.clients.iter().cloned());
    if let Some(theirs) = &of_host.savings {
        report.savings.get_or_insert_default().add(theirs);
    }
    for server in &of_host.servers {
        match report.servers.iter_mut().find(|known| known.name == server.name) {
            Some(known) => add_server(known, server),
            None => report.servers.push(server.clone()),
        }
    }
}

fn add_server(report: &mut ServerReport, of_host: &ServerReport) {
    report.awake += of_host.awake;
    report.memory = match (report.memory, of_host.memory) {
        (Some(own), Some(theirs)) => Some(own + theirs),
        (own, theirs) => own.or(theirs),
    };
    report.tally.add(of_host.tally);
    report.strikes = report.strikes.max(of_host.strikes);
    if activity(of_host.state) > activity(report.state) {
        report.state = of_host.state;
    }
    if of_host.last_wake.map(|wake| wake.at) > report.last_wake.map(|wake| wake.at) {
        report.last_wake = of_host.last_wake;
    }
    let tools = |server: &ServerReport| server.tool_counts.map(ToolCounts::total);
    if tools(of_host) > tools(report) {
        report.inventory.clone_from(&of_host.inventory);
        report.tool_counts = of_host.tool_counts;
        report.tokens = of_host.tokens;
    }
    report.last_error = report.last_error.take().or_else(|| of_host.last_error.clone());
    report.noise = report.noise.take().or_else(|| of_host.noise.clone());
    report.retry_in = report.retry_in.or(of_host.retry_in);
    report.login = report.login.take().or_else(|| of_host.login.clone());
}

/// Returns a number that is higher, the more of a server runs in this phase.
fn activity(phase: Option<Phase>) -> u8 {
    match phase {
        None => 0,
        Some(Phase::Disabled) => 1,
        Some(Phase::Unloaded) => 2,
        Some(Phase::Evicted) => 3,
        Some(Phase::AwaitingLogin) => 4,
        Some(Phase::BackingOff) => 5,
        Some(Phase::Asleep) => 6,
        Some(Phase::Loading) => 7,
        Some(Phase::Awake) => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        control::LastWake,
        telemetry::{SavingsReport, ServerTally},
    };

    fn server(name: &str, state: Phase, awake: usize, woken_at: Option<u64>) -> ServerReport {
        ServerReport {
            name: name.to_owned(),
            state: Some(state),
            startup: "lazy".to_owned(),
            strikes: 0,
            awake,
            memory: Some(1000),
            tally: ServerTally { calls: 3, failed_calls: 1, wakes: 1 },
            last_wake: woken_at.map(|at| LastWake { at, took: 1 }),
            last_error: None,
            noise: None,
            retry_in: None,
            inventory: None,
            tool_counts: None,
            tokens: None,
            login: None,
        }
    }

    fn report(pid: Option<u32>, servers: Vec<ServerReport>) -> StatusReport {
        StatusReport {
            pid,
            version: String::new(),
            config: "c".into(),
            hosts: 1,
            clients: vec!["x 1".to_owned()],
            savings: Some(SavingsReport { turns: 2, ..SavingsReport::default() }),
            servers,
        }
    }

    #[test]
    fn hosts_of_one_process_are_counted_together() {
        let failed = ServerReport {
            last_error: Some("boom".to_owned()),
            ..server("a", Phase::Asleep, 0, Some(5))
        };
        let reports = [
            report(Some(1), vec![failed]),
            report(Some(2), vec![server("a", Phase::Unloaded, 0, None)]),
            report(Some(1), vec![server("a", Phase::Awake, 2, Some(9))]),
            report(Some(1), vec![server("b", Phase::Awake, 1, None)]),
        ];
        let joined = by_process(&reports);
        assert_eq!(joined.iter().map(|report| report.hosts).collect::<Vec<_>>(), [3, 1]);
        let [a, b] = &joined[0].servers[..] else { panic!("two servers") };
        assert_eq!((a.state, a.awake), (Some(Phase::Awake), 2));
        assert_eq!((a.memory, a.tally.calls), (Some(2000), 6));
        assert_eq!(joined[0].clients.len(), 3);
        assert_eq!(joined[0].savings.as_ref().map(|savings| savings.turns), Some(6));
        assert_eq!(a.last_wake.map(|wake| wake.at), Some(9));
        assert_eq!(a.last_error.as_deref(), Some("boom"));
        assert_eq!(b.awake, 1);
    }

    #[test]
    fn reports_of_no_process_stay_apart() {
        let at_rest = report(None, Vec::new());
        assert_eq!(by_process(&[at_rest.clone(), at_rest]).len(), 2);
    }
}
