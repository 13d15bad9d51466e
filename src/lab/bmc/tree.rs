//! What the trees of all vendors have in common: how a BMC server asks them, and the pieces they are built of.

use axum::http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Reply;
use super::ami::Ami;
use super::dell::Dell;
use super::ipmi;
use super::lenovo::Lenovo;
use super::login::Sessions;
use super::said::Refusal;
use super::settings::{Settings, User};
use super::supermicro::Supermicro;
use crate::lab::clock::LabTime;
use crate::lab::machine::{Machine, PowerAction, Vendor};

/// The tree of a vendor.
pub(super) fn tree(vendor: Vendor) -> &'static dyn Tree {
    match vendor {
        Vendor::Supermicro => &Supermicro,
        Vendor::Lenovo => &Lenovo,
        Vendor::Dell => &Dell,
        Vendor::Ami => &Ami,
    }
}

/// A machine at a moment, as its resources show it.
pub(super) struct View<'a> {
    pub machine: &'a Machine,
    pub settings: Settings,
    pub now: LabTime,
    pub wall: Timestamp,
    /// When the BMC started last.
    pub booted: Timestamp,
}

/// What an action does to the machine, beside the settings that it may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    Power(PowerAction),
    ResetBmc,
}

/// One vendor's BMC: which resource is where, and what a request changes. Paths come without their last slash; the caller
/// is known by then, and is an administrator where something is changed. What it keeps is in `machine.bmc`.
pub(super) trait Tree: Sync {
    /// Adds to the first settings what only this vendor has.
    fn settle(&self, _machine: &mut Machine) {}

    /// Brings what takes time up to date: staged settings that a boot has applied, jobs that have moved on.
    fn catch_up(&self, _machine: &mut Machine, _now: LabTime) {}

    /// Open sessions that it allows at once.
    fn most_sessions(&self) -> usize {
        usize::MAX
    }

    /// Whether a user whose credential is right may make this request now: no, where a password has to be changed first.
    fn admit(&self, _machine: &mut Machine, _user: &str, _method: &Method, _path: &str) -> Result<(), Refusal> {
        Ok(())
    }

    /// The level that an account may have over IPMI; `None`: IPMI is not for it. The administrator that the BMC left the
    /// factory with may use everything.
    fn ipmi_level(&self, machine: &Machine, _number: u32, user: &User) -> Option<u8> {
        let is_first = user.name == machine.bmc.vendor.factory_login().0;
        let may = is_first || user.types.iter().any(|word| word == "IPMI");
        may.then(|| ipmi::level_of_role(&user.role))?
    }

    /// The body of a refusal. A text is a page.
    fn body_of(&self, refusal: &Refusal) -> Value {
        refusal.supermicro()
    }

    /// `@odata.etag` of a resource whose digest is given; the header has a text in quotes in any case.
    fn tag(&self, _machine: &Machine, digest: &str) -> Value {
        json!(format!("\"{digest}\""))
    }

    /// The header `Allow` of a resource, where this vendor's clients need it.
    fn allow(&self, _machine: &Machine, _path: &str) -> Option<&'static str> {
        None
    }

    /// Checks `If-Match` of a POST.
    fn precondition_of_post(&self, _machine: &Machine, _path: &str, _given: Option<&str>) -> Result<(), Refusal> {
        Ok(())
    }

    /// A member as it comes along with its collection.
    fn expanded(&self, _machine: &Machine, member: Value) -> Value {
        member
    }

    /// Checks `If-Match` of a PATCH against the tag of the resource, as the header has it.
    fn precondition(&self, _machine: &Machine, given: Option<&str>, tag: &str) -> Result<(), Refusal> {
        let other = given.is_some_and(|given| given != "*" && given.trim_start_matches("W/") != tag);
        if other { Err(Refusal::precondition()) } else { Ok(()) }
    }

    /// A resource; `None` where there is none.
    fn resource(&self, view: &View<'_>, sessions: &Sessions, path: &str) -> Option<Value>;

    /// Carries out an action; `None` where the path is none.
    fn act(
        &self,
        machine: &mut Machine,
        now: LabTime,
        path: &str,
        body: &Value,
    ) -> Option<Result<(Reply, Effect), Refusal>>;

    /// Changes members of a resource that exists. All or nothing.
    fn patch(&self, machine: &mut Machine, now: LabTime, path: &str, body: &Value) -> Result<Reply, Refusal>;

    /// Creates a member of a collection that exists.
    fn create(&self, machine: &mut Machine, now: LabTime, path: &str, body: &Value) -> Result<Reply, Refusal>;

    /// Deletes a resource that exists.
    fn delete(
        &self,
        machine: &mut Machine,
        now: LabTime,
        sessions: &mut Sessions,
        path: &str,
    ) -> Result<Reply, Refusal>;
}

/// A resource with what each has: type, context, path. For firmware that tells the context.
pub(super) fn said(path: &str, kind: &str, mut body: Value) -> Value {
    let name = kind.rsplit('.').next().unwrap_or(kind);
    let schema = kind.split('.').next().unwrap_or(kind);
    body["@odata.id"] = json!(path);
    body["@odata.type"] = json!(format!("#{kind}"));
    body["@odata.context"] = json!(format!("/redfish/v1/$metadata#{schema}.{name}"));
    body
}

/// A collection of the members with these ids.
pub(super) fn list(path: &str, kind: &str, name: &str, ids: impl IntoIterator<Item = String>) -> Value {
    let members: Vec<Value> = ids.into_iter().map(|id| json!({"@odata.id": format!("{path}/{id}")})).collect();
    json!({
        "@odata.type": format!("#{kind}Collection.{kind}Collection"),
        "@odata.id": path,
        "Name": name,
        "Members@odata.count": members.len(),
        "Members": members,
    })
}

/// A collection with a description, as some have it.
pub(super) fn described(mut list: Value, description: &str) -> Value {
    list["Description"] = json!(description);
    list
}

pub(super) fn link(path: impl Into<String>) -> Value {
    json!({"@odata.id": path.into()})
}

pub(super) fn healthy() -> Value {
    json!({"State": "Enabled", "Health": "OK"})
}

/// A UUID that depends on the serial number alone.
pub(super) fn uuid_of(serial: &str) -> String {
    let digest = Sha256::digest(serial);
    let mut bytes = [0u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}
