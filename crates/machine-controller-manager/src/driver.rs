//! What makes machines [MCH-120], [MCH-121].

use std::collections::BTreeMap;

use async_trait::async_trait;
use gardener_apis::machine::v1alpha1::{Machine, MachineClass};
use k8s_openapi::ByteString;

/// What a driver is asked about.
#[derive(Clone, Debug)]
pub struct Request {
    /// The machine.
    pub machine: Machine,
    /// Its class.
    pub class: MachineClass,
    /// Credentials and user data, merged; placeholders are filled in.
    pub secret: BTreeMap<String, ByteString>,
}

/// A machine there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// Names it at the provider.
    pub provider_id: String,
    /// The name its node will have.
    pub node_name: String,
}

/// The class of a driver's failure [MCH-121].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Nobody knows.
    Unknown,
    /// The request makes no sense.
    InvalidArgument,
    /// It took too long.
    DeadlineExceeded,
    /// There is no such machine.
    NotFound,
    /// It is not allowed.
    PermissionDenied,
    /// There is no capacity or quota.
    ResourceExhausted,
    /// Something must be done first.
    FailedPrecondition,
    /// It was cut off.
    Aborted,
    /// The driver has no such method.
    Unimplemented,
    /// The driver is broken.
    Internal,
    /// The provider cannot be reached.
    Unavailable,
    /// Who asks is unknown.
    Unauthenticated,
    /// The machine is there, but not initialized.
    Uninitialized,
}

/// A driver's failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("machine codes error: code = [{code:?}] message = [{message}]")]
pub struct DriverError {
    /// Its class.
    pub code: Code,
    /// What happened.
    pub message: String,
}

impl DriverError {
    /// A failure.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// Makes machines and takes them away. Every method may be called again.
#[async_trait]
pub trait Driver: Send + Sync + 'static {
    /// Makes a machine; one that is there is answered.
    async fn create(&self, request: &Request) -> Result<Made, DriverError>;
    /// The machine; [`Code::NotFound`] if there is none.
    async fn status(&self, request: &Request) -> Result<Made, DriverError>;
    /// Takes a machine away; one that is gone is fine.
    async fn delete(&self, request: &Request) -> Result<(), DriverError>;
    /// All machines of a class: provider id and machine name.
    async fn list(&self, class: &MachineClass) -> Result<BTreeMap<String, String>, DriverError>;
}
