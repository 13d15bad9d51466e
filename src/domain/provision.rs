//! Ironic's provision and power states, spelled as Ironic spells them.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! states {
    ($($variant:ident = $wire:literal,)*) => {
        /// A node's provision state.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ProvisionState {
            $($variant,)*
            /// A state that this version does not know, kept as Ironic sent it.
            Other(String),
        }

        impl ProvisionState {
            /// Every state that this version knows.
            pub const KNOWN: &'static [ProvisionState] = &[$(ProvisionState::$variant,)*];

            /// Ironic's own spelling.
            pub fn as_str(&self) -> &str {
                match self { $(ProvisionState::$variant => $wire,)* ProvisionState::Other(text) => text }
            }
        }

        impl From<&str> for ProvisionState {
            fn from(text: &str) -> Self {
                match text { $($wire => ProvisionState::$variant,)* other => ProvisionState::Other(other.to_owned()) }
            }
        }
    };
}

states! {
    Enroll = "enroll",
    Verifying = "verifying",
    Manageable = "manageable",
    Inspecting = "inspecting",
    InspectWait = "inspect wait",
    InspectFailed = "inspect failed",
    Cleaning = "cleaning",
    CleanWait = "clean wait",
    CleanHold = "clean hold",
    CleanFailed = "clean failed",
    Available = "available",
    Deploying = "deploying",
    WaitCallback = "wait call-back",
    DeployHold = "deploy hold",
    DeployFailed = "deploy failed",
    Active = "active",
    Deleting = "deleting",
    Deleted = "deleted",
    Error = "error",
    Adopting = "adopting",
    AdoptFailed = "adopt failed",
    Rescue = "rescue",
    Rescuing = "rescuing",
    RescueWait = "rescue wait",
    RescueFailed = "rescue failed",
    Unrescuing = "unrescuing",
    UnrescueFailed = "unrescue failed",
    Rebuild = "rebuild",
    Servicing = "servicing",
    ServiceWait = "service wait",
    ServiceHold = "service hold",
    ServiceFailed = "service failed",
}

impl ProvisionState {
    /// Whether Ironic stays in this state until somebody asks for something (E12). Waiting states of an inspection or
    /// a clean are not stable: they end by themselves.
    pub fn is_stable(&self) -> bool {
        use ProvisionState::*;
        match self {
            Enroll | Manageable | InspectFailed | CleanFailed | Available | DeployFailed | Active | Error
            | AdoptFailed | Rescue | RescueFailed | UnrescueFailed | ServiceFailed | CleanHold | DeployHold
            | ServiceHold => true,
            Verifying | Inspecting | InspectWait | Cleaning | CleanWait | Deploying | WaitCallback | Deleting
            | Deleted | Adopting | Rescuing | RescueWait | Unrescuing | Rebuild | Servicing | ServiceWait
            | Other(_) => false,
        }
    }
}

impl fmt::Display for ProvisionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ProvisionState {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ProvisionState {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(ProvisionState::from(String::deserialize(d)?.as_str()))
    }
}

/// A node's power as Ironic reports it. `Unknown` is a reading that Ironic does not have (null, `error`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Power {
    On,
    Off,
    Unknown,
}

impl Power {
    /// Reads Ironic's `power_state` (`power on`, `power off`, null, …).
    pub fn from_ironic(text: Option<&str>) -> Self {
        match text {
            Some("power on" | "rebooting") => Power::On,
            Some("power off") => Power::Off,
            _ => Power::Unknown,
        }
    }
}
