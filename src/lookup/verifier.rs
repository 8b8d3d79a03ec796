// SPDX-License-Identifier: GPL-3.0-or-later
//! Verifies the claimed names of a message by DNS.

use super::evidence::{Evidence, Signed, flaw, is_name};
use super::resolver::{Resolver, ResolverError};
use super::result::{Found, Unverified, Verified};
use bulkmark_policy::{Authentication, Method, VerifiedNames};
use mail_auth::dkim::Signature;
use mail_auth::dmarc::verify::DmarcParameters;
use mail_auth::spf::verify::SpfParameters;
use mail_auth::{
    AuthenticatedMessage, DkimOutput, DkimResult, DmarcOutput, DmarcResult, SpfOutput, SpfResult,
};
use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::time::timeout;

/// The most signatures of one message that are verified. A message has one or two, and each mailing list on its way may add one.
const MOST: usize = 5;

/// A message to verify.
#[derive(Debug, Clone, Default)]
pub struct Case {
    /// The claimed names to verify.
    pub asked: VerifiedNames,
    /// The evidence for its signatures; `None` if it was not kept.
    pub evidence: Option<Evidence>,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// The client's HELO name, or its host name.
    pub helo: String,
    /// The envelope sender.
    pub sender: String,
    /// The name of this mail server.
    pub host: String,
}

/// Verifies messages by the name servers of the settings in force.
#[derive(Default)]
pub struct Verifiers {
    resolver: Mutex<Option<Arc<Resolver>>>,
}

impl Verifiers {
    /// Verifies a message. It waits for `within` or for the timeout of the settings, whichever is shorter.
    pub async fn verify(
        &self,
        settings: &Authentication,
        case: Case,
        within: std::time::Duration,
    ) -> Verified {
        let within = within.min(settings.timeout);
        let resolver = match self.resolver(settings) {
            Ok(resolver) => resolver,
            Err(e) => return Verified { unverified: Some(Unverified::dns(e)), ..Verified::default() },
        };
        let known = Arc::new(Mutex::new(Verified::default()));
        let verification = Verification { resolver, known: Arc::clone(&known) };
        // In its own task: a panic by a message ends only this.
        let done = tokio::spawn(async move { timeout(within, verification.verify(&case)).await }).await;
        let mut known = std::mem::take(&mut *known.lock());
        match done {
            Ok(Ok(())) => (),
            Ok(Err(_)) => known.unverified = Some(Unverified::timeout(within.as_secs_f64())),
            Err(e) => log::error!("a message could not be verified, which is a bug: {e}"),
        }
        known
    }

    /// The resolver of these settings, with its cache.
    fn resolver(&self, settings: &Authentication) -> Result<Arc<Resolver>, ResolverError> {
        let mut kept = self.resolver.lock();
        if let Some(resolver) = kept.as_ref().filter(|resolver| resolver.is_of(settings)) {
            return Ok(Arc::clone(resolver));
        }
        let resolver = Arc::new(Resolver::new(settings)?);
        *kept = Some(Arc::clone(&resolver));
        Ok(resolver)
    }
}

/// The verification of one message.
struct Verification {
    resolver: Arc<Resolver>,
    /// The results so far, which count when the time is over.
    known: Arc<Mutex<Verified>>,
}

impl Verification {
    async fn verify(&self, case: &Case) {
        let Case { asked, evidence, .. } = case;
        let message = evidence.as_ref().and_then(Evidence::message);
        if !asked.dkim.is_empty() || !asked.dmarc.is_empty() {
            match message {
                Some(message) if Evidence::froms(&message) == 1 => self.signed(case, message).await,
                Some(_) => self.none(asked, "the message does not have one From field"),
                None => self.none(
                    asked,
                    "its header was not kept, since it is too long or there is no memory for it",
                ),
            }
        }
        if let Some(name) = asked.spf.first() {
            let output = self.spf(case).await;
            self.record(Method::Spf, name, spf_result(&output));
        }
    }

    /// No name that a signature might verify is verified.
    fn none(&self, asked: &VerifiedNames, why: &str) {
        let dkim = asked.dkim.iter().map(|name| (Method::Dkim, name));
        for (method, name) in dkim.chain(asked.dmarc.iter().map(|name| (Method::Dmarc, name))) {
            self.record(method, name, Err(Failure::Not(why.to_owned())));
        }
    }

    /// Verifies signatures, for themselves and for the policy of the From field's domain.
    async fn signed(&self, case: &Case, mut message: AuthenticatedMessage<'_>) {
        let author = case.asked.dmarc.first();
        let is_asked = |signed: &Signed<'_>| {
            let domain = ascii(&signed.header.d);
            case.asked.dkim.contains(&domain) || author.is_some_and(|author| may_align(author, &domain))
        };
        let signatures = std::mem::take(&mut message.dkim_headers);
        let mut asked: Vec<_> = signatures.into_iter().filter(is_asked).collect();
        let left_out = asked.split_off(asked.len().min(MOST));
        let mut outputs: Vec<(DkimResult, Signature)> = Vec::new();
        for signed in asked {
            let signature = signed.header.clone();
            let (name, flaw) = (ascii(&signature.d), flaw(&signature, message.headers.len()));
            message.dkim_headers = vec![signed];
            let result = match flaw {
                Some(flaw) => Err(Failure::Not(flaw.to_owned())),
                None => {
                    let output = self.resolver.dns.verify_dkim(&message).await;
                    let result = output.first().map_or(DkimResult::None, |output| output.result().clone());
                    outputs.push((result.clone(), signature));
                    dkim_result(&result)
                }
            };
            if case.asked.dkim.contains(&name) {
                self.record(Method::Dkim, &name, result);
            }
        }
        message.dkim_headers.clear();
        for name in left_out.iter().map(|signed| ascii(&signed.header.d)) {
            if case.asked.dkim.contains(&name) {
                let why = format!("no more than {MOST} signatures of a message are looked at");
                self.record(Method::Dkim, &name, Err(Failure::Not(why)));
            }
        }
        if let Some(author) = author {
            let result = self.dmarc(case, author, &message, &outputs).await;
            self.record(Method::Dmarc, author, result);
        }
    }

    /// First by signatures, which most mail has; then by the client.
    async fn dmarc(
        &self,
        case: &Case,
        author: &str,
        message: &AuthenticatedMessage<'_>,
        outputs: &[(DkimResult, Signature)],
    ) -> Result<(), Failure> {
        let outputs = outputs.iter().filter_map(|(result, signature)| {
            let output = match result {
                DkimResult::Pass => DkimOutput::pass(),
                DkimResult::TempError(e) => DkimOutput::temp_err(e.clone()),
                _ => return None,
            };
            Some(output.with_signature(signature))
        });
        let outputs: Vec<_> = outputs.collect();
        let sender = domain(&case.sender);
        let of = async |spf: &SpfOutput| {
            let parameters = DmarcParameters::new(message, &outputs, &sender, spf);
            let output = self.resolver.dns.verify_dmarc(parameters).await;
            dmarc_result(&output, author)
        };
        if outputs.iter().any(|output| *output.result() == DkimResult::Pass)
            && of(&SpfOutput::default()).await.is_ok()
        {
            return Ok(());
        }
        of(&self.spf(case).await).await
    }

    async fn spf(&self, case: &Case) -> SpfOutput {
        let domain = domain(&case.sender);
        let Some(client) = case.client.filter(|_| is_name(&domain)) else { return SpfOutput::default() };
        let user = case.sender.rsplit_once('@').map_or("", |(user, _)| user);
        let sender = format!("{user}@{domain}");
        let parameters = SpfParameters::verify_mail_from(client, &case.helo, &case.host, &sender);
        self.resolver.dns.verify_spf(parameters).await
    }

    /// Records the result for a name.
    fn record(&self, method: Method, name: &str, result: Result<(), Failure>) {
        let mut known = self.known.lock();
        let result = match result {
            Ok(()) => {
                let names = match method {
                    Method::Dkim => &mut known.verified.dkim,
                    Method::Spf => &mut known.verified.spf,
                    Method::Dmarc => &mut known.verified.dmarc,
                };
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
                Ok(())
            }
            Err(Failure::Not(why)) => Err(why),
            Err(Failure::Dns(why)) => {
                known.unverified = Some(Unverified::dns(format_args!("{} {name}: {why}", method.name())));
                Err(why)
            }
        };
        known.found.push(Found { method, name: name.to_owned(), result });
    }
}

/// The reason why a name is not verified.
enum Failure {
    /// It is wrong.
    Not(String),
    /// DNS did not answer; it may do so later.
    Dns(String),
}

fn dkim_result(result: &DkimResult) -> Result<(), Failure> {
    match result {
        DkimResult::Pass => Ok(()),
        DkimResult::TempError(e) => Err(Failure::Dns(e.to_string())),
        DkimResult::Neutral(e) | DkimResult::Fail(e) | DkimResult::PermError(e) => {
            Err(Failure::Not(e.to_string()))
        }
        DkimResult::None => Err(Failure::Not("the signature cannot be read".to_owned())),
    }
}

fn spf_result(output: &SpfOutput) -> Result<(), Failure> {
    match output.result() {
        SpfResult::Pass => Ok(()),
        SpfResult::TempError => Err(Failure::Dns("its record, or one that it names".to_owned())),
        SpfResult::None => Err(Failure::Not("it has no SPF record, or the client is not known".to_owned())),
        other => Err(Failure::Not(format!("SPF says {}", other.to_string().to_lowercase()))),
    }
}

fn dmarc_result(output: &DmarcOutput, author: &str) -> Result<(), Failure> {
    match output.result() {
        DmarcResult::Pass if ascii(output.domain()) == author => Ok(()),
        DmarcResult::TempError(e) => Err(Failure::Dns(e.to_string())),
        DmarcResult::None => Err(Failure::Not("it has no DMARC record".to_owned())),
        _ => Err(Failure::Not("neither DKIM nor SPF holds for it".to_owned())),
    }
}

/// The domain of an address, as in DNS.
fn domain(address: &str) -> String {
    ascii(address.rsplit_once('@').map_or("", |(_, domain)| domain))
}

/// A domain as in DNS, in lower case.
fn ascii(domain: &str) -> String {
    let lower = domain.trim_end_matches('.').to_lowercase();
    if lower.is_ascii() { lower } else { idna::domain_to_ascii(&lower).unwrap_or(lower) }
}

/// Whether two domains may belong to one organisation: their last two labels are the same. DMARC decides.
fn may_align(a: &str, b: &str) -> bool {
    let end = |domain: &str| {
        let mut labels = domain.rsplit('.');
        (labels.next().map(str::to_owned), labels.next().map(str::to_owned))
    };
    end(a) == end(b)
}
