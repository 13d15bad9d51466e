//! Enrollment proofs: set only against the projected Ironic reference, cleared with every change of it (T1, T3).

use rusqlite::{Row, params};

use super::error::StoreError;
use super::handle::{Sql, Store};
use super::listing::change_named;
use super::rows::{get, key, nanos, parsed, run_id, time};
use crate::domain::device::Proof;
use crate::domain::ids::NodeUuid;
use crate::domain::proof::Identity;

/// What came of an attempt to prove an enrollment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProveOutcome {
    Accepted,
    /// The projection has this node for the device at that instance, or none.
    Mismatch(Option<NodeUuid>),
}

impl Store {
    /// Compare-and-set: the proof stands only if the projected reference of the device is the proof's own (T1). The
    /// comparison and the write are one commit, so that no change of the reference can come between them.
    pub async fn prove(&self, device: &str, proof: Proof) -> Result<ProveOutcome, StoreError> {
        let device = device.to_owned();
        let outcome = self
            .write(move |sql| {
                let projected: Option<NodeUuid> = sql.first(
                    "SELECT node FROM ironic_ref WHERE instance = ?1 AND device = ?2",
                    params![proof.instance, device],
                    |row| parsed(row, "node", "ironic_ref"),
                )?;
                if projected != Some(proof.node) {
                    return Ok(ProveOutcome::Mismatch(projected));
                }
                sql.execute(
                    "INSERT OR REPLACE INTO proof (device, netbox_id, instance, node, run, at)
                     VALUES (?1, (SELECT min(netbox_id) FROM device WHERE name = ?1), ?2, ?3, ?4, ?5)",
                    params![device, proof.instance, proof.node.to_string(), key(proof.run), nanos(proof.at)],
                )?;
                change_named(sql, &device)?;
                Ok(ProveOutcome::Accepted)
            })
            .await?;
        if outcome == ProveOutcome::Accepted {
            self.fleet_changed();
        }
        Ok(outcome)
    }

    /// The proof of a device, where its enrollment is proven.
    pub fn proof(&self, device: &str) -> Result<Option<Proof>, StoreError> {
        self.read(|sql| {
            sql.first("SELECT instance, node, run, at FROM proof WHERE device = ?1", params![device], read_proof)
        })
    }

    /// All proofs, by device name.
    pub fn proofs(&self) -> Result<Vec<(String, Proof)>, StoreError> {
        self.read(|sql| {
            sql.all("SELECT device, instance, node, run, at FROM proof ORDER BY device", [], |row| {
                Ok((get(row, "device", "proof")?, read_proof(row)?))
            })
        })
    }
}

/// The run that worked on this identity proved nothing (T4). Where the device still is that node, a proof of it stands and
/// one of anything else is cleared; where the device is another node by now, this run has no say. Says whether it cleared.
pub(super) fn failed(sql: &Sql<'_>, device: &str, identity: &Identity) -> Result<bool, StoreError> {
    let cleared = sql.execute(
        "DELETE FROM proof WHERE device = ?1 AND (instance <> ?2 OR node <> ?3)
         AND EXISTS (SELECT 1 FROM ironic_ref WHERE device = ?1 AND instance = ?2 AND node = ?3)",
        params![device, identity.instance, identity.node.to_string()],
    )?;
    if cleared > 0 {
        change_named(sql, device)?;
    }
    Ok(cleared > 0)
}

fn read_proof(row: &Row<'_>) -> Result<Proof, StoreError> {
    Ok(Proof {
        node: parsed(row, "node", "proof")?,
        instance: get(row, "instance", "proof")?,
        run: run_id(row, "run", "proof")?,
        at: time(row, "at", "proof")?,
    })
}
