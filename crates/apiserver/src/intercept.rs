//! What webhooks and admission policies share: which requests they concern ([`matching`]), in which form they see them ([`form`],
//! [`request`]), and what their expressions know and may cost ([`expressions`], [`conditions`]).

pub(crate) mod conditions;
pub(crate) mod expressions;
pub(crate) mod form;
pub(crate) mod matching;
pub(crate) mod reinvocation;
pub(crate) mod request;
