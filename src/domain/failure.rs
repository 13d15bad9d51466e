//! What can go wrong in a run, in one table: code, owner, whether a retry can help, and what it means.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::phase::Phase;

/// Who mends a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Owner {
    /// The engineer at the rack: cables, optics, trays, power.
    Onsite,
    /// The network team: switches, DHCP servers.
    Netops,
    /// The infrastructure team: NetBox records, configuration, BMC and Ironic settings.
    InfraEng,
    /// The keepers of this program's own store and of the platform class records.
    FleetManager,
}

impl Owner {
    /// In a column of the console; `ONSITE` is who sits there.
    pub fn in_column(self) -> &'static str {
        match self {
            Owner::Onsite => "you",
            Owner::Netops => "netops",
            Owner::InfraEng => "infra-eng",
            Owner::FleetManager => "fleet-mgr",
        }
    }

    /// The wire spelling (`ONSITE`, `NETOPS`, `INFRA_ENG`, `FLEET_MANAGER`).
    pub fn as_str(self) -> &'static str {
        match self {
            Owner::Onsite => "ONSITE",
            Owner::Netops => "NETOPS",
            Owner::InfraEng => "INFRA_ENG",
            Owner::FleetManager => "FLEET_MANAGER",
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

macro_rules! codes {
    ($($variant:ident = $wire:literal, $owner:ident, $retry:literal, $meaning:literal;)*) => {
        /// The kind of a failure. The wire spelling is a contract: scripts match on it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum FailureCode { $(#[doc = $meaning] #[serde(rename = $wire)] $variant,)* }

        impl FailureCode {
            /// Every code, in the order in which a run can meet them. Help and docs are made from this.
            pub const ALL: &'static [FailureCode] = &[$(FailureCode::$variant,)*];

            /// The wire spelling.
            pub fn as_str(self) -> &'static str { match self { $(FailureCode::$variant => $wire,)* } }

            /// Who mends it unless the failure itself says otherwise.
            pub fn owner(self) -> Owner { match self { $(FailureCode::$variant => Owner::$owner,)* } }

            /// Whether trying the same again can help (G11: a code that says no is never retried).
            pub fn retryable(self) -> bool { match self { $(FailureCode::$variant => $retry,)* } }

            /// What it means, for the help view and the docs.
            pub fn meaning(self) -> &'static str { match self { $(FailureCode::$variant => $meaning,)* } }
        }
    };
}

codes! {
    IronicRoutingUnresolved = "IRONIC_ROUTING_UNRESOLVED", InfraEng, false,
        "no Ironic instance manages the device's class, or the device has none";
    DeviceNotFound = "DEVICE_NOT_FOUND", InfraEng, false, "NetBox has no such device";
    DeviceStatusRefused = "DEVICE_STATUS_REFUSED", InfraEng, false,
        "NetBox has the device in a status other than staged or active";
    NetboxUnreachable = "NETBOX_UNREACHABLE", InfraEng, true, "NetBox did not answer in time, or answered with a server error";
    NetboxRefused = "NETBOX_REFUSED", InfraEng, false, "NetBox refused the token or lacks a permission";
    NetboxAnswerUnexpected = "NETBOX_ANSWER_UNEXPECTED", InfraEng, false,
        "NetBox answered with something else than its API promises";
    NetboxDataMissing = "NETBOX_DATA_MISSING", InfraEng, false, "a field that enrollment needs is empty in NetBox";
    NetboxDataInvalid = "NETBOX_DATA_INVALID", InfraEng, false, "a field that enrollment needs holds an unusable value in NetBox";
    NetboxWriteConflict = "NETBOX_WRITE_CONFLICT", InfraEng, true, "somebody else changed the object between our read and our write";
    PlatformClassUnresolvable = "PLATFORM_CLASS_UNRESOLVABLE", InfraEng, false,
        "NetBox data cannot produce a platform class key";
    PlatformClassRecordFailed = "PLATFORM_CLASS_RECORD_FAILED", FleetManager, true,
        "the platform class could not be recorded";
    VaultItemMissing = "VAULT_ITEM_MISSING", InfraEng, false, "the vault has no such secret";
    VaultUnreachable = "VAULT_UNREACHABLE", InfraEng, true, "the vault could not be read";
    VaultRefused = "VAULT_REFUSED", InfraEng, false, "the vault does not let muster in, or not to what it needs";
    ConfigurationIncomplete = "CONFIGURATION_INCOMPLETE", InfraEng, false,
        "the configuration lacks a key that the step needs";
    DhcpConnectFailed = "DHCP_CONNECT_FAILED", Netops, true, "the DHCP host did not accept a connection";
    DhcpHostKeyUnknown = "DHCP_HOST_KEY_UNKNOWN", Netops, false, "known_hosts has no key for the DHCP host";
    DhcpHostKeyChanged = "DHCP_HOST_KEY_CHANGED", Netops, false, "the DHCP host shows another key than known_hosts has";
    DhcpHostKeyRevoked = "DHCP_HOST_KEY_REVOKED", Netops, false, "the DHCP host shows a key that is revoked";
    DhcpAuthFailed = "DHCP_AUTH_FAILED", Netops, false, "the DHCP host refused the key of the vault";
    DhcpTimeout = "DHCP_TIMEOUT", Netops, true, "a step on the DHCP host did not end in its deadline";
    DhcpCommandFailed = "DHCP_COMMAND_FAILED", Netops, true, "a command on the DHCP host could not be carried out";
    DhcpTransferFailed = "DHCP_TRANSFER_FAILED", Netops, true, "the entry could not be uploaded";
    DhcpEntryInvalid = "DHCP_ENTRY_INVALID", InfraEng, false, "the entry would not be served as meant";
    DhcpValidationFailed = "DHCP_VALIDATION_FAILED", Netops, false, "the DHCP service does not accept or does not serve the entry";
    BmcUnreachable = "BMC_UNREACHABLE", Onsite, true, "the BMC did not answer";
    BmcTlsUntrusted = "BMC_TLS_UNTRUSTED", InfraEng, false, "the BMC's certificate is not trusted by the site's rule";
    BmcVendorUnknown = "BMC_VENDOR_UNKNOWN", InfraEng, false, "the service root names no vendor that muster knows";
    BmcAuthFailed = "BMC_AUTH_FAILED", InfraEng, false, "the BMC refused the credential of the vault";
    BmcVendorUnsupported = "BMC_VENDOR_UNSUPPORTED", InfraEng, false,
        "the vendor is known, and this version of muster has no flow for its BMCs";
    BmcAccountLocked = "BMC_ACCOUNT_LOCKED", InfraEng, false, "the BMC has locked the account after wrong logins";
    BmcPasswordChangeRequired = "BMC_PASSWORD_CHANGE_REQUIRED", InfraEng, false,
        "the BMC answers nothing until a password is changed";
    BmcPasswordPolicy = "BMC_PASSWORD_POLICY", InfraEng, false, "a name or password of the vault is none that the BMC takes";
    BmcRefused = "BMC_REFUSED", InfraEng, false, "the BMC denies a request: a role, a licence, or a value that it does not take";
    BmcLockdown = "BMC_LOCKDOWN", InfraEng, false, "the BMC is in lockdown mode: it takes no change until somebody switches that off";
    BmcHttpServiceUnavailable = "BMC_HTTP_SERVICE_UNAVAILABLE", Onsite, true, "the BMC stayed busy for the whole budget";
    BmcAnswerUnexpected = "BMC_ANSWER_UNEXPECTED", InfraEng, true, "the BMC answered with something that muster cannot use";
    BmcSettingNotApplied = "BMC_SETTING_NOT_APPLIED", InfraEng, true, "a setting was written and reads back otherwise";
    BmcJobNotScheduled = "BMC_JOB_NOT_SCHEDULED", InfraEng, true, "the BMC did not bind staged settings to the next boot";
    BmcJobFailed = "BMC_JOB_FAILED", InfraEng, true, "the BMC's job for staged settings failed, or did not end";
    BmcJobForeign = "BMC_JOB_FOREIGN", InfraEng, false, "a job that somebody else left holds the BMC's firmware settings";
    BmcIpmiUnreachable = "BMC_IPMI_UNREACHABLE", InfraEng, true, "the BMC answers Redfish, and not IPMI over LAN";
    BmcIpmiUnsupported = "BMC_IPMI_UNSUPPORTED", InfraEng, false, "the BMC offers no IPMI 2.0 login that muster makes";
    BmcIpmiLoginFailed = "BMC_IPMI_LOGIN_FAILED", InfraEng, false,
        "whoever is to use the BMC over IPMI cannot log in there, or not with the level that is needed";
    BmcIpmiSessionsFull = "BMC_IPMI_SESSIONS_FULL", InfraEng, true, "all IPMI sessions of the BMC stayed taken";
    BmcSiteFieldMissing = "BMC_SITE_FIELD_MISSING", InfraEng, false, "the NetBox site lacks a custom field that BMC configuration needs";
    BmcResetTimeout = "BMC_RESET_TIMEOUT", Onsite, true, "the BMC did not come back after its reset";
    BmcLinkUnsupported = "BMC_LINK_UNSUPPORTED", InfraEng, false, "the BMC offers no way to read the host's links";
    IronicUnreachable = "IRONIC_UNREACHABLE", InfraEng, true, "Ironic did not answer in time, or answered with a server error";
    IronicRefused = "IRONIC_REFUSED", InfraEng, false, "Ironic refused the credentials";
    IronicRequestInvalid = "IRONIC_REQUEST_INVALID", InfraEng, false, "Ironic refused a request as wrong";
    IronicAnswerUnexpected = "IRONIC_ANSWER_UNEXPECTED", InfraEng, true, "Ironic answered with something else than its API promises";
    IronicNoConductor = "IRONIC_NO_CONDUCTOR", InfraEng, true, "no conductor had a free worker";
    IronicNodeLocked = "IRONIC_NODE_LOCKED", InfraEng, true, "another operation held the node for the whole lock budget";
    IronicConflict = "IRONIC_CONFLICT", InfraEng, false, "a name, MAC, UUID or instance belongs to another node";
    IronicSettingsInvalid = "IRONIC_SETTINGS_INVALID", InfraEng, false, "the device's ironic_settings cannot be used";
    NodeUuidMismatch = "NODE_UUID_MISMATCH", InfraEng, false, "the host already has a node under another UUID, or the UUID is in use";
    NodeOwnedByNova = "NODE_OWNED_BY_NOVA", InfraEng, false, "an instance lives on the node: nothing may be changed";
    NodeNeedsReview = "NODE_NEEDS_REVIEW", InfraEng, false, "the node is in a state that a person has to look at";
    NodeStateUnexpected = "NODE_STATE_UNEXPECTED", InfraEng, true, "the node is in a provision state that this step cannot go on from";
    NodeManageFailed = "NODE_MANAGE_FAILED", InfraEng, false, "Ironic could not take the node under management";
    NodePowerTimeout = "NODE_POWER_TIMEOUT", Onsite, true, "the node was not powered on in time";
    MacConflict = "MAC_CONFLICT", InfraEng, false, "two interfaces claim one MAC address";
    PxePortConflict = "PXE_PORT_CONFLICT", InfraEng, false, "another port of the node is enabled for PXE already";
    WriteForbidden = "WRITE_FORBIDDEN", InfraEng, false,
        "a request would break a rule of enrollment, and muster did not send it";
    InterfaceUncabled = "INTERFACE_UNCABLED", InfraEng, false, "a frontend interface has no cable in NetBox";
    InspectionFailed = "INSPECTION_FAILED", InfraEng, true, "Ironic's inspection failed";
    InspectionTimeout = "INSPECTION_TIMEOUT", InfraEng, true, "the inspection did not end in its budget";
    LinkAllDown = "LINK_ALL_DOWN", Onsite, false, "every frontend link stayed DOWN for the whole budget";
    VerificationFailed = "VERIFICATION_FAILED", InfraEng, false, "the hardware found is not the hardware recorded";
    CablesWrong = "CABLES_WRONG", Onsite, false, "the neighbours seen are not the neighbours recorded";
    CleanFailed = "CLEAN_FAILED", InfraEng, true, "cleaning failed as often as the budget allows";
    CleanTimeout = "CLEAN_TIMEOUT", InfraEng, true, "cleaning did not end before its deadline";
    EnrollmentCompletionProofRejected = "ENROLLMENT_COMPLETION_PROOF_REJECTED", FleetManager, true,
        "the fleet store's Ironic reference is not the one this run enrolled";
    StoreFailed = "STORE_FAILED", FleetManager, true, "muster's own store could not be written";
    ActivityTimeout = "ACTIVITY_TIMEOUT", InfraEng, true, "a step did not end in its time limit";
    JournalDiverged = "JOURNAL_DIVERGED", FleetManager, false, "the journal of this run does not fit this version of the program";
    InternalError = "INTERNAL_ERROR", FleetManager, false, "an error that muster did not foresee";
}

impl FailureCode {
    /// A service that many hosts share did not answer. That is nobody's fault of a host: while it lasts, a run waits for it
    /// and loses no attempt (C-49).
    pub fn is_outage(self) -> bool {
        matches!(self, FailureCode::NetboxUnreachable | FailureCode::IronicUnreachable | FailureCode::VaultUnreachable)
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something that was read and led to a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Where it was read: a system and a path, such as `ironic /v1/nodes/…`.
    pub source: String,
    /// What was read, shortened and without secrets.
    pub read: String,
}

/// Why a run ended without success: a sentence with an owner and an action (G12).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub code: FailureCode,
    pub phase: Phase,
    pub owner: Owner,
    pub retryable: bool,
    /// The fact, with its values in single quotes; lower-case start, no full stop.
    pub message: String,
    /// What the owner does next, in the imperative.
    pub action: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

impl Failure {
    /// A failure with the owner and the retry rule that the table has for its code.
    pub fn new(code: FailureCode, phase: Phase, message: impl Into<String>, action: impl Into<String>) -> Self {
        Failure {
            code,
            phase,
            owner: code.owner(),
            retryable: code.retryable(),
            message: message.into(),
            action: action.into(),
            evidence: Vec::new(),
        }
    }

    /// The same failure with another owner, where what was read says who mends it.
    pub fn owned_by(mut self, owner: Owner) -> Self {
        self.owner = owner;
        self
    }

    /// The same failure, never retried.
    pub fn final_now(mut self) -> Self {
        self.retryable = false;
        self
    }

    /// The same failure with one more reading.
    pub fn with_evidence(mut self, source: impl Into<String>, read: impl Into<String>) -> Self {
        self.evidence.push(Evidence { source: source.into(), read: read.into() });
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_spelled_alike_everywhere_and_once() {
        let mut seen = std::collections::BTreeSet::new();
        for code in FailureCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert!(seen.insert(code.as_str()), "{code} twice");
            assert!(code.as_str().chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit()), "{code}");
        }
    }
}
