//! Approves the certificate signing requests with which gardenlets ask for their client certificates `[AUTH-31]` `[GCM-24]`, if their user may ask for
//! such. What such a request looks like is in `rules::csr_approval::gardenlets`.
//!
//! As upstream, a request for a self-hosted shoot must come with a bootstrap token for that shoot, else it is denied. Other than upstream, only requests to
//! the signer of client certificates count `[AUTH-30]`, and one that cannot be read is left alone instead of being read again and again.

use gardener_controller::certificate_requests::{self, Verdict, is_open};
use gardener_controller::{Action, ObjectRef, Queue, Read};
use gardener_garden_authorizer::bootstrap;
use gardener_rules::csr_approval::{API_CLIENT, Request, gardenlets};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::PostParams;

use crate::Config;
use crate::manager::{Manager, ReconcileError};

const NAME: &str = "certificatesigningrequest";
const APPROVED: &str = "Auto approving gardenlet client certificate after SubjectAccessReview.";

pub(crate) async fn run(manager: &Manager) {
    let requests = manager.informer::<CertificateSigningRequest>();
    let queue: Queue<ObjectRef> = Queue::new();
    requests.feed_if(
        &queue,
        |change| is_gardenlets(change.object()),
        |request| [ObjectRef::of(request)],
    );
    requests.synced().await;
    let own = manager.clone();
    let syncs = manager.config.controllers.certificate_signing_request.concurrent_syncs;
    let reconcile = move |key: ObjectRef| {
        let own = own.clone();
        async move { reconcile(&own.config, &key).await }
    };
    let controller = manager.controller(NAME, syncs, queue);
    controller.run(manager.stop.clone(), reconcile).await;
}

/// Whether a request may be a gardenlet's, and nothing is decided about it yet.
fn is_gardenlets(request: &CertificateSigningRequest) -> bool {
    request.spec.signer_name == API_CLIENT && is_open(request)
}

/// For whom a client certificate is asked for.
#[derive(Debug, PartialEq, Eq)]
enum Client {
    Seed,
    SelfHostedShoot,
}

impl Client {
    /// The subresource that the user must be allowed to create.
    fn subresource(&self) -> &'static str {
        match self {
            Self::Seed => "seedclient",
            Self::SelfHostedShoot => "shootclient",
        }
    }
}

/// For whom a request is; the reasons if it is for nobody.
fn client(request: &Request) -> Result<Client, String> {
    let seed = gardenlets::seed_client(request).map(|_| Client::Seed);
    let shoot = || gardenlets::shoot_client(request).map(|_| Client::SelfHostedShoot);
    let gardenadm = || gardenlets::gardenadm_client(request).map(|_| Client::SelfHostedShoot);
    seed.or_else(|for_seed| {
        shoot().or_else(|for_shoot| {
            gardenadm().map_err(|for_gardenadm| format!("{for_seed}; {for_shoot}; {for_gardenadm}"))
        })
    })
}

async fn reconcile(config: &Config, key: &ObjectRef) -> Result<Action, ReconcileError> {
    let api: Api<CertificateSigningRequest> = Api::all(config.garden.clone());
    let Some(request) = api.read_opt(&key.name).await?.filter(is_gardenlets) else {
        return Ok(Action::Done);
    };
    let spec = &request.spec;
    let user = spec.username.clone().unwrap_or_default();
    let asked = Request::read(&spec.request.0, &user, spec.usages.as_deref().unwrap_or_default());
    let Some(asked) = asked else {
        tracing::warn!(request = key.name, "the certificate signing request cannot be read");
        return Ok(Action::Done);
    };
    let client = match client(&asked) {
        Ok(client) => client,
        Err(reasons) => {
            tracing::debug!(request = key.name, reasons, "no gardenlet's request");
            return Ok(Action::Done);
        }
    };
    if client == Client::SelfHostedShoot
        && let Err(why) = has_token(config, &request, &asked).await?
    {
        let why = format!("Bootstrap token does not fulfill requirements for auto-approval: {why}");
        let message = format!("Denying gardenlet client certificate ({why})");
        let told = ("RequestDenied", message);
        certificate_requests::decide(&api, request, Verdict::Denied, told, config.clock.time()).await?;
        return Ok(Action::Done);
    }
    if let Some(reason) = refused(config, &request, client.subresource()).await? {
        return Err(ReconcileError::Blocked(format!(
            "recognized CSR but SubjectAccessReview was not allowed: {reason}"
        )));
    }
    let told = ("AutoApproved", APPROVED.to_owned());
    certificate_requests::decide(&api, request, Verdict::Approved, told, config.clock.time()).await?;
    Ok(Action::Done)
}

/// Why the user may not ask for such a certificate.
async fn refused(
    config: &Config,
    request: &CertificateSigningRequest,
    subresource: &str,
) -> Result<Option<String>, kube::Error> {
    let spec = &request.spec;
    let text = |text: &str| Some(text.to_owned());
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: spec.username.clone(),
            uid: spec.uid.clone(),
            groups: spec.groups.clone(),
            extra: spec.extra.clone(),
            resource_attributes: Some(ResourceAttributes {
                verb: text("create"),
                group: text("certificates.k8s.io"),
                resource: text("certificatesigningrequests"),
                subresource: text(subresource),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviews: Api<SubjectAccessReview> = Api::all(config.garden.clone());
    let status = reviews
        .create(&PostParams::default(), &review)
        .await?
        .status
        .unwrap_or_default();
    Ok((!status.allowed).then(|| status.reason.unwrap_or_default()))
}

/// Whether a request comes with a bootstrap token for the shoot that it names; else why not.
async fn has_token(
    config: &Config,
    request: &CertificateSigningRequest,
    asked: &Request,
) -> Result<Result<(), String>, kube::Error> {
    let groups = request.spec.groups.as_deref().unwrap_or_default();
    let id = asked.username.strip_prefix(bootstrap::TOKEN_USER_PREFIX);
    let Some(id) = id.filter(|_| groups.iter().any(|group| group == bootstrap::TOKEN_GROUP)) else {
        return Ok(Err("CSR does not seem to be requested via a bootstrap token".to_owned()));
    };
    let secrets: Api<Secret> = Api::namespaced(config.garden.clone(), "kube-system");
    let secret = secrets
        .read_opt(&format!("{}{id}", bootstrap::TOKEN_SECRET_PREFIX))
        .await?;
    let Some(secret) = secret else {
        return Ok(Err("bootstrap token secret not found".to_owned()));
    };
    let data = secret.data.unwrap_or_default();
    let description = data
        .get("description")
        .map(|text| text.0.as_slice())
        .unwrap_or_default();
    Ok(
        match bootstrap::shoot_of_description(&String::from_utf8_lossy(description)) {
            Err(why) => Err(why),
            Ok(None) => Err("bootstrap token does not contain shoot metadata".to_owned()),
            Ok(Some((namespace, name))) => gardenlets::matches_token(asked, (&namespace, &name)),
        },
    )
}
