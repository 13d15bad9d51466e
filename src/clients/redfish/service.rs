//! Asks one BMC: how requests are dressed, repeated and given up, and how answers are told apart.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use url::Url;

use super::condition::{FirstForm, IfMatch, ladder};
use super::error::{RedfishError, TlsTrouble, tls_trouble};
use super::resource::Resource;
use super::said::{Said, property_refused};
use super::turn;
use crate::clients::http::{Answer, Auth, Carrier, HttpClient, HttpError, HttpOptions, Method, Request};
use crate::clients::rehearsal::Rehearsal;
use crate::config::settings::Trust;
use crate::domain::text::neutralize_to;

/// The largest resource that is read. Attribute registries of 1.1 MB are the largest seen.
const BODY_MAX: usize = 8 * 1024 * 1024;

/// Redirects that are followed for one request.
const HOPS_MAX: u32 = 3;

/// The longest wait that a BMC may ask for by `Retry-After`.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// A user of the BMC.
#[derive(Clone)]
pub struct Credential {
    pub username: String,
    pub password: SecretString,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credential({}, ***)", self.username)
    }
}

/// How patient the client is.
#[derive(Debug, Clone)]
pub struct RedfishOptions {
    pub trust: Trust,
    pub connect_timeout: Duration,
    /// Of one read; writes get twice that.
    pub timeout: Duration,
    /// How long a busy BMC is waited for, over all requests of this client together.
    pub busy_budget: Duration,
}

/// A BMC, asked one request at a time, also by several clients of it: more at once crash some of them (Q55). Lives as long
/// as one activity.
///
/// Authenticates by Basic with each request, so that no session is left behind. Once the BMC has refused the credential,
/// nothing more is sent with it: an account is never locked by trying.
pub struct Redfish {
    http: HttpClient,
    credential: Option<Credential>,
    options: RedfishOptions,
    memory: Mutex<Memory>,
    /// Shared by all clients of this BMC.
    turns: Arc<Semaphore>,
}

/// What was learnt of this BMC.
#[derive(Default)]
struct Memory {
    busy_spent: Duration,
    /// It was there: where it takes no connection now, it starts anew and is waited for.
    answered: bool,
    /// 406 was answered to `Accept-Encoding: identity` (Q50).
    refuses_identity: bool,
    first_form: FirstForm,
    /// The form of `If-Match` that worked last, where the first one did not; a tag itself is good for one resource only.
    stars: Option<bool>,
    refused: Option<(String, bool)>,
}

/// What a write came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Accepted {
    pub status: u16,
    /// The task or the new resource, where the BMC names one.
    pub location: Option<String>,
}

struct Call<'a> {
    method: Method,
    path: String,
    body: Option<&'a Value>,
    if_match: IfMatch,
    authenticated: bool,
}

impl Redfish {
    pub fn new(base: &Url, credential: Option<Credential>, options: RedfishOptions) -> Result<Self, RedfishError> {
        let http = HttpOptions {
            trust: options.trust.clone(),
            connect_timeout: options.connect_timeout,
            timeout: options.timeout,
            keep_alive: false,
            compression: false,
        };
        let http = HttpClient::new("redfish", base, &http)?.body_max(BODY_MAX);
        let turns = turn::of(&http.host());
        Ok(Redfish { http, credential, options, memory: Mutex::default(), turns })
    }

    /// The same BMC as a plan asks it: nothing is changed there (G14).
    pub fn rehearsed(mut self, rehearsal: &Rehearsal) -> Self {
        self.http = self.http.rehearsed(rehearsal);
        self
    }

    /// The same BMC, reached by another carrier than the wire.
    pub fn over(mut self, carrier: Arc<dyn Carrier>) -> Self {
        self.http = self.http.over(carrier);
        self
    }

    /// In a plan: members that a resource would have after an action. Nothing otherwise.
    pub fn imagine(&self, path: &str, members: &Value) {
        if let Some(plan) = self.http.rehearsal() {
            plan.imagine(&self.host(), path, members);
        }
    }

    /// Whether it only imagines what it changes.
    pub fn is_rehearsed(&self) -> bool {
        self.http.rehearsal().is_some()
    }

    /// Host and port, for messages.
    pub fn host(&self) -> String {
        self.http.host()
    }

    /// The user that it asks as.
    pub fn user(&self) -> &str {
        self.credential.as_ref().map_or("", |c| &c.username)
    }

    /// A client for the same BMC as another user.
    pub fn as_user(&self, credential: Credential) -> Redfish {
        let memory = Memory { first_form: self.memory(|m| m.first_form), ..Memory::default() };
        Redfish {
            http: self.http.clone(),
            credential: Some(credential),
            options: self.options.clone(),
            memory: Mutex::new(memory),
            turns: Arc::clone(&self.turns),
        }
    }

    /// A client for the same BMC and user that waits for no busy BMC and reads for ten seconds at most: for one look at
    /// something that may not be there.
    pub fn impatient(&self) -> Redfish {
        let timeout = self.options.timeout.min(Duration::from_secs(10));
        let options = RedfishOptions { busy_budget: Duration::ZERO, timeout, ..self.options.clone() };
        let (http, credential, turns) = (self.http.clone(), self.credential.clone(), Arc::clone(&self.turns));
        Redfish { http, credential, options, memory: Mutex::default(), turns }
    }

    /// The form of `If-Match` that this vendor is asked with first.
    pub fn prefer(&self, form: FirstForm) {
        self.memory(|m| m.first_form = form);
    }

    /// The service root. It needs no login; where a firmware wants one all the same, it gets one.
    pub async fn root(&self) -> Result<Resource, RedfishError> {
        let path = "/redfish/v1/";
        match self.read(path, false).await {
            Err(RedfishError::Unauthorized { .. }) if self.credential.is_some() => self.read(path, true).await,
            other => other,
        }
    }

    /// Reads a resource as the user of this client.
    pub async fn get(&self, path: &str) -> Result<Resource, RedfishError> {
        self.read(path, true).await
    }

    /// Reads a resource with the methods that it takes, by its `Allow`; `None`: it does not say.
    pub async fn get_with_methods(&self, path: &str) -> Result<(Resource, Option<Vec<String>>), RedfishError> {
        let (resource, allow) = self.read_whole(path, true).await?;
        let methods = allow.map(|list| list.split(',').map(|word| word.trim().to_ascii_uppercase()).collect());
        Ok((resource, methods))
    }

    async fn read(&self, path: &str, authenticated: bool) -> Result<Resource, RedfishError> {
        self.read_whole(path, authenticated).await.map(|(resource, _)| resource)
    }

    /// A resource, and its header `Allow`.
    async fn read_whole(&self, path: &str, authenticated: bool) -> Result<(Resource, Option<String>), RedfishError> {
        let call = Call { method: Method::GET, path: path.to_owned(), body: None, if_match: None, authenticated };
        let answer = self.ask(call).await?;
        let unusable = |what: &str| RedfishError::Unusable { path: neutralize_to(path, 200), what: what.to_owned() };
        match answer.json()? {
            Value::Object(body) => {
                let etag = answer.header("etag").map(str::to_owned);
                Ok((Resource { path: path.to_owned(), body, etag }, answer.header("allow").map(str::to_owned)))
            }
            Value::Null => Err(unusable("the answer is empty")),
            _ => Err(unusable("the answer is JSON, but no object")),
        }
    }

    /// Changes members of a resource. Climbs the ladder of preconditions where the BMC asks for one.
    pub async fn patch(&self, path: &str, body: &Value) -> Result<Accepted, RedfishError> {
        if let (Some(plan), Some(asks)) = (self.http.rehearsal(), &self.credential)
            && body.get("Password").is_some()
        {
            plan.changes_password(&self.host(), path, &asks.username, &asks.password);
        }
        let first = self.memory(|m| match m.stars {
            Some(true) => Some("*".to_owned()),
            _ => m.first_form.header(),
        });
        let mut forms = vec![first.clone()];
        let (mut climbed, mut fetched_again) = (false, false);
        let mut next = 0;
        loop {
            let if_match = forms[next].clone();
            let call = Call {
                method: Method::PATCH,
                path: path.to_owned(),
                body: Some(body),
                if_match: if_match.clone(),
                authenticated: true,
            };
            let refused = match self.ask(call).await {
                Ok(answer) => {
                    if climbed {
                        self.memory(|m| m.stars = Some(if_match.as_deref() == Some("*")));
                    }
                    return self.accepted(answer);
                }
                Err(refused @ RedfishError::Precondition { .. }) => refused,
                Err(other) => return Err(other),
            };
            let is_exact = if_match.is_some_and(|form| form != "*");
            if !climbed {
                climbed = true;
                forms.extend(self.forms_of(path, &first).await?);
            } else if is_exact && !fetched_again {
                // The tag may have changed in between, and some XCC refuse a right one now and then (Q4).
                fetched_again = true;
                let fresh = self.forms_of(path, &first).await?.into_iter().flatten().next();
                let differs = fresh.as_ref().is_some_and(|tag| !forms.iter().flatten().any(|form| form == tag));
                if fresh.as_deref() != Some("*") && (differs || first.as_deref() == Some("*") && fresh.is_some()) {
                    forms.insert(next + 1, fresh);
                }
            }
            next += 1;
            if next >= forms.len() {
                return Err(refused);
            }
        }
    }

    /// The forms of the precondition that a resource may want, from what it says of its tag. While a password has to be
    /// changed first it says nothing.
    async fn forms_of(&self, path: &str, tried: &IfMatch) -> Result<Vec<IfMatch>, RedfishError> {
        match self.get(path).await {
            Ok(now) => Ok(ladder(now.etag.as_deref(), now.body.get("@odata.etag"), tried)),
            Err(RedfishError::PasswordChangeRequired { .. }) => Ok(ladder(None, None, tried)),
            Err(other) => Err(other),
        }
    }

    /// Creates a member or asks for an action. Never repeated blindly: whoever calls reads first whether it took effect.
    /// No `If-Match`: iDRAC10 refuses actions that carry one (Q7). Only firmware that wants `*` everywhere, and says that
    /// it misses it here too, gets it: what lacked its precondition was not carried out.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Accepted, RedfishError> {
        let call = |if_match: IfMatch| Call {
            method: Method::POST,
            path: path.to_owned(),
            body: Some(body),
            if_match,
            authenticated: true,
        };
        let answer = match self.ask(call(None)).await {
            Err(RedfishError::Precondition { .. }) if self.memory(|m| m.first_form) == FirstForm::Any => {
                self.ask(call(Some("*".to_owned()))).await?
            }
            other => other?,
        };
        self.accepted(answer)
    }

    /// Asks an action that only tells something. `None`: it answered without a body, as every action does in a rehearsal.
    pub async fn inquire(&self, path: &str, body: &Value) -> Result<Option<Map<String, Value>>, RedfishError> {
        let call =
            Call { method: Method::POST, path: path.to_owned(), body: Some(body), if_match: None, authenticated: true };
        match self.ask(call).await?.json()? {
            Value::Object(told) => Ok(Some(told)),
            _ => Ok(None),
        }
    }

    /// Deletes a resource. Not repeated by itself after a lost answer.
    pub async fn delete(&self, path: &str) -> Result<Accepted, RedfishError> {
        let call =
            Call { method: Method::DELETE, path: path.to_owned(), body: None, if_match: None, authenticated: true };
        let answer = self.ask(call).await?;
        self.accepted(answer)
    }

    fn accepted(&self, answer: Answer) -> Result<Accepted, RedfishError> {
        // A good status can carry a refusal of one property in its body. A body that is no JSON says nothing.
        if let Ok(body) = answer.json()
            && let Some(reason) = property_refused(&body)
        {
            let (status, said) = (answer.status.as_u16(), Said::read(&answer.body));
            if said.tells_of_lockdown() {
                return Err(RedfishError::LockedDown { asked: answer.asked, reason });
            }
            return Err(RedfishError::Refused { asked: answer.asked, status, reason, said });
        }
        let location = answer.header("location").map(|to| neutralize_to(to, 200));
        Ok(Accepted { status: answer.status.as_u16(), location })
    }

    /// Waits as long as a busy BMC asks for, or gives the same error back when the budget is spent (B18).
    pub async fn be_patient(&self, busy: RedfishError) -> Result<(), RedfishError> {
        let RedfishError::Busy { retry_after, tries, .. } = &busy else { return Err(busy) };
        let Some(pause) = self.pause(*retry_after, *tries) else { return Err(busy) };
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// A pause between two looks, in proportion to a patience that is smaller than the usual two minutes.
    pub fn moment(&self, usual: Duration) -> Duration {
        usual.min(self.options.busy_budget.mul_f64(usual.as_secs_f64() / 120.0))
    }

    /// The next wait for a busy BMC, taken from the budget; `None` when that is spent. What the BMC asks for, at most a
    /// minute; else 5, 10, 20, 30, 30 … s, in proportion to a budget that is smaller than the usual two minutes.
    fn pause(&self, retry_after: Option<Duration>, tries: u32) -> Option<Duration> {
        let budget = self.options.busy_budget;
        self.memory(|m| {
            let left = budget.saturating_sub(m.busy_spent);
            if left.is_zero() {
                return None;
            }
            let step = [5, 10, 20, 30][(tries.max(1) as usize - 1).min(3)];
            let own = Duration::from_secs(step).min(budget.mul_f64(step as f64 / 120.0));
            let pause =
                retry_after.map_or(own, |wish| wish.clamp(Duration::from_millis(10), RETRY_AFTER_MAX)).min(left);
            m.busy_spent += pause;
            Some(pause)
        })
    }

    /// One request with its patience. POST is not repeated here.
    async fn ask(&self, call: Call<'_>) -> Result<Answer, RedfishError> {
        let mut tries = 0;
        let mut broke_off = false;
        loop {
            tries += 1;
            let outcome = match self.follow(&call).await {
                // Some BMCs reset connections; a read is repeated once on a fresh one.
                Err(RedfishError::Http(HttpError::Broken { .. })) if call.method == Method::GET && !broke_off => {
                    broke_off = true;
                    continue;
                }
                Err(RedfishError::Http(error)) if self.starts_anew(&error) => {
                    let Some(pause) = self.pause(None, tries) else { return Err(error.into()) };
                    tokio::time::sleep(pause).await;
                    continue;
                }
                Err(other) => Err(other),
                Ok(answer) => self.judge(&call, answer, tries),
            };
            match outcome {
                Err(RedfishError::Busy { retry_after, .. }) if call.method != Method::POST => {
                    match self.pause(retry_after, tries) {
                        Some(pause) => tokio::time::sleep(pause).await,
                        None => return outcome,
                    }
                }
                Err(RedfishError::Refused { status: 406, .. }) if !self.memory(|m| m.refuses_identity) => {
                    self.memory(|m| m.refuses_identity = true);
                }
                other => return other,
            }
        }
    }

    /// Whether a BMC that was there a moment ago takes no connections: its web server starts anew, as an iDRAC's does after
    /// a change of its TLS (Q53). Nothing was sent then, so that whatever is asked can be asked again.
    fn starts_anew(&self, error: &HttpError) -> bool {
        let no_connection = match error {
            HttpError::Refused { .. } => true,
            HttpError::Connect { .. } => matches!(tls_trouble(error), None | Some(TlsTrouble::NotTls)),
            _ => false,
        };
        no_connection && self.memory(|m| m.answered)
    }

    /// One request with its redirects, followed by hand: same host, same method, same body (Q40).
    async fn follow(&self, call: &Call<'_>) -> Result<Answer, RedfishError> {
        let mut path = call.path.clone();
        for _ in 0..=HOPS_MAX {
            let turn = self.turns.acquire().await.expect("nobody closes it");
            let answer = self.http.send(self.dress(call, &path)?).await?;
            drop(turn);
            self.memory(|m| m.answered = true);
            if !matches!(answer.status.as_u16(), 301 | 307 | 308) {
                return Ok(answer);
            }
            let to = answer.header("location").unwrap_or_default().trim().to_owned();
            let asked = answer.asked;
            let redirect = || RedfishError::Redirect { asked: asked.clone(), to: neutralize_to(&to, 200) };
            if !to.starts_with('/') && !to.starts_with("http") || to.starts_with("//") || to == path {
                return Err(redirect());
            }
            // The client refuses a URL of another origin before anything is sent (Z4).
            let joined = self.http.base().join(&to).map_err(|_| redirect())?;
            if joined.origin() != self.http.base().origin() {
                return Err(redirect());
            }
            path = to;
        }
        Err(RedfishError::Redirect { asked: format!("{} {}", call.method, neutralize_to(&call.path, 200)), to: path })
    }

    fn dress(&self, call: &Call<'_>, path: &str) -> Result<Request, RedfishError> {
        let write = call.method != Method::GET;
        let timeout = if write { self.options.timeout * 2 } else { self.options.timeout };
        let mut request = Request::new(call.method.clone(), path)
            .header("accept", "application/json")
            .header("odata-version", "4.0")
            .timeout(timeout);
        if !self.memory(|m| m.refuses_identity) {
            request = request.header("accept-encoding", "identity");
        }
        if let Some(tag) = &call.if_match {
            request = request.header("if-match", tag);
        }
        if let Some(body) = call.body {
            request = request.json(body.clone());
        }
        if let Some(credential) = self.credential.as_ref().filter(|_| call.authenticated) {
            if let Some((reason, locked)) = self.memory(|m| m.refused.clone()) {
                let asked = format!("{} {}", call.method, neutralize_to(path, 200));
                return Err(RedfishError::Unauthorized { asked, user: credential.username.clone(), reason, locked });
            }
            let Credential { username, password } = credential.clone();
            // In a plan a password that was set is not: the BMC goes on to be asked with the one that it has.
            let real = self.http.rehearsal().and_then(|plan| plan.real_password(&self.host(), &username));
            let password = real.unwrap_or(password);
            request = request.auth(Auth::Basic { username, password });
        }
        Ok(request)
    }

    /// Tells answers apart.
    fn judge(&self, call: &Call<'_>, answer: Answer, tries: u32) -> Result<Answer, RedfishError> {
        let status = answer.status.as_u16();
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let said = Said::read(&answer.body);
        let (asked, reason, user) = (answer.asked.clone(), said.text.clone(), self.user().to_owned());
        // iDRAC answers SWC1908 to everything while the factory password stands (Q43).
        let change = said.entry("PasswordChangeRequired").or(said.entry("SWC1908"));
        if let Some(entry) = change.filter(|_| status < 500) {
            let account = entry.args.iter().find(|arg| arg.starts_with('/')).cloned();
            return Err(RedfishError::PasswordChangeRequired { asked, user, account });
        }
        if call.method != Method::GET && status < 500 && said.tells_of_lockdown() {
            return Err(RedfishError::LockedDown { asked, reason });
        }
        Err(match status {
            401 => {
                let low = reason.to_ascii_lowercase();
                let locked = low.contains("locked") || low.contains("blocked");
                if call.authenticated {
                    self.memory(|m| m.refused = Some((reason.clone(), locked)));
                }
                RedfishError::Unauthorized { asked, user, reason, locked }
            }
            403 if said.has("OemLicenseNotPassed") => RedfishError::NotLicensed { asked, reason },
            403 => RedfishError::Forbidden { asked, user, reason },
            404 => RedfishError::NotFound { asked },
            412 | 428 => RedfishError::Precondition { asked, status, reason },
            503 if said.has("RAC0218") => RedfishError::SessionsFull { asked, reason },
            500 | 502 | 503 | 504 => self.busy(&answer, reason, tries),
            // "Data sources are unavailable": busy in other words.
            400 if said.has("SYS518") => self.busy(&answer, reason, tries),
            _ => RedfishError::Refused { asked, status, reason, said },
        })
    }

    fn busy(&self, answer: &Answer, reason: String, tries: u32) -> RedfishError {
        RedfishError::Busy {
            asked: answer.asked.clone(),
            status: answer.status.as_u16(),
            reason,
            retry_after: answer.header("retry-after").and_then(retry_after),
            tries,
            waited: self.memory(|m| m.busy_spent),
        }
    }

    fn memory<T>(&self, f: impl FnOnce(&mut Memory) -> T) -> T {
        f(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// `Retry-After` in its two forms: seconds, or a date.
fn retry_after(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let span = at.duration_since(jiff::Timestamp::now());
    Some(Duration::try_from(span).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(retry_after("20"), Some(Duration::from_secs(20)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        let later = jiff::Timestamp::now() + Duration::from_secs(30);
        let date = later.to_zoned(jiff::tz::TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let span = retry_after(&date).unwrap();
        assert!(span > Duration::from_secs(27) && span <= Duration::from_secs(30), "{span:?}");
        assert_eq!(retry_after("soon"), None);
    }

    #[test]
    fn the_waits_for_a_busy_bmc_grow_and_end_with_the_budget() {
        rustls::crypto::ring::default_provider().install_default().ok();
        let options = RedfishOptions {
            trust: Trust::System,
            connect_timeout: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            busy_budget: Duration::from_secs(120),
        };
        let bmc = Redfish::new(&Url::parse("https://192.0.2.7/").unwrap(), None, options).unwrap();
        let seconds: Vec<u64> = (1..).map_while(|n| bmc.pause(None, n)).map(|pause| pause.as_secs()).collect();
        assert_eq!(seconds, [5, 10, 20, 30, 30, 25]);
        let bmc = bmc.as_user(Credential { username: "a".into(), password: "b".to_owned().into() });
        assert_eq!(bmc.pause(Some(Duration::from_secs(3600)), 1), Some(RETRY_AFTER_MAX));
        assert!(!format!("{:?}", bmc.credential).contains("\"b\""));
    }
}
