/**
 * Documentation of an endpoint beside its schemas, declared with the endpoint: a summary, its errors, and an example of its body.
 * The required credential comes from its policy.
 */
import * as Context from "effect/Context"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Option from "effect/Option"
import type { ErrorCode } from "../domain/GatewayError.ts"
import type { Access } from "./EndpointPolicy.ts"

/** Documentation that Effect's endpoint declaration has no place for. */
export interface Documentation {
  /** Codes of its possible errors. */
  readonly errors: ReadonlyArray<ErrorCode>
  /** The body may be absent, which means an empty object. */
  readonly mayBeEmpty?: true
  /** A valid body. */
  readonly example?: unknown
  /** The required credential, if the handler checks it in place of the middleware. */
  readonly access?: Access
}

/** Annotates an endpoint with its documentation. */
export class Documented extends Context.Service<Documented, Documentation>()("model-gateway/http/Documented") {}

/** Annotations that document an endpoint: `endpoint.annotateMerge(documented({…}))`. */
export const documented = (
  { description, summary, ...said }: Documentation & { readonly summary: string; readonly description?: string }
) => {
  const annotations = Context.make(Documented, said).pipe(Context.add(OpenApi.Summary, summary))
  return description === undefined ? annotations : Context.add(annotations, OpenApi.Description, description)
}

/** Whether the body of an endpoint may be absent, by its documentation. */
export const mayBeEmpty = ({ annotations }: Pick<HttpApiEndpoint.Top, "annotations">): boolean =>
  Option.exists(Context.getOption(annotations, Documented), (said) => said.mayBeEmpty === true)

/** Errors of every endpoint. */
export const always: ReadonlyArray<ErrorCode> = ["internal_error", "shutting_down"]

/** Errors of reading a body. */
export const bodies: ReadonlyArray<ErrorCode> = ["invalid_request", "request_too_large", "unsupported_media_type"]

/** Errors of requests that name a model. */
export const calling: ReadonlyArray<ErrorCode> = [
  ...always,
  ...bodies,
  "model_not_found",
  "model_not_allowed",
  "model_not_priced",
  "vendor_login_required",
  "authentication_failed"
]

/** Errors of completions. */
export const completing: ReadonlyArray<ErrorCode> = [
  ...calling,
  "context_length_exceeded",
  "content_filter",
  "unknown_reference",
  "previous_response_not_found",
  "tool_choice_violation",
  "rate_limit_exceeded",
  "upstream_rate_limited",
  "no_account_available",
  "upstream_error",
  "upstream_timeout",
  "upstream_empty_output"
]

/** Errors of embeddings. */
export const embedding: ReadonlyArray<ErrorCode> = [...completing, "embeddings_unavailable"]

/** Errors of relayed requests. */
export const relaying: ReadonlyArray<ErrorCode> = [...completing, "not_found", "request_timeout"]

/** Errors of authenticated reads. */
export const reading: ReadonlyArray<ErrorCode> = [...always, "authentication_failed"]

/** Errors of reading one item. */
export const finding: ReadonlyArray<ErrorCode> = [...reading, "not_found"]

/** Errors of configuration changes. */
export const changing: ReadonlyArray<ErrorCode> = [...reading, ...bodies, "conflict", "locked", "config_not_saved"]
