/**
 * What the API documents say of an endpoint beside its schemas, stated at its declaration: in a line, what it may fail with,
 * and an example of its body. Who may call is its edge's.
 */
import * as Context from "effect/Context"
import * as OpenApi from "effect/http-api/OpenApi"
import type { ErrorCode } from "../domain/GatewayError.ts"
import type { Access } from "./edgeFacts.ts"

/** What is said of an endpoint where the library has no place for it. */
export interface Documentation {
  /** Codes of the errors that it may answer with. */
  readonly errors: ReadonlyArray<ErrorCode>
  /** A body that it accepts. */
  readonly example?: unknown
  /** Who may call, where the handler asks and not the edge. */
  readonly access?: Access
}

/** The annotation of an endpoint. */
export class Documented extends Context.Service<Documented, Documentation>()("model-gateway/http/Documented") {}

/** The annotations that document an endpoint: `endpoint.annotateMerge(documented({…}))`. */
export const documented = (
  { description, summary, ...said }: Documentation & { readonly summary: string; readonly description?: string }
) => {
  const annotations = Context.make(Documented, said).pipe(Context.add(OpenApi.Summary, summary))
  return description === undefined ? annotations : Context.add(annotations, OpenApi.Description, description)
}

/** What any endpoint may fail with. */
export const always: ReadonlyArray<ErrorCode> = ["internal_error", "shutting_down"]

/** What reading a body may fail with. */
export const bodies: ReadonlyArray<ErrorCode> = ["invalid_request", "request_too_large", "unsupported_media_type"]

/** Requests that name a model. */
export const calling: ReadonlyArray<ErrorCode> = [
  ...always,
  ...bodies,
  "model_not_found",
  "model_not_allowed",
  "authentication_failed"
]

/** Requests for a reply of a model. */
export const completing: ReadonlyArray<ErrorCode> = [
  ...calling,
  "context_length_exceeded",
  "content_filter",
  "unknown_reference",
  "tool_choice_violation",
  "rate_limit_exceeded",
  "upstream_rate_limited",
  "no_account_available",
  "upstream_error",
  "upstream_timeout",
  "upstream_empty_output"
]

/** Requests for vectors. */
export const embedding: ReadonlyArray<ErrorCode> = [...completing, "embeddings_unavailable"]

/** Whoever has a credential reads. */
export const reading: ReadonlyArray<ErrorCode> = [...always, "authentication_failed"]

/** Reads of one thing, which may not be there. */
export const finding: ReadonlyArray<ErrorCode> = [...reading, "not_found"]

/** Changes of the configuration. */
export const changing: ReadonlyArray<ErrorCode> = [...reading, ...bodies, "conflict", "config_not_saved"]
