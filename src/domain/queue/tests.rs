use super::*;
use proptest::prelude::*;

fn id(n: usize) -> RunId {
    RunId(uuid::Uuid::from_u128(n as u128))
}

fn at(second: usize) -> Timestamp {
    Timestamp::new(1_800_000_000 + second as i64, 0).unwrap()
}

fn entry(n: usize, site: &str) -> Entry {
    Entry {
        run: id(n),
        site: site.into(),
        placement: Placement::default(),
        submitted_at: at(n),
        begun: false,
        canary: None,
    }
}

fn of_rack(n: usize, site: &str, rack: &str) -> Entry {
    Entry { placement: Placement { rack: Some(rack.into()), ..Placement::default() }, ..entry(n, site) }
}

fn of_switches(n: usize, switches: &[&str]) -> Entry {
    let switches = switches.iter().map(|s| (*s).to_owned()).collect();
    Entry { placement: Placement { switches, ..Placement::default() }, ..entry(n, "osl1") }
}

fn behind(n: usize, canary: usize, verdict: Verdict) -> Entry {
    Entry { canary: Some(Canary { run: id(canary), host: format!("gpu-{canary}"), verdict }), ..entry(n, "osl1") }
}

fn begun(entry: Entry) -> Entry {
    Entry { begun: true, ..entry }
}

/// `n: reason` of each, in order.
fn told(entries: &[Entry], caps: &Caps) -> Vec<String> {
    line(entries, caps)
        .into_iter()
        .enumerate()
        .map(|(at, queued)| {
            assert_eq!(queued.place, at + 1);
            format!("{}: {}", queued.run.0.as_u128(), queued.reason)
        })
        .collect()
}

const NONE: Caps = Caps { runs: None, per_site: None, per_rack: None, per_switch: None };

#[test]
fn without_a_limit_all_begin_and_a_begun_run_is_not_in_the_line() {
    let entries = [entry(2, "osl1"), begun(entry(1, "osl1")), entry(3, "fra1")];
    assert_eq!(told(&entries, &NONE), ["3: next to begin", "2: next to begin"]);
}

#[test]
fn each_limit_says_its_name_and_how_full_it_is_the_narrowest_first() {
    let caps = Caps { runs: Some(2), ..NONE };
    let entries = [begun(entry(1, "a")), entry(2, "a"), entry(3, "a")];
    assert_eq!(told(&entries, &caps), ["2: next to begin", "3: total limit, 2 of 2 under way"]);

    let caps = Caps { runs: Some(2), per_site: Some(1), ..NONE };
    let entries = [begun(entry(1, "osl1")), entry(2, "osl1"), entry(3, "fra1"), entry(4, "fra1")];
    assert_eq!(
        told(&entries, &caps),
        ["3: next to begin", "2: limit of site osl1, 1 of 1 under way", "4: limit of site fra1, 1 of 1 under way"]
    );

    let caps = Caps { per_rack: Some(1), ..NONE };
    let entries = [of_rack(1, "osl1", "B07"), of_rack(2, "osl1", "B07"), of_rack(3, "fra1", "B07"), entry(4, "osl1")];
    assert_eq!(
        told(&entries, &caps),
        ["1: next to begin", "3: next to begin", "4: next to begin", "2: limit of rack B07, 1 of 1 under way"]
    );

    let caps = Caps { per_switch: Some(1), ..NONE };
    let entries =
        [of_switches(1, &["leaf-1", "leaf-2"]), of_switches(2, &["leaf-3", "leaf-2"]), of_switches(3, &["leaf-3"])];
    assert_eq!(
        told(&entries, &caps),
        ["1: next to begin", "3: next to begin", "2: limit of switch leaf-3, 1 of 1 under way"]
    );
}

#[test]
fn a_lowered_limit_stops_nothing_that_is_under_way_and_lets_nothing_more_in() {
    let caps = Caps { per_site: Some(1), ..NONE };
    let entries = [begun(entry(1, "osl1")), begun(entry(2, "osl1")), entry(3, "osl1")];
    assert_eq!(told(&entries, &caps), ["3: limit of site osl1, 2 of 1 under way"]);
}

#[test]
fn the_others_wait_for_their_canary_go_with_its_success_and_leave_the_line_with_its_failure() {
    let pending = [entry(1, "osl1"), behind(2, 1, Verdict::Pending), entry(3, "osl1")];
    assert_eq!(
        told(&pending, &Caps { runs: Some(1), ..NONE }),
        ["1: next to begin", "3: total limit, 1 of 1 under way", "2: waits for canary gpu-1"]
    );
    assert_eq!(told(&[behind(2, 1, Verdict::Succeeded)], &NONE), ["2: next to begin"]);
    assert!(told(&[behind(2, 1, Verdict::Ended("failed".into()))], &NONE).is_empty());
}

/// Proves: G13
#[test]
fn the_flood_of_one_site_keeps_no_other_from_its_share() {
    let mut entries: Vec<Entry> = (1..=1000).map(|n| entry(n, "flood")).collect();
    entries.iter_mut().take(4).for_each(|entry| entry.begun = true);
    entries.push(entry(2000, "small"));
    entries.push(entry(2001, "small"));
    let caps = Caps { runs: Some(5), ..NONE };
    // One place is free: it goes to the site that has none, although a thousand were there before.
    let queue = line(&entries, &caps);
    assert_eq!((queue[0].run, &queue[0].reason), (id(2000), &Reason::Next));
    assert_eq!(queue[1].run, id(2001), "{:?}", &queue[..3]);
    assert_eq!(queue[2].run, id(5));
}

#[derive(Debug, Clone)]
struct Given {
    site: usize,
    rack: Option<usize>,
    switches: Vec<usize>,
    /// Waits for the run this many places before it, where there is one.
    behind: Option<usize>,
}

fn given() -> impl Strategy<Value = Given> {
    let switches = proptest::collection::btree_set(0..4usize, 0..3).prop_map(|set| set.into_iter().collect());
    (0..3usize, proptest::option::of(0..2usize), switches, proptest::option::weighted(0.1, 1..5usize))
        .prop_map(|(site, rack, switches, behind)| Given { site, rack, switches, behind })
}

fn caps() -> impl Strategy<Value = Caps> {
    let cap = || proptest::option::of(1..4usize);
    (cap(), cap(), cap(), cap()).prop_map(|(runs, per_site, per_rack, per_switch)| Caps {
        runs,
        per_site,
        per_rack,
        per_switch,
    })
}

fn entries(given: &[Given]) -> Vec<Entry> {
    let made = given.iter().enumerate().map(|(n, given)| {
        let placement = Placement {
            location: None,
            rack: given.rack.map(|rack| format!("r{rack}")),
            switches: given.switches.iter().map(|switch| format!("s{switch}")).collect(),
        };
        let canary = given.behind.and_then(|back| n.checked_sub(back));
        Entry {
            placement,
            // Two of each second: the id decides between them.
            submitted_at: at(n / 2),
            canary: canary.map(|n| Canary { run: id(n), host: format!("h{n}"), verdict: Verdict::Pending }),
            ..entry(n, &format!("site{}", given.site))
        }
    });
    made.collect()
}

/// The most that any limit counts, beside what it allows; counted without the code under test.
fn within(entries: &[Entry], caps: &Caps) -> Result<(), String> {
    let begun: Vec<&Entry> = entries.iter().filter(|entry| entry.begun).collect();
    let count = |what: &str, cap: Option<usize>, n: usize| match cap {
        Some(cap) if n > cap => Err(format!("{what}: {n} of {cap}")),
        _ => Ok(()),
    };
    count("total", caps.runs, begun.len())?;
    for one in &begun {
        let same = |f: &dyn Fn(&Entry) -> bool| begun.iter().filter(|e| e.site == one.site && f(e)).count();
        count("site", caps.per_site, same(&|_| true))?;
        if one.placement.rack.is_some() {
            count("rack", caps.per_rack, same(&|e| e.placement.rack == one.placement.rack))?;
        }
        for switch in &one.placement.switches {
            count("switch", caps.per_switch, same(&|e| e.placement.switches.contains(switch)))?;
        }
    }
    Ok(())
}

proptest! {
    /// Proves: G13
    #[test]
    fn never_above_a_limit_never_idle_room_and_everybody_gets_a_turn(
        given in proptest::collection::vec(given(), 1..30),
        caps in caps(),
        ends in proptest::collection::vec(0..100usize, 40),
    ) {
        let mut left = entries(&given);
        let mut begun_ever = 0;
        let mut ends = ends.into_iter().cycle();
        for _ in 0..=given.len() {
            let next: Vec<RunId> = line(&left, &caps)
                .into_iter()
                .filter(|queued| queued.reason == Reason::Next)
                .map(|queued| queued.run)
                .collect();
            begun_ever += next.len();
            left.iter_mut().filter(|entry| next.contains(&entry.run)).for_each(|entry| entry.begun = true);
            prop_assert_eq!(within(&left, &caps), Ok(()));
            // Work-conserving: whoever waits and is free to begin would break a limit.
            for at in 0..left.len() {
                let held = matches!(&left[at].canary, Some(canary) if canary.verdict == Verdict::Pending);
                if left[at].begun || held {
                    continue;
                }
                let mut more = left.clone();
                more[at].begun = true;
                prop_assert!(within(&more, &caps).is_err(), "{:?} waits for nothing", left[at]);
            }
            // One ends, whichever.
            let under_way: Vec<RunId> = left.iter().filter(|entry| entry.begun).map(|entry| entry.run).collect();
            if under_way.is_empty() {
                break;
            }
            let over = under_way[ends.next().unwrap() % under_way.len()];
            left.retain(|entry| entry.run != over);
            for canary in left.iter_mut().filter_map(|entry| entry.canary.as_mut()).filter(|c| c.run == over) {
                canary.verdict = Verdict::Succeeded;
            }
        }
        prop_assert!(left.is_empty(), "never came up: {:?}", left);
        prop_assert_eq!(begun_ever, given.len());
    }

    /// Proves: G13
    #[test]
    fn the_line_is_the_same_whatever_the_order_in_which_the_runs_are_listed(
        given in proptest::collection::vec(given(), 1..20),
        caps in caps(),
        turn in 0..20usize,
    ) {
        let straight = entries(&given);
        let mut turned = straight.clone();
        turned.rotate_left(turn % given.len());
        turned.reverse();
        prop_assert_eq!(line(&straight, &caps), line(&turned, &caps));
    }

    /// Proves: G13
    #[test]
    fn what_is_under_way_comes_before_whatever_waits(
        given in proptest::collection::vec(given(), 2..20),
        caps in caps(),
    ) {
        // The first half was under way when the process ended, though it may be more than the limits allow now.
        let mut all = entries(&given);
        let half = all.len() / 2;
        all.iter_mut().take(half).for_each(|entry| entry.begun = true);
        let line = line(&all, &caps);
        prop_assert!(line.iter().all(|queued| queued.run >= id(half)));
        if caps.runs.is_some_and(|limit| half >= limit) {
            prop_assert!(line.iter().all(|queued| queued.reason != Reason::Next));
        }
    }
}
