//! Random histories of reference changes, renames and completions: a proof never stands on another identity than the one
//! that was proven.

use std::collections::BTreeMap;

use futures::StreamExt;
use jiff::Timestamp;
use muster::config::settings::default_options;
use muster::domain::device::{Device, IronicRef, Proof};
use muster::domain::event::{Body, EnrollResult, Event, Outcome};
use muster::domain::failure::{Failure, FailureCode};
use muster::domain::ids::{NodeUuid, RunId};
use muster::domain::phase::Phase;
use muster::domain::provision::ProvisionState;
use muster::domain::request::{EnrollParams, EnrollRequest, Routing};
use muster::store::{ProveOutcome, Store, Submit};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::json;
use uuid::Uuid;

const HISTORIES: usize = 1000;

/// What happens to the two devices of a history, whose nodes are at the two Ironic instances of that history.
#[derive(Debug, Clone)]
enum Step {
    /// An instance is read: which node it has for each device, if any.
    Read { instance: usize, nodes: [Option<u128>; 2] },
    /// A run completes and would prove a device on a node.
    Complete { device: usize, instance: usize, node: u128 },
    /// A run that worked on a node ends and proves nothing.
    End { device: usize, instance: usize, node: u128, how: How },
    /// Somebody gives each of the two devices the other's name.
    Swap,
}

/// How such a run ends. The first three are failures to prove, the others say nothing about the proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Failed,
    Cancelled,
    /// It claims to qualify, and names no node.
    Malformed,
    /// Without an inspection nothing was to be proven.
    Diagnostic,
    Unreadable,
}

impl How {
    const ALL: [How; 5] = [How::Failed, How::Cancelled, How::Malformed, How::Diagnostic, How::Unreadable];

    fn outcome(self, node: NodeUuid, instance: &str) -> Outcome {
        let result = |qualifying, node| EnrollResult {
            node,
            ironic: Some(instance.to_owned()),
            platform_class: None,
            already_enrolled: false,
            qualifying,
        };
        match self {
            How::Failed => {
                let failure = Failure::new(FailureCode::InternalError, Phase::Cleaning, "it broke", "look at it");
                Outcome::Failed { failure: Box::new(failure) }
            }
            How::Cancelled => Outcome::Cancelled { by: "kim".into(), left: vec![], why: None },
            How::Malformed => Outcome::Succeeded { result: Some(result(true, None)) },
            How::Diagnostic => Outcome::Succeeded { result: Some(result(false, Some(node))) },
            How::Unreadable => Outcome::Succeeded { result: None },
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Few nodes, so that a reference often comes back to one that it had before.
    let node = || proptest::option::weighted(0.8, 1..4u128);
    let step = prop_oneof![
        4 => (0..2usize, node(), node()).prop_map(|(instance, a, b)| Step::Read { instance, nodes: [a, b] }),
        4 => (0..2usize, 0..2usize, 1..4u128)
            .prop_map(|(device, instance, node)| Step::Complete { device, instance, node }),
        3 => (0..2usize, 0..2usize, 1..4u128, 0..5usize)
            .prop_map(|(device, instance, node, how)| Step::End { device, instance, node, how: How::ALL[how] }),
        1 => Just(Step::Swap),
    ];
    proptest::collection::vec(step, 4..24)
}

/// The rules of T1, T3, T4 and T5 in their plainest form.
#[derive(Debug, Default)]
struct Model {
    references: [[Option<u128>; 2]; 2],
    proofs: [Option<(usize, u128)>; 2],
}

impl Model {
    fn take(&mut self, step: &Step) {
        match step {
            Step::Read { instance, nodes } => {
                for (device, node) in nodes.iter().enumerate() {
                    let changes = self.references[*instance][device] != *node;
                    if changes && self.proofs[device].is_some_and(|(proven, _)| proven == *instance) {
                        self.proofs[device] = None;
                    }
                }
                self.references[*instance] = *nodes;
            }
            Step::Complete { device, instance, node } => {
                if self.references[*instance][*device] == Some(*node) {
                    self.proofs[*device] = Some((*instance, *node));
                }
            }
            Step::End { device, instance, node, how: How::Failed | How::Cancelled | How::Malformed } => {
                let is_the_one = self.references[*instance][*device] == Some(*node);
                if is_the_one && self.proofs[*device] != Some((*instance, *node)) {
                    self.proofs[*device] = None;
                }
            }
            Step::End { how: How::Diagnostic | How::Unreadable, .. } => {}
            Step::Swap => self.proofs = [None, None],
        }
    }
}

/// The names, instances and ids of one history: apart from those of all others.
struct Place {
    store: Store,
    n: usize,
}

impl Place {
    fn host(&self, device: usize) -> String {
        format!("h{}-{device}", self.n)
    }

    fn instance(&self, instance: usize) -> String {
        format!("ironic-{}-{instance}", self.n)
    }

    fn node(&self, node: u128) -> NodeUuid {
        NodeUuid(Uuid::from_u128((self.n as u128) << 8 | node))
    }

    async fn devices(&self, swapped: bool) {
        let device = |n: usize| -> Device {
            let name = self.host(if swapped { 1 - n } else { n });
            serde_json::from_value(json!({
                "netbox_id": self.n * 2 + n + 1, "name": name, "site": "osl1", "status": "active", "role": "gpu",
                "manufacturer": "Supermicro", "model": "X", "last_updated": null, "read_at": "2026-11-01T00:00:00Z",
            }))
            .unwrap()
        };
        self.store.put_devices(vec![device(0), device(1)]).await.unwrap();
    }

    async fn take(&self, step: &Step, swapped: &mut bool, model: &Model) {
        match step {
            Step::Read { instance, nodes } => {
                let refs = nodes.iter().enumerate().filter_map(|(device, node)| {
                    let reference = IronicRef {
                        instance: self.instance(*instance),
                        node: self.node((*node)?),
                        state: ProvisionState::Available,
                        maintenance: false,
                        instance_uuid: None,
                        read_at: Timestamp::UNIX_EPOCH,
                    };
                    Some((self.host(device), reference))
                });
                self.store.put_ironic_refs(refs.collect(), &self.instance(*instance)).await.unwrap();
            }
            Step::Complete { device, instance, node } => {
                let proof = Proof {
                    node: self.node(*node),
                    instance: self.instance(*instance),
                    run: RunId(Uuid::nil()),
                    at: Timestamp::UNIX_EPOCH,
                };
                let outcome = self.store.prove(&self.host(*device), proof).await.unwrap();
                let projected = model.references[*instance][*device];
                let expected = match projected == Some(*node) {
                    true => ProveOutcome::Accepted,
                    false => ProveOutcome::Mismatch(projected.map(|node| self.node(node))),
                };
                assert_eq!(outcome, expected, "history {}", self.n);
            }
            Step::End { device, instance, node, how } => {
                self.end(*device, &self.instance(*instance), self.node(*node), *how).await;
            }
            Step::Swap => {
                *swapped = !*swapped;
                self.devices(*swapped).await;
            }
        }
    }

    /// A whole run as the engine journals it.
    async fn end(&self, device: usize, instance: &str, node: NodeUuid, how: How) {
        let (run, at) = (RunId(Uuid::now_v7()), Timestamp::UNIX_EPOCH);
        let request = EnrollRequest {
            host: self.host(device),
            netbox_id: (self.n * 2 + device + 1) as u64,
            site: "osl1".into(),
            device_class: None,
            params: EnrollParams::default(),
            options: default_options(),
            routing: Routing::default(),
            submitted_by: "kim".into(),
            submitted_at: at,
            retry_of: None,
            placement: Default::default(),
            canary: None,
        };
        assert_eq!(self.store.submit(run, request).await.unwrap(), Submit::Accepted);
        let input = json!({ "host": self.host(device), "ironic": instance, "node": node.to_string() });
        let (name, phase) = ("ironic.look".into(), Phase::Cleaning);
        let looked = Event::ActivityScheduled { seq: 1, name, phase, input };
        let ended = Event::Finished { outcome: how.outcome(node, instance) };
        let records = [looked, ended].map(|event| (at, Body::Journal(event)));
        self.store.append(run, 1, records.into()).await.unwrap();
    }

    async fn live(self, history: Vec<Step>) -> usize {
        let (mut model, mut swapped) = (Model::default(), false);
        self.devices(false).await;
        for (at, step) in history.iter().enumerate() {
            self.take(step, &mut swapped, &model).await;
            model.take(step);
            for device in 0..2 {
                let found = self.store.proof(&self.host(device)).unwrap().map(|proof| (proof.instance, proof.node));
                let expected = model.proofs[device].map(|(instance, node)| (self.instance(instance), self.node(node)));
                assert_eq!(found, expected, "history {}, step {at} of {history:#?}", self.n);
            }
        }
        model.proofs.iter().flatten().count()
    }
}

/// Proves: T1, T3, T4, T5
#[tokio::test]
async fn no_history_leaves_a_proof_on_another_identity() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let mut runner = TestRunner::deterministic();
    let histories: Vec<Vec<Step>> = (0..HISTORIES).map(|_| steps().new_tree(&mut runner).unwrap().current()).collect();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for step in histories.iter().flatten() {
        let kind = match step {
            Step::Read { .. } => "readings",
            Step::Complete { .. } => "completions",
            Step::End { .. } => "other ends",
            Step::Swap => "swaps",
        };
        *kinds.entry(kind).or_insert(0) += 1;
    }
    // Side by side, so that they share commits; each has devices and instances of its own.
    let lives = histories.into_iter().enumerate().map(|(n, history)| Place { store: store.clone(), n }.live(history));
    let standing: usize = futures::stream::iter(lives).buffer_unordered(64).fold(0, async |sum, n| sum + n).await;
    println!("{HISTORIES} histories ({kinds:?}), {standing} proofs stand in the end");
    assert!(standing > HISTORIES / 10, "hardly any history proves something: {standing}");
}
