//! One soak, from the first host to the report.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    arguments::Arguments,
    daemon,
    errands::Errands,
    faults::{self, FaultCounts},
    host::{Connection, Host},
    ledger::{Fault, Ledger},
    leftovers::{self, Sample},
    processes,
    report::Report,
    world::{Edit, Service, World},
};

/// Hosts of each connection at a time.
const HOSTS_OF_EACH: usize = 2;
/// Errands of one host at a time.
const ERRANDS_AT_A_TIME: usize = 3;
/// The number of the host that comes after all others.
const LAST_HOST: u64 = u64::MAX;
const SAMPLE_INTERVAL: Duration = Duration::from_secs(2);

/// What all hosts share.
struct Shared {
    world: Arc<World>,
    service: Service,
    ledger: Arc<Ledger>,
    is_over: AtomicBool,
}

/// Runs the soak and prints its report. Returns whether nothing was found.
///
/// # Errors
/// If the soak itself cannot be run.
pub async fn run(arguments: &Arguments) -> io::Result<bool> {
    // Another part of the process may have installed the provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let world = Arc::new(World::new(arguments).await?);
    let service = world.start_service().await?;
    // The eager servers connect before the figures are taken.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = Sample::of(service.process);
    let (ledger, counts) = (Arc::new(Ledger::default()), Arc::new(FaultCounts::default()));
    let shared = Arc::new(Shared {
        world: world.clone(),
        service,
        ledger: ledger.clone(),
        is_over: AtomicBool::new(false),
    });
    let began = Instant::now();
    let faults = tokio::spawn(faults::inject(world.clone(), counts.clone(), arguments.seed));
    let hosts = start_hosts(&shared, arguments.seed);
    let samples = sample(&shared, arguments.duration).await;
    shared.is_over.store(true, Ordering::Relaxed);
    hosts.await;
    faults.abort();
    // The task has been aborted, or its panic is reported by the missing faults.
    let _ = faults.await;
    resume_servers(&shared.world);
    visit_daemon(&shared).await;
    world.write_config(Edit::Original)?;
    leftovers::check(&shared.service, before, &ledger).await;
    daemon::check_end(&world, &ledger).await;
    let last = Sample::of(shared.service.process);
    let growth = leftovers::check_memory(&samples, last, &ledger);
    let Ok(shared) = Arc::try_unwrap(shared).map_err(|_| ()) else {
        return Err(io::Error::other("a host is still running"));
    };
    stop(shared.service, &ledger).await;
    let executed = ledger.audit(&world.journals())?;
    let report = Report { arguments, took: began.elapsed(), executed, before, last, growth };
    report.print(&ledger, &counts, world.tokens_given());
    let is_clean = Fault::ALL.iter().all(|fault| ledger.count(*fault) == 0);
    drop(shared.world);
    if !is_clean && let Some(world) = Arc::into_inner(world) {
        println!("logs and journals: {}", world.keep().display());
    }
    Ok(is_clean)
}

/// Takes the figures of the service until the time is over.
async fn sample(shared: &Shared, duration: Duration) -> Vec<Sample> {
    let until = Instant::now() + duration;
    let mut samples = Vec::new();
    while Instant::now() < until {
        samples.push(Sample::of(shared.service.process));
        tokio::time::sleep(SAMPLE_INTERVAL.min(until.duration_since(Instant::now()))).await;
    }
    samples
}

/// Starts all places for hosts. The future resolves when the last host has gone.
fn start_hosts(shared: &Arc<Shared>, seed: u64) -> impl Future<Output = ()> + use<> {
    let places = Connection::ALL.into_iter().flat_map(|kind| [kind; HOSTS_OF_EACH]);
    let tasks: Vec<_> = (0_u64..)
        .zip(places)
        .map(|(place, connection)| {
            let random = fastrand::Rng::with_seed(seed.wrapping_add(place * 7919));
            tokio::spawn(occupy(shared.clone(), connection, place, random))
        })
        .collect();
    async move {
        for task in tasks {
            task.await.expect("no host panics");
        }
    }
}

/// Has one host after the other at a place until the time is over.
async fn occupy(
    shared: Arc<Shared>,
    connection: Connection,
    place: u64,
    mut random: fastrand::Rng,
) {
    let Shared { world, service, ledger, is_over } = &*shared;
    for turn in 0.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        ledger.hosts.fetch_add(1, Ordering::Relaxed);
        let number = place * 100_000 + turn;
        let connected = Host::connect(world, service, connection, number, ledger.clone()).await;
        let host = match connected {
            Ok(host) => host,
            Err(why) => {
                ledger.find(Fault::Lost, why);
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        let errands = Errands::new(host.clone(), ledger.clone());
        let stay = Instant::now() + Duration::from_millis(random.u64(2_000..25_000));
        let workers = (0..ERRANDS_AT_A_TIME).map(|_| {
            let (errands, mut random) = (&errands, random.fork());
            async move {
                while Instant::now() < stay && !is_over.load(Ordering::Relaxed) {
                    errands.run_one(&mut random).await;
                }
            }
        });
        futures_util::future::join_all(workers).await;
        errands.change_alone().await;
        host.close(random.bool()).await;
    }
}

/// Connects and disconnects one more host by the daemon. A killed daemon leaves its files to the
/// next one; without a next one they would count as a leak.
async fn visit_daemon(shared: &Shared) {
    let Shared { world, service, ledger, .. } = shared;
    ledger.hosts.fetch_add(1, Ordering::Relaxed);
    match Host::connect(world, service, Connection::Daemon, LAST_HOST, ledger.clone()).await {
        Ok(host) => host.close(true).await,
        Err(why) => ledger.find(Fault::Lost, why),
    }
}

/// Continues servers that were stopped when the faults ended.
fn resume_servers(world: &World) {
    for process in world.running().into_iter().flat_map(processes::descendants) {
        processes::signal(process, nix::sys::signal::Signal::SIGCONT);
    }
}

/// Ends the service, and checks that it takes its processes with it.
async fn stop(service: Service, ledger: &Ledger) {
    let children = processes::descendants(service.process);
    if !service.stop().await {
        ledger.find(Fault::Leaked, "the service has not ended in order");
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for process in children {
        let line = processes::command_line(process);
        if line.contains(" server ") {
            ledger.find(Fault::Leaked, format!("a process outlives the service: {line}"));
        }
    }
}
