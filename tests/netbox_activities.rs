//! What a run changes in NetBox, and what it leaves alone: gate, activation, platform class, tags, facts.

#[path = "support/netbox.rs"]
mod netbox;

use muster::activities::facts;
use muster::activities::netbox::{activate, add_tag, platform_class, status_gate};
use muster::domain::failure::{FailureCode, Owner};
use muster::domain::phase::Phase;
use muster::workflows::defs::{AddTagIn, Target};
use netbox::{Rig, target};
use serde_json::{Value, json};
use wiremock::ResponseTemplate;

const KEY: &str = "GB300_LENOVOHG635NV2_IB_01";

fn status(value: &str) -> Value {
    json!({"value": value, "label": value})
}

fn tag_in(slug: &str) -> AddTagIn {
    AddTagIn { target: target(), phase: Phase::Finalize, tag: slug.into() }
}

/// Proves: S2
#[tokio::test]
async fn the_gate_reads_netbox_live_and_lets_staged_and_active_pass() {
    let rig = Rig::start().await;
    for (value, passes) in
        [("staged", true), ("active", true), ("planned", false), ("failed", false), ("decommissioning", false)]
    {
        rig.state(|s| s.device["status"] = status(value));
        match status_gate(&rig.cx, target()).await {
            Ok(out) => assert!(passes && out.status == value, "{value}"),
            Err(failure) => {
                assert!(!passes, "{value}");
                assert_eq!((failure.code, failure.retryable), (FailureCode::DeviceStatusRefused, false));
                assert!(failure.message.contains(&format!("'gpu-b07-41' as '{value}'")), "{failure}");
            }
        }
    }
    assert!(rig.writes().is_empty());
}

/// Proves: S2
#[tokio::test]
async fn a_device_that_is_gone_or_moved_fails_and_a_recreated_one_is_found_by_name() {
    let rig = Rig::start().await;
    let stale = Target { netbox_id: 40, ..target() };
    assert_eq!(status_gate(&rig.cx, stale.clone()).await.unwrap().status, "staged");
    rig.state(|s| s.device["name"] = json!("gpu-b07-99"));
    for (target, says) in [(stale, "has no device 'gpu-b07-41'"), (target(), "its id 41 is 'gpu-b07-99' there")] {
        let failure = status_gate(&rig.cx, target).await.unwrap_err();
        assert_eq!((failure.code, failure.retryable), (FailureCode::DeviceNotFound, false));
        assert!(failure.message.contains(says), "{failure}");
    }
    rig.state(|s| {
        s.device["name"] = json!("gpu-b07-41");
        s.device["site"]["slug"] = json!("lon1");
    });
    let failure = status_gate(&rig.cx, target()).await.unwrap_err();
    assert!(failure.message.contains("in site 'lon1'") && failure.message.contains("'osl1'"), "{failure}");
}

/// Proves: A1, G4, O11
#[tokio::test]
async fn a_staged_device_becomes_active_once_and_any_other_status_stays() {
    let rig = Rig::start().await;
    assert!(activate(&rig.cx, target()).await.unwrap().changed);
    assert_eq!(rig.writes(), [json!({"status": "active"})]);
    assert_eq!(rig.wrote(), ["netbox gpu-b07-41 status: 'staged' -> 'active'"]);
    assert!(!activate(&rig.cx, target()).await.unwrap().changed);
    for value in ["failed", "offline", "planned"] {
        rig.state(|s| s.device["status"] = status(value));
        assert!(!activate(&rig.cx, target()).await.unwrap().changed, "{value}");
    }
    assert_eq!(rig.writes().len(), 1);
}

/// Proves: A1, O11
#[tokio::test]
async fn a_change_by_somebody_else_is_seen_before_it_is_overwritten() {
    let rig = Rig::start().await;
    rig.state(|s| s.before_patch = Some(Box::new(|s| s.change(|d| d["comments"] = json!("looked at")))));
    assert!(activate(&rig.cx, target()).await.unwrap().changed, "still staged: once more");
    assert_eq!(rig.state(|s| s.device["status"]["value"].clone()), "active");

    let rig = Rig::start().await;
    rig.state(|s| s.before_patch = Some(Box::new(|s| s.change(|d| d["status"] = status("failed")))));
    assert!(!activate(&rig.cx, target()).await.unwrap().changed, "failed meanwhile: left alone");
    assert_eq!(rig.state(|s| s.device["status"]["value"].clone()), "failed");
    assert!(rig.wrote().is_empty());
}

/// Proves: O11
#[tokio::test]
async fn a_write_that_does_not_read_back_is_a_failure() {
    let rig = Rig::start().await;
    rig.state(|s| s.forgets = true);
    let failure = activate(&rig.cx, target()).await.unwrap_err();
    assert_eq!((failure.code, failure.retryable), (FailureCode::NetboxWriteConflict, true));
    let failure = platform_class(&rig.cx, target()).await.unwrap_err();
    assert_eq!((failure.code, failure.owner), (FailureCode::PlatformClassRecordFailed, Owner::FleetManager));
    let failure = add_tag(&rig.cx, tag_in("ironic")).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::NetboxWriteConflict);
}

/// Proves: P9, P10, P13, G4. Case: C-37
#[tokio::test]
async fn an_empty_platform_class_is_recorded_in_both_places_and_a_rerun_writes_nothing() {
    for empty in [json!({"platform_class": null}), json!({"platform_class": ""}), json!({"platform_class": "  "})] {
        let rig = Rig::start().await;
        rig.state(|s| s.device["custom_fields"] = empty.clone());
        let out = platform_class(&rig.cx, target()).await.unwrap();
        assert_eq!((out.effective.as_str(), out.wrote_netbox, out.wrote_store), (KEY, true, true), "{empty}");
        assert_eq!(rig.writes(), [json!({"custom_fields": {"platform_class": KEY}})]);
        let device = rig.cx.env.store.device("gpu-b07-41").unwrap().unwrap();
        assert_eq!(device.platform_class.as_deref(), Some(KEY));
        let again = platform_class(&rig.cx, target()).await.unwrap();
        assert_eq!((again.wrote_netbox, again.wrote_store, again.warning), (false, false, None));
        assert_eq!(rig.writes().len(), 1);
        assert_eq!(rig.wrote().len(), 2, "{:?}", rig.wrote());
    }
}

/// Proves: P9, P10
#[tokio::test]
async fn a_divergent_platform_class_is_kept_with_a_warning_and_is_the_effective_one() {
    let rig = Rig::start().await;
    rig.state(|s| s.device["custom_fields"]["platform_class"] = json!("H200_OLD_IB_01"));
    let out = platform_class(&rig.cx, target()).await.unwrap();
    assert_eq!((out.effective.as_str(), out.computed.as_str(), out.wrote_netbox), ("H200_OLD_IB_01", KEY, false));
    assert!(out.warning.is_some_and(|w| w.contains("'H200_OLD_IB_01'") && w.contains(KEY)));
    assert!(rig.writes().is_empty());
    let device = rig.cx.env.store.device("gpu-b07-41").unwrap().unwrap();
    assert_eq!(device.platform_class.as_deref(), Some("H200_OLD_IB_01"));
}

/// Proves: P9
#[tokio::test]
async fn a_platform_class_that_somebody_records_meanwhile_is_not_overwritten() {
    let rig = Rig::start().await;
    rig.state(|s| {
        let theirs = |d: &mut Value| d["custom_fields"]["platform_class"] = json!("THEIRS_X_IB_01");
        s.before_patch = Some(Box::new(move |s| s.change(theirs)));
    });
    let out = platform_class(&rig.cx, target()).await.unwrap();
    assert_eq!((out.effective.as_str(), out.wrote_netbox), ("THEIRS_X_IB_01", false));
    assert_eq!(rig.state(|s| s.device["custom_fields"]["platform_class"].clone()), "THEIRS_X_IB_01");
}

/// Proves: P3, P5, P6, P8, P11
#[tokio::test]
async fn data_that_gives_no_key_is_refused_and_names_what_to_mend() {
    type Change = fn(&mut netbox::State);
    let cases: [(Change, &str); 3] = [
        (|s| s.device_type["custom_fields"]["gpu_type"] = json!(""), "gpu_type"),
        (|s| s.device["config_context"]["ztp"] = json!({}), "ztp"),
        (|s| s.device["custom_fields"]["platform_class"] = json!("K".repeat(129)), "platform class"),
    ];
    for (change, names) in cases {
        let rig = Rig::start().await;
        rig.state(change);
        let failure = platform_class(&rig.cx, target()).await.unwrap_err();
        assert_eq!((failure.code, failure.owner), (FailureCode::PlatformClassUnresolvable, Owner::InfraEng));
        assert!(!failure.retryable && failure.action.contains(names), "{failure:?}");
        assert!(rig.writes().is_empty());
    }
    let rig = Rig::start().await;
    rig.state(|s| {
        s.role["custom_fields"]["device_class"] = json!("HYPERVISOR");
        s.device_type["custom_fields"]["gpu_type"] = json!(null);
        s.device["config_context"]["ztp"] = json!("not even a block");
    });
    assert_eq!(platform_class(&rig.cx, target()).await.unwrap().effective, "NOGPU_LENOVOHG635NV2_NORDMA_01");
}

/// Proves: P11. Case: C-37
#[tokio::test]
async fn a_netbox_without_the_custom_field_is_a_failed_record_that_names_it() {
    let rig = Rig::start().await;
    rig.state(|s| s.device["custom_fields"] = json!({}));
    let failure = platform_class(&rig.cx, target()).await.unwrap_err();
    assert_eq!((failure.code, failure.owner), (FailureCode::PlatformClassRecordFailed, Owner::FleetManager));
    assert!(failure.retryable && failure.action.contains("'platform_class'"), "{failure:?}");
    assert!(failure.message.contains("does not exist for this object type"), "{failure:?}");
}

/// Proves: O11, G4. Case: C-36
#[tokio::test]
async fn a_tag_is_added_once_and_all_others_stay_on_new_and_old_servers() {
    for (has_add_tags, offers_etags) in [(true, true), (false, true), (false, false)] {
        let rig = Rig::start().await;
        rig.state(|s| (s.has_add_tags, s.offers_etags) = (has_add_tags, offers_etags));
        for slug in ["ironic", "ipmi_exporter"] {
            assert!(add_tag(&rig.cx, tag_in(slug)).await.unwrap().changed, "{slug}");
        }
        let mut slugs = rig.state(|s| s.slugs());
        slugs.sort();
        assert_eq!(slugs, ["customer-a", "do-not-power-off", "ipmi_exporter", "ironic"]);
        // The old server is asked for `add_tags` once and remembered.
        let writes = rig.writes().len();
        assert_eq!(writes, if has_add_tags { 2 } else { 3 });
        assert!(!add_tag(&rig.cx, tag_in("ironic")).await.unwrap().changed);
        assert_eq!(rig.writes().len(), writes);
        assert!(rig.wrote()[0].ends_with("-> 'customer-a, do-not-power-off, ironic'"), "{:?}", rig.wrote());
    }
}

/// Proves: O11. Case: C-36
#[tokio::test]
async fn a_tag_that_somebody_adds_meanwhile_survives() {
    for has_add_tags in [true, false] {
        let rig = Rig::start().await;
        rig.state(|s| s.has_add_tags = has_add_tags);
        if !has_add_tags {
            // Learn that the server is old, so that the race below hits the union.
            add_tag(&rig.cx, tag_in("ipmi_exporter")).await.unwrap();
        }
        rig.state(|s| s.before_patch = Some(Box::new(|s| s.tag("rma"))));
        add_tag(&rig.cx, tag_in("ironic")).await.unwrap();
        let slugs = rig.state(|s| s.slugs());
        for slug in ["customer-a", "do-not-power-off", "rma", "ironic"] {
            assert!(slugs.iter().any(|s| s == slug), "{slug} of {slugs:?}");
        }
    }
}

#[tokio::test]
async fn a_tag_that_netbox_does_not_have_says_to_create_it() {
    for has_add_tags in [true, false] {
        let rig = Rig::start().await;
        rig.state(|s| s.has_add_tags = has_add_tags);
        let failure = add_tag(&rig.cx, tag_in("enrolled")).await.unwrap_err();
        assert_eq!((failure.code, failure.phase), (FailureCode::NetboxDataMissing, Phase::Finalize));
        assert!(failure.action.starts_with("create the tag 'enrolled' in NetBox at http://"), "{failure:?}");
    }
}

/// Proves: G12
#[tokio::test]
async fn every_kind_of_refusal_is_classified_at_every_step() {
    let answers: [(ResponseTemplate, FailureCode); 5] = [
        (ResponseTemplate::new(503), FailureCode::NetboxUnreachable),
        (ResponseTemplate::new(403).set_body_json(json!({"detail": "Invalid v2 token"})), FailureCode::NetboxRefused),
        (ResponseTemplate::new(200).set_body_string("<html>hello</html>"), FailureCode::NetboxAnswerUnexpected),
        (ResponseTemplate::new(200).set_body_json(json!({"id": "x"})), FailureCode::NetboxAnswerUnexpected),
        (
            ResponseTemplate::new(301).insert_header("location", "https://elsewhere/"),
            FailureCode::NetboxAnswerUnexpected,
        ),
    ];
    for (answer, code) in answers {
        let rig = Rig::start().await;
        for step in 0..4 {
            rig.state(|s| s.answers = vec![answer.clone()]);
            let failure = match step {
                0 => status_gate(&rig.cx, target()).await.unwrap_err(),
                1 => activate(&rig.cx, target()).await.unwrap_err(),
                2 => platform_class(&rig.cx, target()).await.unwrap_err(),
                _ => add_tag(&rig.cx, tag_in("ironic")).await.unwrap_err(),
            };
            assert_eq!(failure.code, code, "{step}: {failure:?}");
            assert!(!failure.message.contains("secret") && !failure.action.is_empty());
        }
        assert!(rig.writes().is_empty());
    }
}

/// Case: C-05
#[tokio::test]
async fn facts_are_read_in_seven_requests_and_never_with_an_empty_filter() {
    let rig = Rig::start().await;
    let switch_port = |id: u64, lag: Value| {
        json!({"id": id, "name": format!("swp{id}"), "device": {"id": 9, "name": "leaf-b07-1"}, "lag": lag,
               "type": {"value": "100gbase-x-qsfp28", "label": "x"}})
    };
    let end = json!([{"id": 14, "name": "swp14", "device": {"id": 9, "name": "leaf-b07-1"}}]);
    rig.state(|s| {
        s.device["oob_ip"] = json!({"id": 70, "address": "2001:db8:7::29/64"});
        let interfaces = json!([
            {"id": 7, "name": "bmc", "device": {"id": 41, "name": "gpu-b07-41"}, "mgmt_only": false, "cable": null,
             "type": {"value": "1000base-t", "label": "x"}, "mac_address": "52:54:00:10:01:00"},
            {"id": 8, "name": "eth0", "device": {"id": 41, "name": "gpu-b07-41"}, "cable": {"id": 3, "label": "L3"},
             "type": {"value": "100gbase-x-qsfp28", "label": "x"}, "mac_address": "52:54:00:10:01:01",
             "connected_endpoints": end, "connected_endpoints_type": "dcim.interface"},
            {"id": 9, "name": "eth1", "device": {"id": 41, "name": "gpu-b07-41"}, "cable": null,
             "type": {"value": "100gbase-x-qsfp28", "label": "x"}, "mac_address": null},
            switch_port(14, json!({"id": 20, "name": "bond14"})),
        ]);
        s.lists.insert("/api/dcim/interfaces/".into(), interfaces);
        s.lists.insert("/api/dcim/cables/".into(), json!([{"id": 3, "label": "L3", "color": "2196f3"}]));
        let carried = json!({"id": 70, "address": "2001:db8:7::29/64", "assigned_object_type": "dcim.interface",
                             "assigned_object_id": 7});
        s.lists.insert("/api/ipam/ip-addresses/70/".into(), carried);
    });
    let host = facts::read(&rig.cx, &target(), Phase::Dhcp).await.unwrap();
    assert_eq!(host.oob_ip.unwrap().to_string(), "2001:db8:7::29");
    assert_eq!(host.management.as_ref().unwrap().name, "bmc", "it carries oob_ip");
    let names: Vec<&str> = host.interfaces.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["eth0", "eth1"]);
    let peer = host.interfaces[0].peer.as_ref().unwrap();
    assert_eq!((peer.switch.as_str(), peer.port.as_str()), ("leaf-b07-1", "swp14"));
    assert_eq!((peer.port_lag.as_deref(), peer.cable_color.as_deref()), (Some("bond14"), Some("2196f3")));
    assert_eq!(host.interfaces[1].mac, None);
    let reads = rig.state(|s| s.reads.clone());
    assert_eq!(reads.len(), 7, "{reads:#?}");
    assert!(reads.iter().all(|asked| !asked.contains("=&") && !asked.ends_with('=')), "{reads:#?}");
    rig.state(|s| s.device["config_context"] = json!({"ironic_settings": {"bond": {"miimon": "fast"}}}));
    let failure = facts::read(&rig.cx, &target(), Phase::Inspection).await.unwrap_err();
    assert_eq!((failure.code, failure.phase), (FailureCode::NetboxDataInvalid, Phase::Inspection));
    assert!(failure.message.contains("ironic_settings.bond.miimon of 'gpu-b07-41'"), "{failure}");
}
