//! What a request sends: the form of its body, and the object in it. What a [`crate::decode::Format`] means stands in [`crate::decode`].

use gardener_apimachinery::ApiError;
use gardener_apimachinery::type_meta::unreadable;
use http::Method;
use http::header::CONTENT_TYPE;

use crate::accept::MEDIA_TYPES;
use crate::decode::{self, Decoded, Format};
use crate::handle::Call;
use crate::media_type;
use crate::protobuf;
use crate::registry::{Beside, PatchKind, Scope, WriteOptions, unrecognized};
use crate::unread::Unread;

impl Call {
    /// The kind of patch that the body is.
    pub(crate) fn patch_kind(&self) -> Result<PatchKind, ApiError> {
        let content_type = self.content_type();
        PatchKind::of(&content_type).ok_or_else(ApiError::unsupported_patch)
    }

    /// What the request says of the form of its body; empty, if nothing.
    pub(crate) fn content_type(&self) -> String {
        self.headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    }

    /// The body as an object that the resource may have, and the options beside it.
    pub(crate) fn decoded_object(&self, scope: &Scope) -> Result<(Decoded, WriteOptions), ApiError> {
        // what the body of a creation is written in is told before what is asked for with it; of another it is told afterwards
        let is_creation = self.method == Method::POST;
        let asked = (!is_creation).then(|| self.write_options()).transpose()?;
        let format = self.format()?;
        let options = asked.map_or_else(|| self.write_options(), Ok)?;
        if format.is_none() && !scope.definition.is_go_type() {
            return Err(ApiError::unsupported_media_type(&[
                "application/json",
                "application/yaml",
            ]));
        }
        let kind = scope.spec().map_or("", |version| version.kind.as_str());
        let api_version = scope.definition.api_version(&scope.version);
        Ok((self.decoded_kind(&api_version, kind)?, options))
    }

    /// The body, which should be an object of this kind.
    pub(crate) fn decoded_kind(&self, api_version: &str, kind: &str) -> Result<Decoded, ApiError> {
        match self.format()? {
            None => self.decoded_as(api_version, kind),
            Some(_) => self.decoded_or((api_version, kind), |why| unrecognized(kind, why, &self.body)),
        }
    }

    /// The body, which should be an object, `wanted` if it does not say of what kind; `refuse` tells of one that is none.
    pub(crate) fn decoded_or(
        &self,
        wanted: (&str, &str),
        refuse: impl Fn(&str) -> ApiError,
    ) -> Result<Decoded, ApiError> {
        let format = self.format()?;
        let decoded = match format {
            None => protobuf::decode_as(&self.body, wanted)
                .map_err(|why| refuse(&why.to_string()))?
                .into(),
            Some(format) => decode::decode(&self.body, format).map_err(|error| {
                let why = error.message();
                match format {
                    Format::Json => refuse(&format!("couldn't get version/kind; json parse error: {why}")),
                    Format::Yaml => refuse(why),
                }
            })?,
        };
        match unreadable(&decoded.value) {
            Some(why) => Err(refuse(&why)),
            None => Ok(decoded),
        }
    }

    /// Of the body of a write to the status what has to be read beside what is stored, with that. None: the body is to be read as a whole.
    pub(crate) fn decoded_beside(&self, scope: &Scope) -> Option<(Beside, Decoded)> {
        if !scope.reads_status_alone() || !matches!(self.format(), Ok(Some(Format::Json))) {
            return None;
        }
        let (mut read, sent) = Unread::take_apart(&self.body)?;
        // most bodies that are not written as we write JSON are told by that, before anything is read
        let beside = scope.found_beside(&sent, &mut read)?;
        let decoded = decode::members(&self.body, &read)?;
        unreadable(&decoded.value).is_none().then_some((beside, decoded))
    }

    /// The format of the body; none for protobuf.
    fn format(&self) -> Result<Option<Format>, ApiError> {
        let told = self.content_type();
        if told.is_empty() {
            return Ok(Some(Format::Json));
        }
        match media_type::parse(&told).as_deref() {
            Some("application/json") => Ok(Some(Format::Json)),
            Some("application/yaml") => Ok(Some(Format::Yaml)),
            Some(protobuf::CONTENT_TYPE) => Ok(None),
            _ => Err(ApiError::unsupported_media_type(&MEDIA_TYPES)),
        }
    }

    /// The body as JSON value; what does not tell its kind in protobuf is of this one.
    pub(crate) fn decoded_as(&self, api_version: &str, kind: &str) -> Result<Decoded, ApiError> {
        match self.format()? {
            Some(format) => decode::decode(&self.body, format),
            None => protobuf::decode_as(&self.body, (api_version, kind))
                .map(Decoded::from)
                .map_err(|why| why.refused(kind, &self.body)),
        }
    }
}
