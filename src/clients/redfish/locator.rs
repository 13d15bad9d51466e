//! The locator LED: by which members of which resources a BMC lights it, and how they read (U10).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::error::RedfishError;
use super::resource::Resource;
use super::service::Redfish;
use super::standard::found;

/// Between two looks whether it shows.
const LOOK: Duration = Duration::from_millis(100);

/// Every way in which a BMC lights its locator, the best first.
#[derive(Debug)]
pub struct Locator {
    ways: Vec<Way>,
    /// What `IndicatorLED` is where nobody looks for the host; `None`: of a vendor that is not known.
    resting: Option<&'static str>,
}

/// One way: a member of a resource.
#[derive(Debug)]
struct Way {
    resource: Resource,
    member: Member,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    /// True or false; newer.
    LocationIndicatorActive,
    /// A word; deprecated, and all that some firmware has.
    IndicatorLed,
}

impl Member {
    fn name(self) -> &'static str {
        match self {
            Member::LocationIndicatorActive => "LocationIndicatorActive",
            Member::IndicatorLed => "IndicatorLED",
        }
    }
}

/// What came of lighting it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lit {
    /// Whether it had to be changed.
    pub changed: bool,
    /// Resource and member that it was done by, or read from.
    pub by: String,
}

/// Finds the ways of a host: its system, then what it stands in. `resting` is the vendor's word for an LED that is not
/// asked to show the host, where the vendor is known. `None`: the BMC has no locator to light.
pub async fn find(
    redfish: &Redfish,
    system: &Resource,
    resting: Option<&'static str>,
) -> Result<Option<Locator>, RedfishError> {
    let mut resources = vec![system.clone()];
    for path in system.links("/Links/Chassis") {
        resources.extend(found(redfish.get(&path).await)?);
    }
    let of = |member: Member| {
        let has = move |resource: &&Resource| match member {
            Member::LocationIndicatorActive => resource.flag(member.name()).is_some(),
            Member::IndicatorLed => resource.text(member.name()).is_some(),
        };
        resources.iter().filter(has).map(move |resource| Way { resource: resource.clone(), member })
    };
    let ways: Vec<Way> = of(Member::LocationIndicatorActive).chain(of(Member::IndicatorLed)).collect();
    Ok((!ways.is_empty()).then_some(Locator { ways, resting }))
}

impl Locator {
    /// Whether it shows the host now; `None`: the BMC does not say.
    pub fn is_on(&self) -> Option<bool> {
        self.ways.iter().find_map(|way| self.reads(way, &way.resource))
    }

    /// Where that stands.
    pub fn source(&self) -> String {
        self.ways.first().map(Way::words).unwrap_or_default()
    }

    /// Lights it or puts it out, by the first way that the BMC takes, and reads until it shows. An error where nothing was
    /// taken, or where it does not show within `budget`.
    pub async fn set(&self, redfish: &Redfish, on: bool, budget: Duration) -> Result<Lit, RedfishError> {
        if self.is_on() == Some(on) {
            return Ok(Lit { changed: false, by: self.source() });
        }
        let mut refused = None;
        for way in &self.ways {
            let value = self.value(way, on);
            match redfish.patch(&way.resource.path, &json!({ way.member.name(): value })).await {
                Ok(_) => return self.wait(redfish, way, on, budget).await,
                // Read only there, or known only to another resource: the next way may be taken.
                Err(error @ (RedfishError::Refused { .. } | RedfishError::NotFound { .. })) => {
                    let now = redfish.get(&way.resource.path).await;
                    if now.is_ok_and(|now| self.reads(way, &now) == Some(on)) {
                        return Ok(Lit { changed: true, by: way.words() });
                    }
                    refused.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(refused.unwrap_or_else(|| RedfishError::Unusable {
            path: self.source(),
            what: "it offers no way to light the locator".to_owned(),
        }))
    }

    async fn wait(&self, redfish: &Redfish, way: &Way, on: bool, budget: Duration) -> Result<Lit, RedfishError> {
        let deadline = Instant::now() + budget;
        loop {
            let now = redfish.get(&way.resource.path).await?;
            if self.reads(way, &now) == Some(on) {
                return Ok(Lit { changed: true, by: way.words() });
            }
            if Instant::now() >= deadline {
                let reads = now.text(way.member.name()).unwrap_or_else(|| "-".to_owned());
                let wanted = shown(&self.value(way, on));
                let what = format!("'{}' was set to '{wanted}' and reads '{reads}'", way.member.name());
                return Err(RedfishError::Unusable { path: way.resource.path.clone(), what });
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn reads(&self, way: &Way, resource: &Resource) -> Option<bool> {
        match way.member {
            Member::LocationIndicatorActive => resource.flag(way.member.name()),
            Member::IndicatorLed => {
                let word = resource.text(way.member.name())?;
                let is = |other: &str| word.eq_ignore_ascii_case(other);
                if is("Blinking") {
                    Some(true)
                } else if is(self.resting.unwrap_or("Off")) || is("Off") {
                    Some(false)
                } else {
                    // Lit without blinking shows the host too, where that is known not to be how it always is.
                    (self.resting.is_some() && is("Lit")).then_some(true)
                }
            }
        }
    }

    fn value(&self, way: &Way, on: bool) -> Value {
        match way.member {
            Member::LocationIndicatorActive => json!(on),
            Member::IndicatorLed => {
                let listed = way.resource.at("IndicatorLED@Redfish.AllowableValues").and_then(Value::as_array);
                let takes = |word: &str| listed.is_none_or(|list| list.is_empty() || list.iter().any(|v| v == word));
                json!(match on {
                    true if takes("Blinking") => "Blinking",
                    true => "Lit",
                    false => self.resting.unwrap_or("Off"),
                })
            }
        }
    }
}

impl Way {
    fn words(&self) -> String {
        format!("{} {}", self.resource.path, self.member.name())
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locator(body: Value, resting: &'static str) -> Locator {
        let resting = (resting != "?").then_some(resting);
        let resource = Resource { path: "/s".into(), body: body.as_object().unwrap().clone(), etag: None };
        let member = if body.get("LocationIndicatorActive").is_some() {
            Member::LocationIndicatorActive
        } else {
            Member::IndicatorLed
        };
        Locator { ways: vec![Way { resource, member }], resting }
    }

    #[test]
    fn a_word_means_what_the_vendor_means_by_it() {
        let table = [
            (json!({"IndicatorLED": "Off"}), "Off", Some(false)),
            (json!({"IndicatorLED": "Blinking"}), "Off", Some(true)),
            (json!({"IndicatorLED": "Lit"}), "Off", Some(true)),
            (json!({"IndicatorLED": "Lit"}), "?", None),
            (json!({"IndicatorLED": "Lit"}), "Lit", Some(false)),
            (json!({"IndicatorLED": "Blinking"}), "Lit", Some(true)),
            (json!({"IndicatorLED": "Unknown"}), "Off", None),
            (json!({"LocationIndicatorActive": true}), "Off", Some(true)),
            (json!({"LocationIndicatorActive": "false"}), "Off", Some(false)),
        ];
        for (body, resting, on) in table {
            assert_eq!(locator(body.clone(), resting).is_on(), on, "{body} {resting}");
        }
    }

    #[test]
    fn only_a_word_that_the_bmc_lists_is_written() {
        let value = |body: Value, resting, on| {
            let locator = locator(body, resting);
            locator.value(&locator.ways[0], on)
        };
        assert_eq!(value(json!({"IndicatorLED": "Off"}), "Off", true), "Blinking");
        let listed = json!({"IndicatorLED": "Off", "IndicatorLED@Redfish.AllowableValues": ["Lit", "Off"]});
        assert_eq!(value(listed, "Off", true), "Lit");
        assert_eq!(value(json!({"IndicatorLED": "Blinking"}), "Lit", false), "Lit");
        assert_eq!(value(json!({"LocationIndicatorActive": true}), "Off", false), false);
    }
}
