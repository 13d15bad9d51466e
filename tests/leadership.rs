//! Several processes of the real binary on one state folder: the lock decides who leads, the others are whole, and when the
//! leader is killed another one carries its runs to the same end.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/binary.rs"]
mod binary;
#[path = "support/pty.rs"]
mod pty;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use binary::{Ended, LabProcess, Running};
use jiff::Timestamp;
use muster::app::{App, FeedEvent, Role};
use muster::domain::event::{Body, Event, Observation, RunRecord};
use muster::domain::ids::RunId;
use muster::store::{Answer, RunStatus, Store, Wish};
use pty::Pty;
use serde_json::Value;

const HOST: &str = "gpu-b07-29";
/// Slow enough that a run is still under way when something is done to it.
const SPEED: u32 = 40;
/// How soon another process must have taken over.
const TAKE_OVER: Duration = Duration::from_secs(2);

/// A command as another person starts it.
fn by(lab: &LabProcess, user: &str, arguments: &[&str]) -> Running {
    let mut command = lab.command(arguments);
    command.env("USER", user);
    Running::start(command)
}

fn serving(lab: &LabProcess, user: &str) -> Running {
    let mut serving = by(lab, user, &["serve"]);
    assert!(serving.wait_for("the engine", |line| line.starts_with("muster serves")).is_some(), "{}", serving.end());
    serving
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// No word of SQLite's reaches a person.
fn spoken_well(ended: &Ended) {
    for word in ["SQL", "sqlite", "database", "constraint", "locked", "panicked"] {
        assert!(!ended.stderr.contains(word) && !ended.stdout.contains(word), "'{word}': {ended}");
    }
}

fn newest(lab: &LabProcess, host: &str) -> Value {
    let runs = lab.run(&["runs", "list", "--json"]).events();
    runs.into_iter().find(|run| run["host"] == host).unwrap_or_else(|| panic!("no run of {host}"))
}

fn id(run: &Value) -> String {
    run["run"].as_str().unwrap().to_owned()
}

/// Waits until something is so.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn records(lab: &LabProcess, run: &str) -> Vec<RunRecord> {
    Store::open(&lab.state()).unwrap().records(run.parse().unwrap()).unwrap()
}

fn events(records: &[RunRecord]) -> Vec<&Event> {
    let journal = records.iter().filter_map(|record| match &record.body {
        Body::Journal(event) => Some(event),
        Body::Observation(_) => None,
    });
    journal.collect()
}

/// When a run went on in another process.
fn resumed_at(records: &[RunRecord]) -> Vec<Timestamp> {
    let resumed = |record: &&RunRecord| matches!(record.body, Body::Observation(Observation::Resumed { .. }));
    records.iter().filter(resumed).map(|record| record.at).collect()
}

/// Kills the leader while a run waits, by pulling its plug; gives how long nobody drove the run.
fn take_over(lab: &LabProcess, leader: Running, run: &str) -> Duration {
    until("a wait", || matches!(events(&records(lab, run)).last(), Some(Event::TimerSet { .. })).then_some(()));
    let killed_at = Timestamp::now();
    leader.kill();
    // When the driver was made anew; it is written down with the first thing that comes of it.
    let resumed = until("the resumption", || resumed_at(&records(lab, run)).first().copied());
    Duration::try_from(resumed.duration_since(killed_at)).unwrap_or_default()
}

/// Proves: G5, G8
#[test]
fn a_killed_leader_is_followed_by_a_command_and_a_killed_command_by_the_service() {
    let undisturbed = {
        let lab = LabProcess::start(SPEED, None);
        assert_eq!(lab.run(&["enroll", HOST, "--json"]).code(), Some(0));
        lab.once_only()
    };

    // A service leads, a command follows.
    let lab = LabProcess::start(SPEED, None);
    let service = serving(&lab, "eve");
    let pid = service.pid();
    let mut command = by(&lab, "jo", &["enroll", HOST, "--json"]);
    command.wait_for("the inspection", |line| line.contains("ironic.inspect") && line.contains("activity_scheduled"));
    let run = id(&newest(&lab, HOST));
    let took = take_over(&lab, service, &run);
    let ended = command.end();
    assert_eq!((ended.code(), &ended.finished(HOST)["status"]), (Some(0), &Value::from("succeeded")), "{ended}");
    assert!(ended.stderr.contains(&format!("process {pid} (eve, since ")), "{ended}");
    assert!(ended.stderr.contains("this one carries the runs out now"), "{ended}");
    assert!(took < TAKE_OVER, "taken over after {took:?}");
    assert_eq!(lab.once_only(), undisturbed, "writes that happen once");
    println!("a command took over from a killed service in {took:?}");
    // What the command told is what the journal has, each once: it followed, then led.
    let told: Vec<u64> =
        ended.events().iter().filter(|e| e["run"] == run.as_str()).filter_map(|e| e["n"].as_u64()).collect();
    let whole: Vec<u64> = (0..records(&lab, &run).len() as u64 - 1).collect();
    assert_eq!(told, whole);

    // A command leads, a service follows.
    let lab = LabProcess::start(SPEED, None);
    let mut command = by(&lab, "jo", &["enroll", HOST, "--json"]);
    command.wait_for("the inspection", |line| line.contains("ironic.inspect") && line.contains("activity_scheduled"));
    let mut service = serving(&lab, "eve");
    let run = id(&newest(&lab, HOST));
    let took = take_over(&lab, command, &run);
    assert!(service.wait_for("the lead", |line| line.contains("muster leads now")).is_some());
    assert!(took < TAKE_OVER, "taken over after {took:?}");
    println!("a service took over from a killed command in {took:?}");
    let ended = lab.run(&["runs", "watch", &run, "--json"]);
    assert_eq!((ended.code(), &ended.finished(HOST)["status"]), (Some(0), &Value::from("succeeded")), "{ended}");
    assert_eq!(lab.once_only(), undisturbed, "writes that happen once");

    // Stopped as a service manager does it.
    signal(service.pid(), rustix::process::Signal::TERM);
    assert_eq!(service.end().code(), Some(0));
}

/// Proves: G8, G9, G10, G16
#[test]
fn a_follower_launches_cancels_retries_and_reads_the_systems() {
    let lab = LabProcess::start(SPEED, None);
    let service = serving(&lab, "eve");
    let synced = lab.run(&["inventory", "sync", "--json"]);
    assert_eq!((synced.code(), &synced.events()[0]["event"]), (Some(0), &Value::from("synced")), "{synced}");

    let detached = lab.run(&["enroll", HOST, "--detach", "--json"]);
    assert_eq!((detached.code(), detached.stderr.as_str()), (Some(0), ""), "{detached}");
    assert_eq!(detached.events()[0]["event"], "accepted");
    let run = id(&newest(&lab, HOST));
    until("the leader", || (newest(&lab, HOST)["status"] == "running").then_some(()));

    let second = by(&lab, "ada", &["enroll", HOST, "--json"]).end();
    assert_eq!((second.code(), &second.events()[0]["code"]), (Some(2), &Value::from("device_busy")), "{second}");
    assert!(second.stderr.contains(&format!("run {}", &run[run.len() - 6..])), "{second}");
    assert!(second.stderr.contains("started by jo"), "{second}");

    let cancelled = by(&lab, "ada", &["runs", "cancel", &run, "--json"]).end();
    assert_eq!(cancelled.code(), Some(0), "{cancelled}");
    assert_eq!(cancelled.events()[0]["event"], "cancelling", "{cancelled}");
    assert_eq!(cancelled.finished(HOST)["status"], "cancelled");
    let journal = records(&lab, &run);
    let asked: Vec<&Event> =
        events(&journal).into_iter().filter(|event| matches!(event, Event::CancelRequested { .. })).collect();
    assert_eq!(asked, [&Event::CancelRequested { by: "ada".into() }]);

    let again = lab.run(&["runs", "cancel", &run, "--json"]);
    assert_eq!((again.code(), &again.events()[0]["code"]), (Some(2), &Value::from("run_ended")), "{again}");
    assert!(again.stderr.contains("has ended already: it was cancelled"), "{again}");

    let retried = lab.run(&["runs", "retry", &run, "--force-inspection", "--json"]);
    assert_eq!((retried.code(), &retried.finished(HOST)["status"]), (Some(0), &Value::from("succeeded")), "{retried}");
    let linked = newest(&lab, HOST);
    assert_eq!((&linked["retry_of"], &linked["by"]), (&Value::from(run), &Value::from("jo")));
    for ended in [&synced, &detached, &second, &cancelled, &again, &retried] {
        spoken_well(ended);
    }
    service.kill();
}

/// Proves: C-48, G8, G10
#[test]
fn of_two_that_retry_one_host_in_the_same_moment_one_is_told_who_was_first() {
    let lab = LabProcess::start(SPEED, None);
    let service = serving(&lab, "eve");
    lab.run(&["enroll", HOST, "--detach"]);
    let run = id(&newest(&lab, HOST));
    assert_eq!(lab.run(&["runs", "cancel", &run]).code(), Some(0));

    let both = ["ada", "bob"].map(|user| by(&lab, user, &["runs", "retry", &run, "--json"]));
    let [one, two] = both.map(Running::end);
    let (first, second, winner) = if one.code() == Some(0) { (one, two, "ada") } else { (two, one, "bob") };
    assert_eq!((first.code(), second.code()), (Some(0), Some(2)), "{first}\n{second}");
    assert!(second.stderr.contains(&format!("is enrolling this host already, started by {winner}")), "{second}");
    assert_eq!(second.events()[0]["code"], "device_busy", "{second}");
    spoken_well(&first);
    spoken_well(&second);
    assert_eq!(lab.run(&["runs", "list", "--json"]).events().len(), 2);
    service.kill();
}

/// Proves: C-48
#[test]
fn many_that_make_one_state_folder_in_the_same_moment_all_get_it() {
    let lab = LabProcess::start(SPEED, None);
    for _ in 0..6 {
        let hosts = ["gpu-b07-29", "gpu-b07-31", "gpu-b07-33"];
        let begun: Vec<Running> = hosts
            .iter()
            .map(|host| by(&lab, "jo", &["enroll", host, "--detach", "--json"]))
            .chain((0..5).map(|_| by(&lab, "jo", &["runs", "list", "--json"])))
            .collect();
        for ended in begun.into_iter().map(Running::end) {
            assert_eq!(ended.code(), Some(0), "{ended}");
            spoken_well(&ended);
        }
        assert_eq!(lab.run(&["runs", "list", "--json"]).events().len(), hosts.len());
        std::fs::remove_dir_all(lab.state()).unwrap();
    }
}

fn console(lab: &LabProcess, user: &str) -> Pty {
    let arguments =
        ["--config", lab.config.to_str().unwrap(), "--state-dir", lab.state().to_str().unwrap()].map(str::to_owned);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = pty::command(&PathBuf::from(env!("CARGO_BIN_EXE_muster")), &arguments, lab.folder.path());
    command.env("USER", user);
    Pty::start(command, 200, 40)
}

fn header(screen: &vt100::Screen) -> String {
    screen.contents().lines().next().unwrap_or_default().to_owned()
}

/// Proves: C-48, G5
#[test]
fn two_consoles_and_a_command_of_the_same_second_are_whole_and_the_last_one_goes_on_alone() {
    let lab = LabProcess::start(20, None);
    let consoles = [console(&lab, "eve"), console(&lab, "ada")];
    let command = by(&lab, "jo", &["enroll", HOST, "--json"]);
    for console in &consoles {
        console.shows("all sites");
        console.shows("1 running");
        for word in ["SQL", "database", "locked"] {
            assert!(!console.text().contains(word), "{}", console.text());
        }
    }
    // Whoever leads says nothing of it; the others name it.
    let lock = || std::fs::read_to_string(lab.state().join("muster.lock")).unwrap();
    // Whoever has just taken the lock writes itself down a moment later.
    let leader = || Some(serde_json::from_str::<Value>(&lock()).ok()?["pid"].as_u64()? as u32);
    let first = until("a leader", leader);
    for console in &consoles {
        if console.child.process_id() == Some(first) {
            assert!(!console.look(header).contains("follows"), "{}", console.text());
        } else {
            console.wait("the leader's name", |screen| header(screen).contains(&format!("follows process {first} (")));
        }
    }
    // The plug of one after the other: the last console carries the run to its end.
    let run = id(&newest(&lab, HOST));
    if first == command.pid() {
        command.kill();
    } else {
        let ended = command;
        signal(first, rustix::process::Signal::KILL);
        ended.kill();
    }
    let second = until("another leader", || leader().filter(|pid| *pid != first && *pid != 0));
    let mut left: Vec<Pty> = consoles.into_iter().filter(|c| c.child.process_id() != Some(first)).collect();
    if left.len() == 2 {
        signal(second, rustix::process::Signal::KILL);
        left.retain(|console| console.child.process_id() != Some(second));
    }
    let last = &mut left[0];
    last.wait("the lead", |screen| !header(screen).contains("follows"));
    until("the end", || (newest(&lab, HOST)["status"] == "succeeded").then_some(()));
    assert!(!resumed_at(&records(&lab, &run)).is_empty());
    last.keys("q");
    assert!(last.ended().success());
}

/// Proves: G8
#[test]
fn a_leader_that_is_stopped_is_said_to_be_and_does_what_was_asked_when_it_goes_on() {
    let lab = LabProcess::start(10, None);
    let service = serving(&lab, "eve");
    let mut command = by(&lab, "jo", &["enroll", HOST, "--json"]);
    command.wait_for("the inspection", |line| line.contains("ironic.inspect") && line.contains("activity_scheduled"));
    let run = id(&newest(&lab, HOST));
    until("a wait", || matches!(events(&records(&lab, &run)).last(), Some(Event::TimerSet { .. })).then_some(()));
    signal(service.pid(), rustix::process::Signal::STOP);
    let unanswered = lab.run(&["runs", "cancel", &run]);
    assert_eq!(unanswered.code(), Some(1), "{unanswered}");
    for part in [&format!("process {} (eve, since ", service.pid()), "does not answer", "kill -CONT"] {
        assert!(unanswered.stderr.contains(part), "{part}: {unanswered}");
    }
    spoken_well(&unanswered);
    signal(service.pid(), rustix::process::Signal::CONT);
    let ended = command.end();
    assert_eq!((ended.code(), &ended.finished(HOST)["status"]), (Some(1), &Value::from("cancelled")), "{ended}");
    service.kill();
}

async fn open(lab: &LabProcess) -> App {
    App::open(muster::config::load(&lab.config).unwrap(), &lab.state()).await.unwrap()
}

/// Proves: G5, G8
#[tokio::test(flavor = "multi_thread")]
async fn a_followers_feed_has_every_record_of_the_leader_once_and_in_order_over_a_take_over_too() {
    let lab = LabProcess::start(SPEED, None);
    let service = serving(&lab, "eve");
    let app = open(&lab).await;
    let Role::Following { leader: Some(leader) } = app.role() else { panic!("{:?}", app.role()) };
    assert_eq!((leader.pid, leader.user.as_deref()), (service.pid(), Some("eve")));
    let mut feed = app.feed();
    app.sync_now().await.unwrap();
    let hosts = [HOST, "gpu-b07-33", "gpu-b07-31"];
    let mut runs = Vec::new();
    for host in hosts {
        runs.push(app.submit(host, Default::default(), "jo").await.unwrap());
    }
    let mut service = Some(service);
    let (mut told, mut ended, mut led, mut fleet, mut health) = (Vec::<RunRecord>::new(), 0, false, false, false);
    while ended < runs.len() {
        match tokio::time::timeout(Duration::from_secs(90), feed.recv()).await.expect("the runs end").unwrap() {
            FeedEvent::Record(record) => {
                ended += usize::from(matches!(record.body, Body::Journal(Event::Finished { .. })));
                told.push(*record);
            }
            FeedEvent::FleetChanged => fleet = true,
            FeedEvent::SystemHealth(_) => health = true,
            FeedEvent::StoreTrouble(trouble) => panic!("{trouble:?}"),
            FeedEvent::Role(role) => led |= role == Role::Leading,
        }
        // In the middle of it all the leader is killed, and this process leads.
        if told.len() > 60
            && let Some(service) = service.take()
        {
            assert!(!led);
            service.kill();
        }
    }
    assert!(led && fleet && health, "{led} {fleet} {health}");
    let store = Store::open(&lab.state()).unwrap();
    for run in runs {
        let of_run: Vec<&RunRecord> = told.iter().filter(|record| record.run == run).collect();
        let journal = store.records(run).unwrap();
        assert_eq!(of_run, journal.iter().collect::<Vec<_>>(), "run {run}");
        assert_eq!(resumed_at(&journal).len(), 1);
    }
    app.shutdown().await;
}

/// Waits for the answer to a command.
async fn answer(store: &Store, id: i64) -> Answer {
    for _ in 0..500 {
        if let Some(answer) = store.command(id).unwrap().and_then(|state| state.answer) {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no answer")
}

/// Proves: G8, G9
#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_leader_left_undone_is_done_by_the_next_one_and_what_it_did_is_not_done_again() {
    let lab = LabProcess::start(SPEED, None);
    let service = serving(&lab, "eve");
    assert_eq!(lab.run(&["enroll", "gpu-b07-33", "--detach"]).code(), Some(0));
    let begun = id(&newest(&lab, "gpu-b07-33"));
    until("a wait", || matches!(events(&records(&lab, &begun)).last(), Some(Event::TimerSet { .. })).then_some(()));
    let asked_at = Timestamp::now();
    service.kill();
    let detached = lab.run(&["enroll", HOST, "gpu-b07-31", "--detach"]);
    assert_eq!(detached.code(), Some(0), "{detached}");
    assert!(detached.stderr.contains("nobody carries runs out now"), "{detached}");
    let store = Store::open(&lab.state()).unwrap();
    let run = |host: &str| store.runs().unwrap().into_iter().find(|row| row.host == host).unwrap().run;
    let (undone, done, over): (RunId, RunId, RunId) = (run(HOST), run("gpu-b07-33"), run("gpu-b07-31"));
    let cancel = |run| Wish::Cancel { run, by: "ada".into() };
    // The leader died before it did anything; with the cancel journaled and not answered; and with the run ended by it.
    let first = store.ask(cancel(undone), asked_at).await.unwrap();
    let requested = || (Timestamp::now(), Body::Journal(Event::CancelRequested { by: "ada".into() }));
    store.append(done, store.journal_end(done).unwrap(), vec![requested()]).await.unwrap();
    let second = store.ask(cancel(done), asked_at).await.unwrap();
    let outcome = muster::domain::event::Outcome::Cancelled { by: "ada".into(), left: vec![], why: None };
    let finished = (Timestamp::now(), Body::Journal(Event::Finished { outcome }));
    store.append(over, 1, vec![requested(), finished]).await.unwrap();
    let third = store.ask(cancel(over), asked_at).await.unwrap();
    // This one was asked after the end.
    let late = store.ask(cancel(over), Timestamp::now()).await.unwrap();

    let app = open(&lab).await;
    assert_eq!(app.role(), Role::Leading);
    for (id, run) in [(first, undone), (second, done), (third, over)] {
        assert_eq!(answer(&store, id).await, Answer::Done, "{:#?}", store.records(run).unwrap());
    }
    assert_eq!(answer(&store, late).await, Answer::RunEnded { run: over });
    for run in [undone, done, over] {
        for _ in 0..500 {
            if store.run(run).unwrap().status == RunStatus::Cancelled {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let journal = store.records(run).unwrap();
        let asked = events(&journal).iter().filter(|event| matches!(event, Event::CancelRequested { .. })).count();
        assert_eq!((store.run(run).unwrap().status, asked), (RunStatus::Cancelled, 1), "{journal:#?}");
    }
    assert!(store.asked().unwrap().is_empty());
    app.shutdown().await;
    // Answered ones go with time.
    let much_later = Timestamp::now().checked_add(Duration::from_secs(3600)).unwrap();
    store.ask(Wish::ReadSystems, much_later).await.unwrap();
    assert_eq!(store.command(first).unwrap(), None);
    assert_eq!(store.asked().unwrap().len(), 1);
}
