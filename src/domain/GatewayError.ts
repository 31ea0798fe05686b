/**
 * The closed set of errors that a caller can see. One table holds status, type and the content-generation status word of each code
 * (spec "Errors"); each style renders them in its own shape.
 */
import * as Schema from "effect/Schema"
import type { PassedError } from "./errorBody.ts"
import { FailureCause } from "./FailureCause.ts"

/** HTTP status, vendor `type`, content-generation `status` and whether a retry may succeed, for every code. */
export const errorTable = {
  invalid_request: { status: 400, type: "invalid_request_error", rpc: "INVALID_ARGUMENT", retry: false },
  model_not_found: { status: 400, type: "invalid_request_error", rpc: "INVALID_ARGUMENT", retry: false },
  context_length_exceeded: { status: 400, type: "invalid_request_error", rpc: "INVALID_ARGUMENT", retry: false },
  content_filter: { status: 400, type: "invalid_request_error", rpc: "INVALID_ARGUMENT", retry: false },
  unknown_reference: { status: 400, type: "invalid_request_error", rpc: "INVALID_ARGUMENT", retry: false },
  previous_response_not_found: { status: 400, type: "invalid_request_error", rpc: "INVALID_ARGUMENT", retry: false },
  invalid_stream_id: { status: 400, type: "invalid_request_error", rpc: "INVALID_ARGUMENT", retry: false },
  websocket_stream_limit_reached: { status: 400, type: "invalid_request_error", rpc: "INVALID_ARGUMENT", retry: false },
  websocket_connection_limit_reached: {
    status: 400,
    type: "invalid_request_error",
    rpc: "INVALID_ARGUMENT",
    retry: true
  },
  authentication_failed: { status: 401, type: "authentication_error", rpc: "UNAUTHENTICATED", retry: false },
  vendor_login_required: { status: 401, type: "authentication_error", rpc: "UNAUTHENTICATED", retry: false },
  model_not_allowed: { status: 403, type: "permission_error", rpc: "PERMISSION_DENIED", retry: false },
  model_not_priced: { status: 403, type: "permission_error", rpc: "PERMISSION_DENIED", retry: false },
  role_not_allowed: { status: 403, type: "permission_error", rpc: "PERMISSION_DENIED", retry: false },
  not_found: { status: 404, type: "invalid_request_error", rpc: "NOT_FOUND", retry: false },
  method_not_allowed: { status: 405, type: "invalid_request_error", rpc: "UNIMPLEMENTED", retry: false },
  request_timeout: { status: 408, type: "invalid_request_error", rpc: "INVALID_ARGUMENT", retry: true },
  locked: { status: 409, type: "invalid_request_error", rpc: "INVALID_ARGUMENT", retry: false },
  conflict: { status: 409, type: "invalid_request_error", rpc: "INVALID_ARGUMENT", retry: false },
  request_too_large: { status: 413, type: "invalid_request_error", rpc: "INVALID_ARGUMENT", retry: false },
  unsupported_media_type: { status: 415, type: "invalid_request_error", rpc: "INVALID_ARGUMENT", retry: false },
  upgrade_required: { status: 426, type: "invalid_request_error", rpc: "INVALID_ARGUMENT", retry: false },
  tool_choice_violation: { status: 422, type: "invalid_request_error", rpc: "INVALID_ARGUMENT", retry: false },
  rate_limit_exceeded: { status: 429, type: "rate_limit_error", rpc: "RESOURCE_EXHAUSTED", retry: true },
  upstream_rate_limited: { status: 429, type: "rate_limit_error", rpc: "RESOURCE_EXHAUSTED", retry: true },
  internal_error: { status: 500, type: "api_error", rpc: "INTERNAL", retry: true },
  embeddings_unavailable: { status: 501, type: "api_error", rpc: "UNIMPLEMENTED", retry: false },
  config_not_saved: { status: 503, type: "service_unavailable_error", rpc: "UNAVAILABLE", retry: false },
  no_account_available: { status: 503, type: "service_unavailable_error", rpc: "UNAVAILABLE", retry: true },
  store_unavailable: { status: 503, type: "service_unavailable_error", rpc: "UNAVAILABLE", retry: true },
  upstream_error: { status: 503, type: "service_unavailable_error", rpc: "UNAVAILABLE", retry: true },
  upstream_timeout: { status: 503, type: "service_unavailable_error", rpc: "UNAVAILABLE", retry: true },
  upstream_empty_output: { status: 503, type: "service_unavailable_error", rpc: "UNAVAILABLE", retry: true },
  shutting_down: { status: 503, type: "service_unavailable_error", rpc: "UNAVAILABLE", retry: true }
} as const

/** The error codes of the gateway. */
export type ErrorCode = keyof typeof errorTable

const codes = Object.keys(errorTable) as ReadonlyArray<ErrorCode>

/** A fault in a configuration: the field's dotted path and a sentence. */
export const ErrorFault = Schema.Struct({ field: Schema.String, message: Schema.String })

const isPassed = (value: unknown): value is PassedError => typeof value === "object" && value !== null

/** Seconds beyond which a client does better not to wait for a limit of the upstream. */
const soonest = 60

/** An error as a caller sees it. `message` never contains a token, a page or an account's identity. */
export class GatewayError extends Schema.TaggedError<GatewayError>()("GatewayError", {
  code: Schema.Literals(codes),
  message: Schema.String,
  /** The request's field that caused the error, as the caller wrote it (`messages[0].content`). */
  param: Schema.NullOr(Schema.String),
  /** `Retry-After`, in whole seconds. */
  retryAfter: Schema.optional(Schema.Number),
  /** All faults of a rejected configuration. */
  faults: Schema.optional(Schema.Array(ErrorFault)),
  /** The path of the request is what names nothing: the status belongs to `not_found`. */
  inPath: Schema.optional(Schema.Literal(true)),
  /** Milliseconds of a server's `retry-after-ms`. */
  retryAfterMs: Schema.optional(Schema.Number),
  /** Overrides `retry` of the table. */
  retry: Schema.optional(Schema.Boolean),
  /** The `x-should-retry` of a server, which callers get as it is. */
  serverRetry: Schema.optional(Schema.Boolean),
  /** Why the upstream failed, for the log; not sent to callers. */
  cause: Schema.optional(FailureCause),
  /** The code of a server that speaks the caller's contract, which the caller sees in place of `code`. */
  serverCode: Schema.optional(Schema.String),
  /** The error of a server of the caller's protocol, which the caller gets in place of this one. */
  passed: Schema.optional(Schema.declare(isPassed))
}) {
  /** The HTTP status of the response. */
  get status(): number {
    return this.passed?.status ?? errorTable[this.inPath === true ? "not_found" : this.code].status
  }
  /** The vendors' `type` word. */
  get type(): string {
    return errorTable[this.code].type
  }
  /** The content-generation style's `status` word. */
  get rpc(): string {
    return errorTable[this.inPath === true ? "not_found" : this.code].rpc
  }
  /** False when the same request cannot succeed later, or soon; sent as `x-should-retry: false`. */
  get shouldRetry(): boolean {
    const isLate = this.code === "upstream_rate_limited" && (this.retryAfter ?? 0) > soonest
    return this.serverRetry ?? this.retry ?? (!isLate && errorTable[this.code].retry)
  }
}

/** What an error may have beside its code and its message. */
type ErrorDetails = Omit<ConstructorParameters<typeof GatewayError>[0], "code" | "message" | "param">

/** Creates an error; `param` names the field that caused it. */
export const gatewayError = (
  code: ErrorCode,
  message: string,
  details?: ErrorDetails & { readonly param?: string | undefined }
): GatewayError => new GatewayError({ ...details, code, message, param: details?.param ?? null })

/** The message for operators, with the setting that a caller's text does not name. */
export const operatorMessage = ({ cause, message }: GatewayError): string =>
  cause?.setting === undefined ? message : `${message} (${cause.setting})`

/** The error in other words, and with another time to come back. A server's milliseconds belong to its own seconds alone. */
export const changedError = (error: GatewayError, message: string, retryAfter: number | undefined): GatewayError =>
  gatewayError(error.code, message, {
    param: error.param ?? undefined,
    retryAfter,
    faults: error.faults,
    inPath: error.inPath,
    retryAfterMs: retryAfter === error.retryAfter ? error.retryAfterMs : undefined,
    retry: error.retry,
    serverRetry: error.serverRetry,
    cause: error.cause,
    serverCode: error.serverCode,
    passed: error.passed
  })

/** A malformed or missing field. */
export const invalidRequest = (message: string, param?: string): GatewayError =>
  gatewayError("invalid_request", message, { param })

/** The most characters of a name that are shown. */
const longestShown = 80

/** A name from a request or configuration, shortened for messages. */
export const shortenName = (name: string): string =>
  name.length > longestShown ? `${name.slice(0, longestShown).toWellFormed()}…` : name

/** Writes a path as `messages[0].content`: numbers are indexes, other keys are names. */
export const fieldName = (path: ReadonlyArray<PropertyKey>): string =>
  path.reduce<string>(
    (name, key) =>
      typeof key === "number"
        ? `${name}[${key}]`
        : name === ""
        ? shortenName(String(key))
        : `${name}.${shortenName(String(key))}`,
    ""
  )
