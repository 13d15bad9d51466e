//! Scripts of keys against the model: what they ask of the outside, and what stands on the screen afterwards.

#[path = "flows/looking_back.rs"]
mod looking_back;
#[path = "support/world.rs"]
mod world;

use jiff::Span;
use muster::domain::event::{Body, Event as Journal, Outcome};
use muster::domain::ids::RunId;
use muster::domain::request::EnrollParams;
use muster::tui::action::{Where, here};
use muster::tui::effect::{Effect, LogScroll};
use muster::tui::event::{Ending, Event, Key, Refused};
use muster::tui::glyphs::Glyphs;
use muster::tui::model::fleet::Pane;
use muster::tui::model::run_screen::RunPane;
use muster::tui::model::{Model, Popup, ToastKind};
use muster::tui::theme::Theme;
use muster::tui::update::update;
use muster::tui::view::{LogPane, draw};
use muster::tui::widgets::pen::Skin;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use world::{console, failed_run, go, live_run, plan_of, press, run_id};

/// The last frame as text.
fn screen(model: &Model) -> String {
    let mut buf = Buffer::empty(Rect::new(0, 0, model.width, model.height));
    let skin = Skin { theme: Theme::named("dark").unwrap(), glyphs: Glyphs { ascii: false } };
    draw(model, &skin, &LogPane::new(false), &mut buf);
    let rows = buf.content.chunks(usize::from(model.width));
    rows.map(|r| r.iter().map(|c| c.symbol()).collect::<String>().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn assert_shows(model: &Model, text: &str) {
    let screen = screen(model);
    assert!(screen.contains(text), "'{text}' is not on the screen:\n{screen}");
}

fn selected(model: &Model) -> &str {
    &model.fleet.host().unwrap().device.name
}

/// Keys without time between them, as a paste without brackets or a script sends them.
fn burst(model: &mut Model, keys: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    let mut at = model.now;
    for key in keys.split(' ') {
        effects.extend(update(model, Event::Key { key: key.parse::<Key>().unwrap(), at }));
        at = at.checked_add(Span::new().milliseconds(1)).unwrap();
    }
    effects.extend(update(model, Event::Tick(at.checked_add(Span::new().milliseconds(200)).unwrap())));
    effects
}

#[test]
fn arrows_and_letters_move_alike_and_the_ends_hold() {
    let mut model = console(100, 32);
    for (keys, host) in [
        ("j", "gpu-b07-33"),
        ("down", "gpu-b07-31"),
        ("k up", "gpu-b07-37"),
        ("g g j", "gpu-b07-41"),
        ("k k", "leaf-b07-1"),
        ("G", "gpu-b07-35"),
        ("j", "gpu-b07-35"),
        ("home ctrl-d", "gpu-b07-19"),
    ] {
        press(&mut model, keys);
        assert_eq!(selected(&model), host, "after {keys}");
    }
}

/// Proves: U1
#[test]
fn the_tree_leads_from_the_site_to_the_rack_and_the_table_follows() {
    let mut model = console(100, 32);
    press(&mut model, "tab");
    assert_eq!(model.fleet.pane, Pane::Tree);
    press(&mut model, "h h");
    assert_eq!(model.fleet.place.name(), "hall B", "closed first, then left");
    press(&mut model, "h");
    assert_eq!(model.fleet.place.name(), "osl1");
    assert_eq!(model.fleet.shown.len(), 35);
    assert_shows(&model, "35 devices");
    press(&mut model, "k k k k k enter");
    assert_eq!((model.fleet.pane, model.fleet.place.name()), (Pane::Table, "ams2"));
}

/// Proves: U1
#[test]
fn a_refresh_moves_no_cursor_and_no_mark() {
    let mut model = console(100, 32);
    press(&mut model, "space");
    let before = selected(&model).to_owned();
    let mut hosts = world::hosts();
    hosts.reverse();
    hosts.retain(|h| h.device.name != "gpu-b07-41");
    update(&mut model, Event::Fleet(hosts));
    assert_eq!(selected(&model), before);
    assert_eq!(model.fleet.marks.len(), 1);
    let gone = [before.as_str(), "gpu-b07-41"];
    let hosts: Vec<_> = world::hosts().into_iter().filter(|h| !gone.contains(&h.device.name.as_str())).collect();
    update(&mut model, Event::Fleet(hosts));
    assert_eq!(selected(&model), "gpu-b07-31", "the neighbour takes over when the selected host leaves");
}

/// Proves: N1, U1
#[test]
fn the_first_hosts_show_before_the_rest_with_no_number_that_is_not_known_and_the_cursor_stays() {
    let mut whole = world::hosts();
    whole.sort_by(muster::tui::model::place::by_place);
    let mut model = Model::new(world::now(), 100, 32);
    update(&mut model, Event::FleetBegins(whole[..8].to_vec()));
    assert_shows(&model, "the first 8, reading the others");
    assert_shows(&model, "reading the fleet");
    let device = |model: &Model, row| model.fleet.row(row).unwrap().device.name.clone();
    assert_eq!((selected(&model), model.fleet.shown.len()), (&*device(&model, 0), 8));
    press(&mut model, "j j space");
    let before = selected(&model).to_owned();
    update(&mut model, Event::Fleet(whole.clone()));
    assert_eq!(selected(&model), before);
    assert_eq!((model.fleet.shown.len(), model.fleet.marks.len()), (whole.len(), 1));
    let screen = screen(&model);
    assert!(!screen.contains("reading"), "{screen}");
    // One that comes late takes nothing away.
    update(&mut model, Event::FleetBegins(whole[..8].to_vec()));
    assert_eq!(model.fleet.shown.len(), whole.len());
}

/// Proves: N1, U1
#[test]
fn hosts_that_change_come_and_go_leave_the_rest_as_it_stands() {
    for sort in 0..5 {
        let mut model = console(100, 32);
        press(&mut model, "tab h h h h h tab");
        for _ in 0..sort {
            press(&mut model, "s");
        }
        press(&mut model, "j j j space");
        let before = selected(&model).to_owned();
        let mut hosts = world::hosts();
        let known =
            |hosts: &[muster::tui::model::host::Host], name: &str| hosts.iter().position(|h| h.device.name == name);
        let gone = hosts.remove(known(&hosts, "gpu-b07-41").unwrap()).device.netbox_id;
        let (moves, rests) = (known(&hosts, "gpu-b07-33").unwrap(), known(&hosts, "gpu-b07-17").unwrap());
        hosts[moves].device.rack = Some("B99".into());
        hosts[rests].device.status = "planned".into();
        let mut comes = hosts[moves].clone();
        (comes.device.netbox_id, comes.device.name) = (99_999, "gpu-new".into());
        hosts.push(comes.clone());
        let changed = vec![hosts[moves].clone(), hosts[rests].clone(), comes];
        update(&mut model, Event::Hosts { changed, gone: vec![gone] });
        let mut whole = console(100, 32);
        whole.fleet.sort_by(model.fleet.sort);
        whole.fleet.go(model.fleet.place.clone());
        update(&mut whole, Event::Fleet(hosts));
        let names = |model: &Model| -> Vec<String> {
            (0..model.fleet.shown.len()).map(|row| model.fleet.row(row).unwrap().device.name.to_string()).collect()
        };
        assert_eq!(names(&model), names(&whole));
        assert_eq!((&model.fleet.tree, model.fleet.totals), (&whole.fleet.tree, whole.fleet.totals));
        assert!(model.fleet.by_name("gpu-new").is_some() && model.fleet.by_name("gpu-b07-41").is_none());
        assert!(before == "gpu-b07-41" || selected(&model) == before);
    }
}

/// Proves: U2
#[test]
fn a_run_whose_records_were_missed_is_taken_from_the_list_of_runs_and_asked_for() {
    let mut model = console(100, 32);
    let host = world::hosts().into_iter().find(|h| h.device.name == "gpu-b07-33").unwrap();
    let mut last = *world::hosts().into_iter().find(|h| h.device.name == "gpu-b07-39").unwrap().last_run.unwrap();
    last.run = world::run_id(0x777);
    let effects = update(&mut model, Event::LastRuns(vec![(host.device.netbox_id, last.clone())]));
    assert!(effects.contains(&Effect::LoadRun(last.run)), "{effects:?}");
    assert_eq!(model.fleet.by_name("gpu-b07-33").unwrap().last_run.as_deref(), Some(&last));
}

/// Proves: U6
#[test]
fn the_filter_narrows_as_it_is_typed_and_says_how_to_leave() {
    let mut model = console(100, 32);
    press(&mut model, "/ b 0 7 3");
    assert_eq!(model.fleet.shown.len(), 6);
    assert_shows(&model, "6 of 14");
    press(&mut model, "enter");
    assert_eq!(here(&model), Where::Fleet);
    press(&mut model, "n n N");
    assert_eq!(selected(&model), "gpu-b07-33");
    press(&mut model, "esc");
    assert_eq!(model.fleet.shown.len(), 14);
    press(&mut model, "/ z z");
    assert_shows(&model, "esc clears the filter");
    press(&mut model, "esc / ! r u n : n e v e r space r a c k : b 0 7 space u : 4 1");
    assert_eq!(selected(&model), "gpu-b07-41");
    assert_eq!(model.fleet.shown.len(), 1);
}

#[test]
fn a_quoted_value_filters_by_a_column_with_blanks() {
    let mut model = console(100, 32);
    press(&mut model, "/ i r o n i c : \" c l e a n space w \" enter");
    assert_eq!((selected(&model), model.fleet.shown.len()), ("gpu-b07-31", 1));
}

/// Proves: U2
#[test]
fn the_launch_dialog_starts_one_host_with_the_switches_that_were_set() {
    let mut model = console(100, 32);
    press(&mut model, "j e");
    assert_shows(&model, "gpu-b07-33           eligible");
    assert_shows(&model, "– ipmi switch");
    let effects = press(&mut model, "j space j j l l enter");
    let [Effect::Submit { host, params, open: true }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(host, "gpu-b07-33");
    assert!(params.run_inspection && params.force_inspection && !params.force_bmc_restart);
    assert_eq!((params.max_attempts, params.node_uuid), (Some(2), None));
    let answer = Ok(run_id(0xabc));
    let effects = update(&mut model, Event::Submitted { host: "gpu-b07-33".into(), of: None, open: true, answer });
    assert_eq!(effects, [Effect::LoadRun(run_id(0xabc))]);
    assert_eq!(here(&model), Where::Run);
}

/// Proves: D6, G14
#[test]
fn the_plan_of_a_launch_shows_what_would_be_uploaded_beside_what_is_there() {
    let mut model = console(100, 32);
    let effects = {
        press(&mut model, "j e");
        press(&mut model, "p")
    };
    let [Effect::Plan { host, params }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((host.as_str(), params.force_inspection), ("gpu-b07-33", false));
    assert_shows(&model, "nothing is written");
    // A plan with other switches than those that are set is of no use any more.
    let other = EnrollParams { force_inspection: true, ..params.clone() };
    let planned = |params: &EnrollParams, plan| Event::Planned { host: host.clone(), params: params.clone(), plan };
    update(&mut model, planned(&other, Ok(plan_of("gpu-b07-33"))));
    assert_shows(&model, "nothing is written");
    assert_eq!(update(&mut model, planned(params, Ok(plan_of("gpu-b07-33")))), []);
    assert_shows(&model, "3 writes, 18 reads");
    assert_shows(&model, "-   fixed-address 10.10.8.34;");
    assert_shows(&model, "+   fixed-address 10.10.8.33;");
    press(&mut model, "G");
    assert_shows(&model, "finalize");
    // Back at the switches as they were, and on from there.
    press(&mut model, "esc");
    assert_eq!(here(&model), Where::Launch);
    press(&mut model, "p");
    let effects = press(&mut model, "enter");
    assert!(matches!(effects.as_slice(), [Effect::Submit { host, .. }] if host == "gpu-b07-33"), "{effects:?}");
}

/// Proves: G14
#[test]
fn the_plans_of_a_batch_are_looked_through_host_by_host_and_a_refusal_says_what_to_mend() {
    let mut model = console(100, 32);
    for host in ["gpu-b07-37", "gpu-b07-33"] {
        go(&mut model, host);
        press(&mut model, "space");
    }
    press(&mut model, "e");
    let host_of = |effects: &[Effect]| match effects {
        [Effect::Plan { host, .. }] => host.clone(),
        other => panic!("{other:?}"),
    };
    let first = host_of(&press(&mut model, "p"));
    let second = host_of(&press(&mut model, "l"));
    assert_ne!(first, second);
    assert_eq!(press(&mut model, "l"), [], "the last one holds");
    let refused = Refused { code: "x".into(), message: "NetBox\u{1b} is away".into(), action: "wait for it".into() };
    let Some(Popup::Plan(popup)) = &model.popup else { panic!() };
    let params = popup.launch.read_params();
    // The answer for the host that was looked at before comes late.
    update(&mut model, Event::Planned { host: first, params: params.clone(), plan: Ok(plan_of("x")) });
    assert_shows(&model, "nothing is written");
    update(&mut model, Event::Planned { host: second, params, plan: Err(refused) });
    assert_shows(&model, "NetBox\u{fffd} is away");
    assert_shows(&model, "wait for it");
}

/// Proves: U2, S1
#[test]
fn a_refused_host_is_not_started_and_says_what_to_mend_where() {
    let mut model = console(100, 32);
    press(&mut model, "G e");
    assert_shows(&model, "device_not_placed");
    assert_shows(&model, "set the position of 'gpu-b07-35' in NetBox");
    assert_eq!(press(&mut model, "enter"), []);
    assert_shows(&model, "none of these hosts can be started");
}

/// Proves: U2
#[test]
fn a_batch_starts_the_marked_hosts_that_may_go_and_clears_the_marks() {
    let mut model = console(100, 32);
    for host in ["gpu-b07-33", "gpu-b07-25", "gpu-b07-23", "gpu-b07-39"] {
        go(&mut model, host);
        press(&mut model, "space");
    }
    press(&mut model, "e");
    assert_shows(&model, "enroll 4 hosts");
    assert_shows(&model, "deployed: left out of a batch");
    let effects = press(&mut model, "enter");
    let hosts: Vec<_> = effects
        .iter()
        .map(|e| match e {
            Effect::Submit { host, open: false, .. } => host.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(hosts, ["gpu-b07-33", "gpu-b07-23"]);
    assert!(model.fleet.marks.is_empty());
}

/// Proves: G13
#[test]
fn a_batch_can_go_behind_its_first_host_and_a_queued_run_says_its_place_and_what_holds_it() {
    let mut model = console(100, 32);
    go(&mut model, "gpu-b07-33");
    press(&mut model, "e G");
    assert!(!screen(&model).contains("canary"), "one host has nobody behind it");
    press(&mut model, "esc");
    for host in ["gpu-b07-33", "gpu-b07-23"] {
        go(&mut model, host);
        press(&mut model, "space");
    }
    press(&mut model, "e G space");
    assert_shows(&model, "canary first");
    let effects = press(&mut model, "enter");
    let [Effect::SubmitBehindCanary { hosts, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(hosts, &["gpu-b07-33", "gpu-b07-23"]);

    go(&mut model, "gpu-b07-27");
    assert_shows(&model, "place 1, rack");
    press(&mut model, "enter");
    assert_shows(&model, "queued at place 1 of 1");
    assert_shows(&model, "limit of rack B07, 3 of 3 under way");
    update(&mut model, Event::Queue(Vec::new()));
    assert_shows(&model, "queued, not begun yet");
}

/// Proves: U2, B19
#[test]
fn a_deployed_host_wants_its_name_typed() {
    let mut model = console(100, 32);
    go(&mut model, "gpu-b07-25");
    assert_eq!(press(&mut model, "e enter"), [], "a question comes first");
    assert_shows(&model, "enroll gpu-b07-25 · deployed");
    update(&mut model, Event::Paste("gpu-b07-25".into()));
    assert_eq!(press(&mut model, "tab enter"), [], "a pasted name confirms nothing");
    assert_shows(&model, "a name that confirms is typed, not pasted");
    let effects = press(&mut model, "g p u - b 0 7 - 2 5 enter");
    assert!(matches!(effects.as_slice(), [Effect::Submit { host, .. }] if host == "gpu-b07-25"), "{effects:?}");
}

#[test]
fn a_node_uuid_must_be_one_and_is_for_one_host() {
    let mut model = console(100, 32);
    press(&mut model, "j e G x y");
    assert_shows(&model, "'xy' is no UUID");
    assert_eq!(press(&mut model, "enter"), []);
    press(&mut model, "ctrl-u");
    update(&mut model, Event::Paste("6a0e4d1b-0000-4000-8000-000000001b5d\n".into()));
    let effects = press(&mut model, "enter");
    assert!(matches!(&effects[..], [Effect::Submit { params, .. }] if params.node_uuid.is_some()), "{effects:?}");
}

/// Proves: U4, G10
#[test]
fn a_failed_run_is_repeated_with_one_key() {
    let mut model = console(100, 32);
    let (run, host) = (run_id(0x3c7), "gpu-b07-37".to_owned());
    let retry = |force_inspection, open| Effect::Retry { run, host: host.clone(), force_inspection, open };
    assert_eq!(press(&mut model, "r"), [retry(false, false)]);
    assert_eq!(press(&mut model, "f"), [retry(true, false)]);
    let mut model = failed_run(100, 32);
    assert_eq!(press(&mut model, "f"), [retry(true, true)]);
    let answer = Ok(run_id(0x999));
    update(&mut model, Event::Submitted { host, of: Some(run), open: true, answer });
    assert_eq!(model.run_screen().unwrap().run, run_id(0x999), "the view follows to the new run");
}

#[test]
fn a_key_that_cannot_do_anything_says_why() {
    let mut model = console(100, 32);
    for (host, key, reason) in [
        ("gpu-b07-33", "r", "gpu-b07-33 has no run yet: press e to enroll it"),
        ("gpu-b07-33", "enter", "gpu-b07-33 has no run yet: press e to enroll it"),
        ("gpu-b07-41", "f", "run 000a41 of gpu-b07-41 succeeded: press e to enroll it again"),
        ("gpu-b07-39", "r", "run 0004f2 of gpu-b07-39 is still under way"),
        ("gpu-b07-37", "x", "run 0003c7 of gpu-b07-37 is over"),
        ("gpu-b07-33", "n", "there is no filter: press / to type one"),
    ] {
        go(&mut model, host);
        assert_eq!(press(&mut model, key), [], "{key} on {host}");
        assert_eq!(model.toasts.last().unwrap().text, reason);
        assert!(screen(&model).contains(reason));
    }
}

/// Proves: G9, U2
#[test]
fn a_cancel_asks_first_and_the_way_out_is_focused() {
    let mut model = live_run(100, 32, "gpu-b07-39");
    assert_eq!(press(&mut model, "x enter"), [], "enter at once lets it run");
    assert_eq!(here(&model), Where::Run);
    press(&mut model, "x");
    assert_shows(&model, "cancel run 0004f2 · gpu-b07-39");
    assert_eq!(press(&mut model, "tab enter"), [Effect::Cancel { run: run_id(0x4f2) }]);
}

/// Proves: U3
#[test]
fn the_run_view_follows_the_run_until_a_pane_is_chosen() {
    let mut model = live_run(100, 32, "gpu-b07-39");
    let focus = |model: &Model| model.run_screen().unwrap().focus(model.open_run().unwrap());
    assert_eq!(focus(&model), RunPane::Links);
    assert_shows(&model, "waiting for a frontend link: eth0 DOWN eth1 DOWN");
    assert_shows(&model, "gives up in 3:42");
    press(&mut model, "tab");
    assert_eq!(focus(&model), RunPane::Diff);
    press(&mut model, "shift-tab shift-tab");
    assert_eq!(focus(&model), RunPane::Events);
    press(&mut model, "G");
    assert_shows(&model, "submitted by jo");
    press(&mut model, "g g");
    assert_shows(&model, "eth1 is DOWN");
    press(&mut model, "q");
    assert_eq!(here(&model), Where::Fleet, "q leaves the view, not the program");
}

/// Proves: U3, V13
#[test]
fn the_diff_shows_mismatches_first_and_the_rest_when_asked() {
    let mut model = failed_run(100, 32);
    assert_shows(&model, "2 of 31 differ");
    assert_shows(&model, "28 more agree");
    assert!(!screen(&model).contains("cpu cores"));
    press(&mut model, "a G");
    assert_shows(&model, "nic port 10");
    press(&mut model, "a");
    assert_shows(&model, "28 more agree");
}

#[test]
fn what_happens_to_a_run_shows_at_once_wherever_its_host_is() {
    let mut model = console(100, 32);
    let next_n = model.runs[&run_id(0x4f2)].next_n;
    let outcome = Outcome::Failed { failure: Box::new(world::swapped()) };
    let record = |n| muster::domain::event::RunRecord {
        run: run_id(0x4f2),
        n,
        at: model.now,
        body: Body::Journal(Journal::Finished { outcome: outcome.clone() }),
    };
    let (last, gap) = (record(next_n), record(next_n + 5));
    let mut other = model.clone();
    assert_eq!(update(&mut model, Event::Record(last)), []);
    assert_shows(&model, "2 for you");
    assert_eq!(model.live_runs().count(), 3);
    // A feed that was too fast left a gap: the run is read anew, and what came meanwhile is not lost.
    assert_eq!(update(&mut other, Event::Record(gap.clone())), [Effect::LoadRun(run_id(0x4f2))]);
    assert_eq!(update(&mut other, Event::Record(gap)), []);
}

#[test]
fn a_refused_submission_stays_until_it_is_dismissed() {
    let mut model = console(100, 32);
    let refused = Refused { code: "busy".into(), message: "it is busy".into(), action: "wait".into() };
    let answer = Err(refused.clone());
    update(&mut model, Event::Submitted { host: "gpu-b07-33".into(), of: None, open: true, answer });
    update(&mut model, Event::Answered(Ok("copied".into())));
    update(&mut model, Event::Answered(Err(refused)));
    let later = model.now.checked_add(Span::new().seconds(60)).unwrap();
    update(&mut model, Event::Tick(later));
    assert_eq!(model.toasts.iter().map(|t| t.kind).collect::<Vec<_>>(), [ToastKind::Error, ToastKind::Error]);
    press(&mut model, "esc esc");
    assert!(model.toasts.is_empty());
    assert_eq!(here(&model), Where::Fleet);
}

#[test]
fn esc_goes_one_step_out_at_a_time() {
    let mut model = console(100, 32);
    press(&mut model, "space / 0 7 enter ?");
    assert!(model.popup.is_some());
    press(&mut model, "esc");
    assert!(model.popup.is_none() && !model.fleet.filter.is_empty());
    press(&mut model, "esc");
    assert!(model.fleet.filter.is_empty() && model.fleet.marks.len() == 1);
    press(&mut model, "esc");
    assert!(model.fleet.marks.is_empty() && model.fleet.pane == Pane::Table);
    press(&mut model, "esc");
    assert_eq!(model.fleet.pane, Pane::Tree);
}

/// Proves: U7
#[test]
fn quitting_asks_only_while_runs_are_live() {
    let mut model = console(100, 32);
    assert_eq!(press(&mut model, "q"), []);
    assert_shows(&model, "quit · 4 runs under way");
    assert_eq!(press(&mut model, "enter"), [], "the way out is to stay");
    assert_eq!(press(&mut model, "q tab enter"), [Effect::Quit]);
    let mut model = console(100, 32);
    press(&mut model, "e");
    assert_eq!(press(&mut model, "ctrl-c ctrl-c"), [Effect::Quit], "asked twice it doesn't ask again");
    let mut quiet = console(100, 32);
    let hosts: Vec<_> = world::hosts().into_iter().filter(|h| h.device.site == "ams2").collect();
    update(&mut quiet, Event::Fleet(hosts));
    assert_eq!(press(&mut quiet, "q"), [Effect::Quit]);
}

/// Proves: U7
#[test]
fn a_lost_terminal_ends_the_console_without_a_question() {
    for ending in [Ending::HungUp, Ending::Terminated, Ending::Interrupted] {
        assert_eq!(update(&mut console(100, 32), Event::Ended(ending)), [Effect::Quit]);
    }
}

/// A bracketed paste goes to a field or nowhere (C-45).
///
/// Proves: U6
#[test]
fn a_paste_presses_no_key() {
    let paste = "r\ne\nx\nf\nq\n";
    for (view, mut model) in world::every_view(100, 32) {
        let runs = model.screens.len();
        let effects = update(&mut model, Event::Paste(paste.into()));
        assert_eq!((effects.as_slice(), model.screens.len()), ([].as_slice(), runs), "{view}");
    }
    let mut model = console(100, 32);
    press(&mut model, "/");
    update(&mut model, Event::Paste("gpu-b07-4\nr\ne\n".into()));
    assert_eq!((model.fleet.filter.text.as_str(), selected(&model)), ("gpu-b07-4", "gpu-b07-41"));
}

/// The same text without brackets: keys that come faster than hands start, cancel and end nothing (C-45).
///
/// Proves: U6
#[test]
fn a_burst_of_keys_starts_cancels_and_ends_nothing() {
    let pastes =
        ["r enter e enter x enter", "f enter", "e enter", "q q q", "x tab enter", "e enter enter", ": q u i t enter"];
    for (view, model) in world::every_view(100, 32) {
        for paste in pastes {
            let mut model = model.clone();
            let effects = burst(&mut model, paste);
            let acts = effects.iter().any(|e| {
                matches!(e, Effect::Submit { .. } | Effect::Retry { .. } | Effect::Cancel { .. } | Effect::Quit)
            });
            assert!(!acts, "{paste} in {view}: {effects:?}");
        }
    }
    let mut model = console(100, 32);
    burst(&mut model, "r enter");
    assert_shows(&model, "several keys came at once, as from a paste: 'retry' was not done");
    assert!(!press(&mut model, "r").is_empty(), "a key pressed by itself works again");
    press(&mut model, "q");
    burst(&mut model, "j j");
    assert_eq!(selected(&model), "gpu-b07-31", "moving fast is still moving");
}

/// Proves: U5
#[test]
fn what_waits_for_a_person_is_walked_rack_by_rack_and_leaves_when_it_is_done() {
    let mut model = console(100, 32);
    assert_eq!(press(&mut model, "w"), [Effect::LoadRun(run_id(0x3c7))], "the stop's run tells its cables");
    assert_eq!(here(&model), Where::Walk);
    assert_shows(&model, "with hands at the rack  1");
    assert_shows(&model, "waits for netops  1");
    assert_shows(&model, "B07 U37");
    // Enter opens the run, and the way back leads here again.
    press(&mut model, "enter");
    assert_eq!(here(&model), Where::Run);
    press(&mut model, "esc");
    assert_eq!(here(&model), Where::Walk);
    // Done: repeated with a fresh inspection right here, and the next stop moves up.
    let effects = press(&mut model, "f");
    assert!(
        matches!(&effects[..], [Effect::Retry { host, force_inspection: true, open: false, .. }] if host == "gpu-b07-37"),
        "{effects:?}"
    );
    let host = world::hosts().into_iter().find(|h| h.device.name == "gpu-b07-37").unwrap();
    let story = world::Story::of(0x999, &host, 0);
    update(&mut model, Event::Record(story.records[0].clone()));
    assert_eq!(model.target().unwrap().device.name, "gpu-b07-29");
    assert!(!screen(&model).contains("with hands at the rack"), "{}", screen(&model));
    // Another place has its own. The way back leads to the host of the last stop.
    press(&mut model, "esc");
    assert_eq!(selected(&model), "gpu-b07-29");
    go(&mut model, "gpu-b06-40");
    press(&mut model, "w");
    assert_shows(&model, "nothing waits for a person here");
    assert_shows(&model, "1 elsewhere");
    press(&mut model, "enter");
    assert_shows(&model, "nothing waits here");
}

/// Proves: U11
#[test]
fn a_run_is_looked_back_at_step_by_step_and_phase_by_phase() {
    let mut model = failed_run(100, 32);
    let host = world::hosts().into_iter().find(|h| h.device.name == "gpu-b07-37").unwrap();
    let story = world::Story::of(0x3c7, &host, 744).prepared().inspected(true).failed(704, world::swapped());
    let all = story.records.len();
    assert_shows(&model, "failed");
    assert_eq!(press(&mut model, "["), [Effect::LoadTape(run_id(0x3c7))]);
    update(&mut model, Event::Tape { run: run_id(0x3c7), records: story.records.clone() });
    assert_shows(&model, &format!("replay {} of {all}", all - 1));
    assert!(model.open_run().unwrap().outcome.is_none(), "it has not ended yet there");
    // What a key acts on is the run as it is now.
    assert!(matches!(&press(&mut model, "r")[..], [Effect::Retry { .. }]));
    press(&mut model, "{");
    assert!(model.replay().is_some_and(|tape| tape.at < all - 1));
    let at = model.replay().unwrap().at;
    assert_eq!(model.moment(), story.records[at - 1].at, "the clock of the screen is that moment's");
    for _ in 0..all {
        press(&mut model, "{");
    }
    assert_shows(&model, &format!("replay 1 of {all}"));
    press(&mut model, "}");
    assert!(model.replay().is_some_and(|tape| tape.at > 1));
    // Past the end is now; a step on from there says so.
    for _ in 0..all {
        press(&mut model, "]");
    }
    assert!(model.replay().is_none());
    assert_shows(&model, "press [ to look back");
    press(&mut model, "esc [");
    update(&mut model, Event::Tape { run: run_id(0x3c7), records: story.records.clone() });
    press(&mut model, "esc");
    assert!(model.replay().is_none() && here(&model) == Where::Run, "esc comes back to now first");
}

/// Proves: U6
#[test]
fn a_theme_is_tried_on_while_the_cursor_is_on_it_and_kept_by_enter_only() {
    let mut model = console(100, 32);
    press(&mut model, "T");
    assert_eq!(model.look.trying.as_deref(), Some("dark"));
    press(&mut model, "down");
    assert_eq!(model.look.shown(), "light");
    assert_eq!(model.look.theme, "dark");
    press(&mut model, "esc");
    assert_eq!(model.look.shown(), "dark");
    press(&mut model, "T down down enter");
    assert_eq!((model.look.shown(), model.look.trying.clone()), ("contrast", None));
}

#[test]
fn keys_that_the_configuration_sets_are_those_of_footer_and_help() {
    let mut model = console(100, 32);
    let own = [("enroll".to_owned(), vec!["ctrl-e".to_owned()])].into();
    model.keymap = muster::tui::keymap::Keymap::with(own).unwrap();
    assert_shows(&model, "ctrl-e enroll");
    press(&mut model, "e");
    assert!(model.popup.is_none());
    press(&mut model, "ctrl-e");
    assert!(matches!(model.popup, Some(Popup::Launch(_))));
}

#[test]
fn the_palette_finds_actions_places_hosts_runs_and_themes() {
    let mut model = console(100, 32);
    press(&mut model, ": t h e m e space m o n o enter");
    assert_eq!(model.look.theme, "mono");
    press(&mut model, ": r a c k space r 1 0 enter");
    assert_eq!(model.fleet.place.name(), "R10");
    assert_eq!(press(&mut model, ": r u n space 3 c 7 enter"), [Effect::LoadRun(run_id(0x3c7))]);
    assert_eq!(here(&model), Where::Run);
    assert_eq!(press(&mut model, ": s y n c enter"), [Effect::SyncNow]);
    press(&mut model, ":");
    assert_shows(&model, "sync");
    let first = muster::tui::model::palette::entries(&model, "");
    assert_eq!(first[0].text, "sync", "what was used last comes first");
    press(&mut model, "esc : n o s u c h");
    assert_shows(&model, "nothing is called that");
}

#[test]
fn copying_gives_what_the_screen_is_about() {
    let copied = |effects: Vec<Effect>| match effects.as_slice() {
        [Effect::Copy(text)] => text.clone(),
        other => panic!("{other:?}"),
    };
    let text = copied(press(&mut console(100, 32), "y"));
    assert!(
        text.starts_with(
            "gpu-b07-37 · osl1 › hall B › B07 U37\nCABLES_WRONG in inspection, for ONSITE\neth0 and eth1 are swapped: "
        ),
        "{text}"
    );
    let mut model = failed_run(100, 32);
    assert!(copied(press(&mut model, "y")).contains("swap the two cables at the host"));
    press(&mut model, "tab shift-tab");
    let text = copied(press(&mut model, "y"));
    assert!(
        text.contains(
            "2 of 31 checks differ\neth0 and eth1 are swapped\ndiffers  lldp eth0: expected leaf-b07-1 swp14, observed"
        ),
        "{text}"
    );
    let text = copied(press(&mut live_run(100, 32, "gpu-b07-39"), "y"));
    assert!(text.contains("eth0 DOWN · leaf-b07-1 swp15 · cable W-0398 blue · 9c:6b"), "{text}");
}

#[test]
fn the_mouse_does_what_keys_do() {
    let mut model = console(100, 32);
    let at = model.now;
    let row = screen(&model).lines().position(|l| l.contains("gpu-b07-23")).unwrap() as u16;
    update(&mut model, Event::Click { column: 40, row, at });
    assert_eq!(selected(&model), "gpu-b07-23");
    update(&mut model, Event::Wheel { column: 40, row, notches: -2 });
    assert_eq!(selected(&model), "gpu-b07-27");
    let row = screen(&model).lines().position(|l| l.contains("hall C")).unwrap() as u16;
    update(&mut model, Event::Click { column: 6, row, at });
    assert_eq!((model.fleet.place.name(), model.fleet.pane), ("hall C", Pane::Tree));
    let column = screen(&model).lines().last().unwrap().find("help").unwrap() as u16;
    update(&mut model, Event::Click { column, row: 31, at });
    assert!(matches!(model.popup, Some(Popup::Help { .. })));
}

#[test]
fn the_log_scrolls_and_follows_again() {
    let mut model = console(100, 32);
    press(&mut model, "v");
    assert_eq!(press(&mut model, "k"), [Effect::ScrollLog(LogScroll::Older)]);
    assert_eq!(press(&mut model, "G"), [Effect::ScrollLog(LogScroll::Newest)]);
    assert_eq!(press(&mut model, "esc"), [Effect::ScrollLog(LogScroll::Newest)]);
    assert_eq!(here(&model), Where::Fleet);
    assert_eq!(press(&mut model, "ctrl-l ctrl-z"), [Effect::Redraw, Effect::Suspend]);
}

/// Proves: U6
#[test]
fn at_60_by_20_one_pane_shows_at_a_time_and_all_can_be_reached() {
    let mut model = console(60, 20);
    assert_shows(&model, "gpu-b07-37");
    press(&mut model, "esc");
    assert_shows(&model, "▾ osl1");
    press(&mut model, "enter enter");
    assert_eq!(here(&model), Where::Run);
    let mut model = failed_run(60, 20);
    for pane in ["cleaning", "timeline", "events", "link guard", "inspection diff"] {
        press(&mut model, "tab");
        assert_shows(&model, pane);
    }
}

#[test]
fn a_clock_that_is_set_back_breaks_nothing() {
    let mut model = live_run(100, 32, "gpu-b07-39");
    let earlier = model.now.checked_sub(Span::new().hours(2)).unwrap();
    update(&mut model, Event::Tick(earlier));
    assert_shows(&model, "waiting for a frontend link");
    press(&mut model, "q");
    assert_eq!(here(&model), Where::Fleet);
    // A key that waits for its moment is done although the clock goes back in that moment.
    let mut model = failed_run(100, 32);
    let key = "r".parse::<Key>().unwrap();
    let at = model.now;
    assert_eq!(update(&mut model, Event::Key { key, at }), []);
    let earlier = model.now.checked_sub(Span::new().hours(2)).unwrap();
    assert_eq!(update(&mut model, Event::Tick(earlier)).len(), 1);
    assert_eq!(update(&mut model, Event::Key { key, at: earlier }), []);
    let later = earlier.checked_add(Span::new().seconds(1)).unwrap();
    assert_eq!(update(&mut model, Event::Tick(later)).len(), 1);
}

/// The model is all that decides a frame: written out and read back it draws the same.
#[test]
fn every_view_survives_a_round_through_json() {
    for (width, height) in [(60, 20), (100, 32), (200, 60)] {
        for (view, model) in world::every_view(width, height) {
            let text = serde_json::to_string(&model).unwrap();
            let read: Model = serde_json::from_str(&text).unwrap();
            assert_eq!(read, model, "{view}");
        }
    }
}

#[test]
fn old_runs_are_forgotten_and_live_ones_never() {
    let mut model = console(100, 32);
    let host = world::hosts().into_iter().find(|h| h.device.name == "gpu-b07-41").unwrap();
    for n in 0..100 {
        let story = world::Story::of(0x1_0000 + n, &host, 90_000).prepared().succeeded(1000);
        world::load(&mut model, &story);
    }
    assert!(model.runs.len() < 60, "{}", model.runs.len());
    let live: Vec<RunId> = [0x4f2, 0xc31, 0xb21, 0xe27].map(run_id).into();
    assert!(live.iter().all(|id| model.runs.contains_key(id)));
}

/// Proves: U10
#[test]
fn a_key_lights_the_locator_of_the_selected_host_and_of_the_hosts_run() {
    let mut model = console(100, 32);
    let host = selected(&model).to_owned();
    assert_eq!(press(&mut model, "L"), [Effect::Locate { host: host.clone() }]);
    assert_shows(&model, &format!("asking the BMC of {host}"));
    update(&mut model, Event::Answered(Ok(format!("the locator of {host} is on"))));
    assert_shows(&model, &format!("the locator of {host} is on"));
    let refused = Refused { code: "BMC_UNREACHABLE".into(), message: "no answer".into(), action: "look at it".into() };
    update(&mut model, Event::Answered(Err(refused)));
    assert_shows(&model, "look at it");
    // Nothing that is pasted lights anything.
    assert!(burst(&mut model, "L L").is_empty());
    press(&mut model, "esc esc esc");
    let open = press(&mut model, "enter");
    assert!(!open.is_empty() || model.run_screen().is_some());
    let shown = model.run_screen().unwrap().host.clone();
    assert_eq!(press(&mut model, "L"), [Effect::Locate { host: shown }]);
}
